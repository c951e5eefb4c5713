"""What is added to the tokens, and nothing: each encoding against its formula, and its laws."""

from __future__ import annotations

from collections.abc import Callable
from math import cos, sin
from typing import Any

import numpy as np
import pytest

from attnproof import Encoding, Law, equal, for_all, natural
from attnproof.cards.verdicts import decided
from attnproof.encodings.additive import (
    BinaryDigits,
    Index,
    IndexFromOne,
    LearnedTable,
    NormalisedIndex,
    SineOnly,
    Sinusoidal,
)
from attnproof.encodings.masks import Nope, NopeCausal
from attnproof.encodings.powers import BlockPowers, MatrixPowers, PlaneRotation
from attnproof.laws.attention import (
    independent_of_length,
    sees_order,
    translation,
    travels_with_tokens,
)
from attnproof.laws.positions import bounded, defined_beyond, unique
from attnproof.laws.scores import relative
from attnproof.laws.tokens import composes, identity_at_zero, linear_shift
from tests.cases import each

POSITIONS = (0, 1, 2, 5, 11, 100)
WIDTH = 64


def rotated(p: int, angles: list[float]) -> list[float]:
    """(0, 1) in each block, after p rotates by −angle, multiplied out one after the other."""
    found: list[float] = []
    for angle in angles:
        x = np.array([0.0, 1.0])
        for _ in range(p):
            x = np.array([[cos(angle), sin(angle)], [-sin(angle), cos(angle)]]) @ x
        found += [float(x[0]), float(x[1])]
    return found


