"""The laws on attention: each holds of its example, fails of its counter-example, has a control."""

from __future__ import annotations

from typing import Any

import pytest
from array_api_compat import array_namespace

from attnproof import Encoding, positive, real
from attnproof.cards.registry import load_encodings
from attnproof.cards.verdicts import decided
from attnproof.encoding.law import EncodingLaw
from attnproof.laws import attention
from attnproof.laws.attention import (
    acts_on_scores,
    independent_of_length,
    leaves_values,
    sees_order,
    translation,
    travels_with_tokens,
)
from attnproof.laws.scores import relative
from attnproof.symbolic.statement import Statement

KINDS = {kind.id(): kind for kind in load_encodings().kinds}
LAWS = [value for value in vars(attention).values() if isinstance(value, EncodingLaw)]


class KeyRamp(Encoding):
    """A bias that is linear in the key's position: the score is not relative, attention is."""

    given = {"slope": real()}

    def bias(self, m: Any, n: Any) -> Any:
        return self.slope * n + 0 * m


class KeySquares(KeyRamp):
    """A fault: the bias is quadratic, and a shift does not drop out of the softmax."""

    def bias(self, m: Any, n: Any) -> Any:
        return self.slope * n * n + 0 * m


class WholeRamp(KeyRamp):
    """The same for the positions 0, 1, 2, .. alone."""

    whole = True


class PlaneRamp(Encoding):
    """Positions are points of a plane; the bias is linear in the key's."""

    axes = 2
    given = {"slope": real(2)}

    def bias(self, m: Any, n: Any) -> Any:
        return array_namespace(n).sum(self.slope * (n + 0 * m), axis=-1)


class ByCount(Encoding):
    """q·k times a number, √d aside, that grows with the number of keys, told in ``last``."""

    length = "last"
    given = {"last": positive()}

    def query(self, q: Any, p: Any) -> Any:
        del p
        return q * self.last


class Constant(Encoding):
    """1 is added to every score."""

    def bias(self, m: Any, n: Any) -> Any:
        return 1 + 0 * (m + n)


class OfTheQuery(Encoding):
    """The position of the query is added: wherever the keys stand, the scores are the same."""

    def bias(self, m: Any, n: Any) -> Any:
        return m + 0 * n


class Counted(Encoding):
    """The same, and the keys are counted by the code itself."""

    def query(self, q: Any, p: Any) -> Any:
        del p
        return q

    def scores(self, Q: Any, K: Any, m: Any, n: Any) -> Any:
        return super().scores(Q, K, m, n) * K.shape[0]


class Trained(Encoding):
    """A parameter that is called length and is not the number of tokens."""

    given = {"length": positive()}

    def query(self, q: Any, p: Any) -> Any:
        del p
        return q * self.length


class AddedToValues(Encoding):
    """Scores know nothing of the positions; the values do."""

    def value(self, v: Any, m: Any, n: Any) -> Any:
        return v + (n - m)[..., None]


def test_the_laws_are_these() -> None:
    assert [told.id for told in LAWS] == [
        "translation",
        "sees-order",
        "travels-with-tokens",
        "independent-of-length",
        "acts-on-scores",
        "leaves-values",
    ]


@pytest.mark.parametrize(
    ("kind", "told", "verdict"),
    [
        (KeyRamp, relative, "refuted"),
        (KeyRamp, translation, "proved"),
        (KeySquares, translation, "refuted"),
        (WholeRamp, translation, "proved"),
        (PlaneRamp, relative, "refuted"),
        (PlaneRamp, translation, "proved"),
        (PlaneRamp, sees_order, "proved"),
        (PlaneRamp, travels_with_tokens, "proved"),
        (WholeRamp, sees_order, "proved"),
        (WholeRamp, travels_with_tokens, "proved"),
        (ByCount, independent_of_length, "refuted"),
        (ByCount, sees_order, "refuted"),
        (ByCount, acts_on_scores, "refuted"),  # the count does, positions do not
        (Constant, acts_on_scores, "refuted"),
        (KINDS["alibi-by-place"], acts_on_scores, "refuted"),
        (OfTheQuery, acts_on_scores, "proved"),
        (Counted, independent_of_length, "refuted"),
        (Trained, independent_of_length, "proved"),
        (AddedToValues, acts_on_scores, "refuted"),
        (AddedToValues, leaves_values, "refuted"),
        (AddedToValues, sees_order, "proved"),
        (KeyRamp, leaves_values, "proved"),
    ],
)
def test_verdicts_that_can_be_seen_by_hand(
    kind: type[Encoding], told: EncodingLaw, verdict: str
) -> None:
    assert decided(kind, told).verdict == verdict


def test_a_causal_mask_alone_sees_order_and_acts() -> None:
    causal = KINDS["nope-causal"]
    assert decided(causal, sees_order).verdict == "proved"
    assert decided(causal, acts_on_scores).verdict == "proved"
    assert decided(causal, leaves_values).verdict == "proved"


def test_another_length_is_given_to_what_declares_one() -> None:
    """The same length both times would prove the law of every encoding of pairs."""
    told = independent_of_length.statement(ByCount())
    assert isinstance(told, Statement)
    assert {"last", "other"} <= set(told.givens)
    assert "other" not in independent_of_length.statement(KeyRamp()).givens  # type: ignore[union-attr]
