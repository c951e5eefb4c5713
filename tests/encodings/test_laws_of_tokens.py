"""The laws on encoded tokens: each is obeyed, broken, and refuted of its negative control."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from array_api_compat import array_namespace

from attnproof import Encoding, real, sizes
from attnproof.cards.registry import load_encodings
from attnproof.cards.verdicts import decided
from attnproof.encoding.law import EncodingLaw
from attnproof.encodings.additive import Index
from attnproof.encodings.bias import Alibi
from attnproof.encodings.masks import Nope
from attnproof.encodings.rope import Rope, Xpos
from attnproof.laws import tokens

LAWS = [law for law in vars(tokens).values() if isinstance(law, EncodingLaw)]
KINDS = {kind.id(): kind for kind in load_encodings().kinds}
(d,) = sizes("d", "features")


class Squared(Encoding):
    """A key is multiplied by itself, whatever the position."""

    def rotate(self, x: Any, p: Any) -> Any:
        return x * x + 0 * p[..., None]


class Scaled(Encoding):
    """A key is multiplied by 1 + p: at no position by what the shift alone can undo."""

    def rotate(self, x: Any, p: Any) -> Any:
        return x * (1 + p[..., None])


class Drifting(Encoding):
    """The keys move by p² in every channel."""

    def add(self, p: Any) -> Any:
        return (p * p)[..., None] * array_namespace(p).ones((self.width,))


class Mixed(Encoding):
    """Every token is multiplied by one matrix, at every position."""

    given: ClassVar[dict[str, Any]] = {"M": real(d, d)}
    width = d

    def rotate(self, x: Any, p: Any) -> Any:
        return x @ self.M + 0 * p[..., None]

    def shift(self, s: Any) -> Any:
        return array_namespace(s).eye(self.width)

    def moved(self, k: Any, s: Any) -> Any:
        return k + 0 * s[..., None]


class WrongShift(Rope):
    """RoPE with a matrix that rotates the wrong way."""

    def shift(self, s: Any) -> Any:
        xp = array_namespace(s)
        return self.moved(xp.eye(self.width), xp.broadcast_to(-s, (self.width,))).mT


def test_there_are_seven() -> None:
    assert [law.id for law in LAWS] == [
        "linear-shift",
        "composes",
        "identity-at-zero",
        "keeps-norms",
        "keeps-dot-products",
        "commutes-with-projections",
        "key-can-be-moved",
    ]


@pytest.mark.parametrize(
    ("kind", "law", "verdict"),
    [
        (Squared, tokens.identity_at_zero, "refuted"),
        (Squared, tokens.composes, "refuted"),
        (Squared, tokens.commutes_with_projections, "refuted"),
        (Scaled, tokens.linear_shift, "refuted"),
        (Scaled, tokens.key_can_be_moved, "refuted"),
        (Scaled, tokens.commutes_with_projections, "proved"),
        (Drifting, tokens.key_can_be_moved, "refuted"),
        (Index, tokens.key_can_be_moved, "proved"),
        (Index, tokens.composes, "proved"),
        (Mixed, tokens.linear_shift, "proved"),
        (Mixed, tokens.key_can_be_moved, "proved"),
        (Mixed, tokens.identity_at_zero, "refuted"),
        (Mixed, tokens.commutes_with_projections, "refuted"),
        (Xpos, tokens.keeps_dot_products, "proved"),
        (Xpos, tokens.keeps_norms, "refuted"),
        (Xpos, tokens.composes, "proved"),
        (Xpos, tokens.key_can_be_moved, "proved"),
    ],
)
def test_the_laws_see_what_an_encoding_does(
    kind: type[Encoding], law: EncodingLaw, verdict: str
) -> None:
    assert decided(kind, law).verdict == verdict


def test_advice_that_is_wrong_is_not_believed() -> None:
    cell = decided(WrongShift, tokens.linear_shift, limit_seconds=0.3)
    assert cell.verdict == "undecided"


def test_that_no_map_moves_a_key_is_said_of_every_map() -> None:
    cell = decided(Drifting, tokens.key_can_be_moved)
    assert "so no W_s solves them" in cell.why


def test_queries_and_keys_are_both_asked() -> None:
    class OneSided(Rope):
        """Queries rotate, keys do not."""

        def query(self, q: Any, p: Any) -> Any:
            return Rope.rotate(self, q, p)

        def key(self, k: Any, p: Any) -> Any:
            return k + 1 + 0 * p[..., None]

    cell = decided(OneSided, tokens.identity_at_zero)
    assert cell.verdict == "refuted"
    assert cell.why.startswith("keys: ")


def test_moving_a_cached_key_is_what_the_numbers_say() -> None:
    rope, rng = Rope.with_defaults(), np.random.default_rng(0)
    keys = rng.normal(size=(5, rope.width))
    places = np.array([0.0, 1.0, 7.0, 300.0, 5000.0])
    moved = rope.moved(rope.encode(keys, places), np.full(5, 17.0))
    assert np.abs(moved - rope.encode(keys, places + 17)).max() < 1e-9


def test_what_is_true_of_the_identity_is_no_merit_of_what_acts_elsewhere() -> None:
    cell = decided(Alibi, tokens.keeps_norms)
    assert (cell.verdict, cell.why) == (
        "does not apply",
        "it does not change tokens, and acts elsewhere",
    )
    assert decided(Nope, tokens.keeps_norms).verdict == "proved"
    assert "kernel steps" in decided(Rope, tokens.keeps_norms).why
    assert decided(Alibi, tokens.linear_shift).verdict == "does not apply"
