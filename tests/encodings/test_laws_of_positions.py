"""The laws on positions: obeyed, broken, and refuted of their controls; no advice is believed."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from array_api_compat import array_namespace

from attnproof import Encoding, frequencies, function, hypothesis, positive, real, sizes
from attnproof.cards.registry import load_encodings
from attnproof.cards.verdicts import decided
from attnproof.documents.evidence import ProvedEvidence
from attnproof.encoding.base import in_numbers
from attnproof.encoding.law import EncodingLaw
from attnproof.encodings.additive import LearnedTable
from attnproof.encodings.bias import Alibi, T5Buckets
from attnproof.encodings.masks import Nope, NopeCausal
from attnproof.encodings.rope import Rope
from attnproof.laws import positions
from attnproof.symbolic.array import as_array
from attnproof.symbolic.claim import differ
from attnproof.symbolic.refute import refute

LAWS = [law for law in vars(positions).values() if isinstance(law, EncodingLaw)]
KINDS = {kind.id(): kind for kind in load_encodings().kinds}


class Waves(Encoding):
    """sin p is added in every channel."""

    def add(self, p: Any) -> Any:
        xp = array_namespace(p)
        return xp.sin(p)[..., None] * xp.ones((self.width,))


class Deaf(Waves):
    """Waves, told apart by a number that is never 0."""

    def tell(self, here: Any, there: Any) -> Any:
        return here[0] - there[0] + 1

    def apart(self, i: Any, j: Any) -> Any:
        xp = array_namespace(i)
        return xp.sin(i) - xp.sin(j) + 1


class BelowItsBound(Alibi):
    """A bias of single numbers that exceeds the bound that its author names."""

    def bound(self) -> Any:
        return 1


class Parity(Encoding):
    """The same vector at all positions, told apart by what is 1."""

    def add(self, p: Any) -> Any:
        return (0 * p)[..., None] * array_namespace(p).ones((self.width,))

    def apart(self, i: Any, j: Any) -> Any:
        return 1 + 0 * (i + j)


class Loud(Waves):
    """3 sin p, with its bound."""

    def add(self, p: Any) -> Any:
        return 3 * Waves.add(self, p)

    def bound(self) -> Any:
        return 3


class TooQuiet(Loud):
    """3 sin p, with a bound that is too small."""

    def bound(self) -> Any:
        return 2


class Growing(Encoding):
    """A slope > 0 times the offset, with no bound."""

    given: ClassVar[dict[str, Any]] = {"slope": positive()}

    def bias(self, m: Any, n: Any) -> Any:
        return self.slope * (m - n)


class WrongBeyond(Growing):
    """The same, sought where it is small."""

    def beyond(self, C: Any) -> Any:
        return C


class Cheat(Growing):
    """A bound that moves with the position."""

    def bound(self) -> Any:
        return array_namespace(self.slope).abs(self.slope * real().named("a"))


class Step(Encoding):
    """1 is added to the score of later keys."""

    given: ClassVar[dict[str, Any]] = {"height": real()}

    def bias(self, m: Any, n: Any) -> Any:
        xp = array_namespace(m)
        return self.height * xp.astype(n > m, float)


class Bent(Encoding):
    """1/(p − q) is added: continuous but for one place."""

    def bias(self, m: Any, n: Any) -> Any:
        return 1 / (m - n)


class Unknown(Encoding):
    """Any function of the offset is added."""

    given: ClassVar[dict[str, Any]] = {"f": function(0)}

    def bias(self, m: Any, n: Any) -> Any:
        return self.f(m - n)


class Endless(LearnedTable):
    """A table that starts again when it ends: it has a reach by its word alone."""

    defaults: ClassVar[dict[str, Any]] = {"table": lambda p: np.zeros((*np.shape(p), 64))}


class Misplaced(LearnedTable):
    """A table that is shorter than it says."""

    reach = 600


def test_there_are_five() -> None:
    assert [law.id for law in LAWS] == [
        "unique",
        "bounded",
        "continuous",
        "mask-continuous",
        "defined-beyond",
    ]


@pytest.mark.parametrize(
    ("kind", "law", "verdict", "why"),
    [
        (Waves, positions.unique, "proved", "kernel steps"),
        (Deaf, positions.unique, "undecided", ""),
        (Parity, positions.unique, "refuted", "the two are equal"),
        (Nope, positions.unique, "refuted", "the two are equal"),
        (NopeCausal, positions.unique, "does not apply", "pairs of positions"),
        (Waves, positions.bounded, "proved", "what is added: 1"),
        (Loud, positions.bounded, "proved", "what is added: 3"),
        (TooQuiet, positions.bounded, "proved", "by its form"),
        (Alibi, positions.bounded, "refuted", "more than C for every C"),
        (Growing, positions.bounded, "refuted", "slope = 1"),
        (BelowItsBound, positions.bounded, "refuted", "slope = 1"),
        (WrongBeyond, positions.bounded, "undecided", "neither a bound nor"),
        (T5Buckets, positions.bounded, "proved", "the bias: by its form"),
        (Unknown, positions.bounded, "refuted", "f = t ↦ t"),
        (Waves, positions.continuous, "proved", "continuous operations"),
        (Step, positions.continuous, "refuted", "is an integer everywhere and not constant"),
        (Bent, positions.continuous, "undecided", "does not show that it is not 0"),
        (Unknown, positions.continuous, "refuted", "f = t ↦ ⌊t⌋"),
        (NopeCausal, positions.bounded, "does not apply", "it computes no numbers"),
        (NopeCausal, positions.continuous, "does not apply", "it computes no numbers"),
        (NopeCausal, positions.mask_continuous, "refuted", "sees a key"),
        (Waves, positions.mask_continuous, "does not apply", "every key is visible"),
        (Nope, positions.continuous, "proved", ""),
        (Bent, positions.defined_beyond, "undecided", "≠ 0"),
        (Endless, positions.defined_beyond, "proved", "natural positions"),
        (Misplaced, positions.defined_beyond, "undecided", "not defined even at position 599"),
    ],
)
def test_the_laws_see_what_an_encoding_does(
    kind: type[Encoding], law: EncodingLaw, verdict: str, why: str
) -> None:
    limit = 0.5 if verdict == "undecided" else 60.0  # a slow machine decides nothing
    cell = decided(kind, law, limit_seconds=limit)
    assert (cell.verdict, why in cell.why) == (verdict, True), cell.why


def test_a_bound_speaks_of_no_position() -> None:
    with pytest.raises(TypeError, match="a bound depends on the parameters alone"):
        decided(Cheat, positions.bounded)


def test_what_is_beyond_a_bound_is_a_position() -> None:
    class Between(Growing):
        """Sought at −C, where there is no position."""

        whole = True

        def beyond(self, C: Any) -> Any:
            return -C - 1

    with pytest.raises(TypeError, match="is a natural number where positions are"):
        decided(Between, positions.bounded)


def test_a_bound_may_need_a_hypothesis() -> None:
    class Damped(Waves):
        """A factor times sin p, below 1 under a hypothesis."""

        given: ClassVar[dict[str, Any]] = {"factor": real()}

        def add(self, p: Any) -> Any:
            return (1 + self.factor * 0) * Waves.add(self, p) + self.grown(p)

        def grown(self, p: Any) -> Any:
            return (self.factor * p)[..., None] * array_namespace(p).ones((self.width,))

        @hypothesis("the factor is 0")
        def off(self) -> list[Any]:
            return [(self.factor, 0)]

    cell = decided(Damped, positions.bounded)
    assert (cell.verdict, cell.under) == ("proved", ("the factor is 0",))


def test_unique_needs_the_hypothesis_that_it_names() -> None:
    cell = decided(Rope, positions.unique)
    assert cell.under == ("some pair rotates by an angle that is not a rational multiple of π",)
    assert cell.needed is not None


def test_positions_with_coordinates_may_differ_in_any_of_them() -> None:
    class FirstOnly(Encoding):
        """The sine of the first coordinate is added."""

        axes = 2

        def add(self, p: Any) -> Any:
            xp = array_namespace(p)
            return xp.sin(p[..., 0])[..., None] * xp.ones((self.width,))

    cell = decided(FirstOnly, positions.unique)
    assert cell.verdict == "refuted"
    assert cell.why.startswith("in coordinate 1: ")


def test_a_ball_refutes_a_difference_only_where_it_is_one_number() -> None:
    xp = array_namespace(as_array(0))
    given = {"x": real()}
    x = real().named("x")
    found = refute(differ(x * xp.pi, 0 * x), given)
    assert found is not None
    assert found.values == {"x": 0}
    near = xp.sin(x) + xp.cos(x)
    assert refute(differ(1 + xp.sin(1 + 0 * x), 2 + 0 * near), given, limit_seconds=0.3) is None


class SaidToBeWhole(Rope):
    """It runs at every real position; that whole ones are meant is a word of its author."""

    whole = True


def test_a_word_of_the_author_refutes_nothing() -> None:
    cell = decided(SaidToBeWhole, positions.continuous)
    assert (cell.verdict, cell.why) == ("does not apply", positions.WHOLE)
    cell = decided(LearnedTable, positions.continuous)
    assert cell.verdict == "refuted"
    assert cell.witness.startswith("at position 1/2: IndexError")


def test_a_bound_that_is_read_off_the_form_says_so() -> None:
    told = decided(T5Buckets, positions.bounded).evidence[0]
    assert isinstance(told, ProvedEvidence)
    assert "symbolic/continuity.py" in told.says
    by_kernel = decided(Waves, positions.bounded).evidence[0]
    assert isinstance(by_kernel, ProvedEvidence)
    assert by_kernel.says == "the kernel"


(B,) = sizes("B", "blocks")


class ByHand(Encoding):
    """Channels i and B + i are rotated; the code has the length B."""

    width = 2 * B
    given: ClassVar[dict[str, Any]] = {"w": frequencies(B)}
    defaults: ClassVar[dict[str, Any]] = {"w": [1.0, 0.5, 0.25]}

    def rotate(self, x: Any, p: Any) -> Any:
        xp = array_namespace(x)
        a = p[..., None] * self.w
        one, two = x[..., :B], x[..., B:]
        turned = one * xp.cos(a) - two * xp.sin(a), two * xp.cos(a) + one * xp.sin(a)
        return xp.concat(turned, axis=-1)


class ByHandOfSquares(ByHand):
    """Calls its base by name."""

    def rotate(self, x: Any, p: Any) -> Any:
        return ByHand.rotate(self, x, p * p)


@pytest.mark.parametrize("kind", [ByHand, ByHandOfSquares])
def test_code_with_a_length_in_it_runs_with_its_default_numbers(kind: type[Encoding]) -> None:
    """On numpy B was still a symbol, and what that raised was said to be the fault of the code."""
    assert decided(kind, positions.defined_beyond).line == "proved"
    code = in_numbers(kind).code(np.asarray(1.0))
    assert np.allclose(code[:3], np.cos([1, 0.5, 0.25]) - np.sin([1, 0.5, 0.25]))