def sinusoidal(p: int) -> list[float]:
    """Vaswani et al., section 3.5: PE(pos, 2i) = sin(pos / 10000^{2i/d}), and the cosine."""
    angles = [p / 10000 ** (2 * i / WIDTH) for i in range(WIDTH // 2)]
    return [part for angle in angles for part in (sin(angle), cos(angle))]


ADDED: dict[type[Encoding], Callable[[int], list[float]]] = {
    Sinusoidal: sinusoidal,
    SineOnly: lambda p: [sin(p / 10000 ** (j / WIDTH)) for j in range(WIDTH)],
    BinaryDigits: lambda p: [float(digit) for digit in reversed(f"{p:0{WIDTH}b}")],
    Index: lambda p: [float(p)] * WIDTH,
    IndexFromOne: lambda p: [p + 1.0] * WIDTH,
    NormalisedIndex: lambda p: [p / 511] * WIDTH,
    MatrixPowers: lambda p: rotated(p, [10000 ** (-2 * b / WIDTH) for b in range(WIDTH // 2)]),
    PlaneRotation: lambda p: rotated(p, [1.0]),
    BlockPowers: lambda p: rotated(p, [(10000 ** (-2 / WIDTH)) ** b for b in range(WIDTH // 2)]),
}
KINDS: list[type[Encoding]] = [*ADDED, LearnedTable, Nope, NopeCausal]


def wrong_at(kind: type[Encoding]) -> int | None:
    """The first position whose vector is not that of the formula."""
    for p in POSITIONS:
        found = kind.with_defaults(WIDTH).add(np.asarray(p))
        wanted = np.asarray(ADDED[next(k for k in kind.__mro__ if k in ADDED)](p))
        if found.shape != wanted.shape or not np.allclose(found, wanted, rtol=0, atol=1e-12):
            return p
    return None


@pytest.mark.parametrize("kind", ADDED)
def test_what_is_added_is_the_formula_of_the_paper(kind: type[Encoding]) -> None:
    assert wrong_at(kind) is None


@pytest.mark.parametrize("kind", ADDED)
def test_a_list_of_positions_gives_one_row_for_each(kind: type[Encoding]) -> None:
    made = kind.with_defaults(WIDTH)
    table = made.add(np.asarray(POSITIONS))
    assert np.array_equal(table, np.stack([made.add(np.asarray(p)) for p in POSITIONS]))


@pytest.mark.parametrize("kind", ADDED)
def test_a_wrong_formula_is_noticed(kind: type[Encoding]) -> None:
    late = type("Late", (kind,), {"add": lambda self, p: kind.add(self, p + 1)})
    assert wrong_at(late) == 0
    turned_round = type("Round", (kind,), {"add": lambda self, p: kind.add(self, p)[..., ::-1]})
    symmetric = kind in (Index, IndexFromOne, NormalisedIndex)  # the same number in every channel
    assert (wrong_at(turned_round) is None) == symmetric


def test_row_p_of_the_learned_table_is_added_and_there_is_no_row_after_the_last() -> None:
    made = LearnedTable.with_defaults()
    every = made.add(np.arange(LearnedTable.reach))
    assert every.shape == (512, 64)
    assert np.array_equal(made.add(np.asarray(7.0)), every[7])
    assert len(np.unique(every, axis=0)) == 512
    for nowhere in (512, -1, 0.5):
        with pytest.raises(IndexError, match=r"there is none for|out of bounds"):
            made.add(np.asarray(nowhere))


def test_there_is_nothing_between_two_whole_positions() -> None:
    for kind in (BinaryDigits, MatrixPowers):
        with pytest.raises(ValueError, match=r"wanted an integer for the rule, got 0\.5"):
            kind.with_defaults().add(np.asarray([1.0, 0.5]))


@each(KINDS)
def test_scores_and_attention_are_those_of_x_plus_its_position(kind: type[Encoding]) -> None:
    """Against loops over queries and keys, with projections that are not the identity."""
    made, random = kind.with_defaults(8), np.random.default_rng(3)
    d = int(made.width)
    Q, K, V = (random.normal(size=(rows, d)) for rows in (3, 4, 4))
    m, n = np.asarray([4, 2, 3]), np.asarray([0, 3, 1, 2])
    added = kind.defines("add")
    A = random.normal(size=(d, d)) if added else np.eye(d)
    if added:
        made.A = A  # type: ignore[attr-defined]
    put = made.add if added else lambda p: np.zeros((len(p), d))
    seen = np.asarray([[kind is not NopeCausal or there <= here for there in n] for here in m])
    queries, keys = Q + put(m), K + put(n)
    scores = np.asarray(
        [
            [
                sum(queries[i, k] * A[k, h] * keys[j, h] for k in range(d) for h in range(d))
                / np.sqrt(d)
                for j in range(4)
            ]
            for i in range(3)
        ]
    )
    strengths = np.exp(scores) * seen
    wanted = (strengths / strengths.sum(1, keepdims=True)) @ (V + put(n))
    assert np.allclose(made.scores(Q, K, m, n), scores)
    assert np.allclose(made.attention(Q, K, V, m, n), wanted)
    assert not np.allclose(made.attention(Q, K, V, m + 1, n + 1), wanted) or not added


@pytest.mark.parametrize(
    ("kind", "law", "verdict"),
    [
        (Nope, relative, "proved"),
        (Nope, sees_order, "refuted"),
        (NopeCausal, sees_order, "proved"),
        (NopeCausal, relative, "proved"),
        (Index, composes, "proved"),
        (IndexFromOne, composes, "refuted"),
        (Index, identity_at_zero, "proved"),
        (IndexFromOne, identity_at_zero, "refuted"),
        (Index, linear_shift, "refuted"),
        (Index, relative, "refuted"),
        (Index, independent_of_length, "proved"),
        (NormalisedIndex, independent_of_length, "refuted"),
        (SineOnly, identity_at_zero, "proved"),
        (SineOnly, linear_shift, "refuted"),
        (Sinusoidal, linear_shift, "proved"),
        (MatrixPowers, linear_shift, "proved"),
        (PlaneRotation, linear_shift, "proved"),
        (BlockPowers, linear_shift, "proved"),
        (BlockPowers, identity_at_zero, "refuted"),
        (LearnedTable, linear_shift, "refuted"),
        (LearnedTable, identity_at_zero, "refuted"),
        (LearnedTable, travels_with_tokens, "proved"),
        (MatrixPowers, travels_with_tokens, "proved"),
        (BinaryDigits, identity_at_zero, "proved"),
        (BinaryDigits, linear_shift, "refuted"),
        (Nope, unique, "refuted"),
        (PlaneRotation, unique, "proved"),
        (Index, unique, "proved"),
        (NormalisedIndex, unique, "proved"),
        (Index, bounded, "refuted"),
        (LearnedTable, bounded, "does not apply"),
        (LearnedTable, defined_beyond, "refuted"),
    ],
)
def test_the_verdict_is_the_one_that_mathematics_has(
    kind: type[Encoding], law: Any, verdict: str
) -> None:
    assert decided(kind, law).verdict == verdict


class FalseFact(MatrixPowers):
    """Among its facts is one that does not hold."""

    def facts(self) -> dict[str, Law]:
        given = {"a": natural(), "s": natural()}
        return super().facts() | {
            "all equal": for_all(given, lambda a, s: equal(self.add(a + s), self.add(a)))
        }


class NoFact(MatrixPowers):
    """Without its facts."""

    def facts(self) -> dict[str, Law]:
        return {}


class Backwards(PlaneRotation):
    """Its matrix moves positions back."""

    def shift(self, s: Any) -> Any:
        return super().shift(-s)


def test_a_fact_or_a_matrix_is_advice_and_a_false_one_decides_nothing() -> None:
    assert decided(FalseFact, linear_shift).verdict == "proved"
    assert decided(FalseFact, composes).verdict == "refuted"
    assert decided(NoFact, linear_shift, limit_seconds=0.3).verdict == "undecided"
    assert decided(NoFact, bounded).verdict == "undecided"
    assert decided(Backwards, linear_shift, limit_seconds=0.3).verdict == "undecided"


@pytest.mark.parametrize(
    ("kind", "law", "under"),
    [
        (MatrixPowers, bounded, ("M is orthogonal",)),
        (Sinusoidal, unique, ("some frequency is not a rational multiple of π",)),
        (SineOnly, unique, ("the first frequency is not a rational multiple of π",)),
        (BinaryDigits, unique, ("the positions are below 2^d",)),
        (MatrixPowers, unique, ("the start is an evaluation point: no two M^j x are equal",)),
        (NormalisedIndex, bounded, ("the positions are from 0 to the last",)),
        (LearnedTable, unique, ("no two of its rows are equal",)),
        (BlockPowers, unique, ()),
        (BinaryDigits, bounded, ()),
    ],
)
def test_it_is_proved_under_the_hypothesis_that_it_needs(
    kind: type[Encoding], law: Any, under: tuple[str, ...]
) -> None:
    cell = decided(kind, law)
    assert (cell.verdict, cell.under) == ("proved", under)


def test_an_encoding_that_is_defined_at_whole_positions_is_refuted_at_whole_positions() -> None:
    for kind in (k for k in KINDS if k.whole):
        witness = decided(kind, translation).witness
        assert "u_0" in witness
        assert " u = " not in witness


def test_usual_numbers_leave_the_width_open_where_they_can() -> None:
    assert [k.with_defaults(8).width for k in KINDS] == [
        64, 64, 8, 8, 8, 8, 64, 2, 8, 64, 8, 8,
    ]  # fmt: skip
    assert BlockPowers.with_defaults(64).width == 64
