"""Hypotheses that speak of positions: where they are tried, and what they cannot smuggle in."""

from __future__ import annotations

from typing import Any

import pytest
from array_api_compat import array_namespace

from attnproof import Encoding, differ, equal, for_all, hypothesis, natural
from attnproof.cards.verdicts import decided
from attnproof.encoding.applicability import of_tokens, ways
from attnproof.encoding.conformance import require_read
from attnproof.encodings.additive import BinaryDigits, LearnedTable, Sinusoidal, number
from attnproof.encodings.rope import Rope, RopeInterpolated
from attnproof.encodings.rope_of_coordinates import MRope, RopeAxial
from attnproof.laws.positions import bounded, unique
from attnproof.laws.scores import relative
from attnproof.symbolic.budget import OutOfTime, within
from attnproof.theorems.definitions.positions import binary_digit
from attnproof.theorems.definitions.powers import number_power

ROTATES = "some pair rotates by an angle that is not a rational multiple of π"


class Silent(Encoding):
    """The same vector is added everywhere, and the positions are said to be one."""

    def add(self, p: Any) -> Any:
        return (0 * p)[..., None] * array_namespace(p).ones((self.width,))

    def apart(self, i: Any, j: Any) -> Any:
        return i - j

    @hypothesis("the positions are equal")
    def same(self, i: Any, j: Any) -> list[Any]:
        return [(i, j)]


class Unsaid(Silent):
    """It supposes something of a position that it does not take."""

    @hypothesis("the position is 0")
    def same(self) -> list[Any]:  # type: ignore[override]
        return [(natural().named("i"), 0)]


class Shorter(BinaryDigits):
    """Positions below 2^(d + 1) are told apart by d digits, it says."""

    @hypothesis("the positions are below 2^(d + 1)")
    def below(self, i: Any, j: Any) -> list[Any]:
        unit = 2 * number_power(2, self.width)
        return [(i // unit, 0), (j // unit, 0)]


class WrongFact(BinaryDigits):
    """Its digits are said to give the position itself, however large it is."""

    def facts(self) -> dict[str, Any]:
        given = {"i": natural(), "t": natural()}
        wrong = for_all(
            given, lambda i, t: equal(number(lambda s: binary_digit(i, s), t), i).by_induction(t)
        )
        return {name: wrong.at(i=natural().named(name), t=self.width) for name in "ij"}

    @hypothesis("nothing more")
    def below(self, i: Any, j: Any) -> list[Any]:
        return [differ(i, j)]


class FirstAxisAlone(RopeAxial):
    """Whatever coordinate differs, the pairs of the first are looked at."""

    def tell(self, here: Any, there: Any, k: int = 0) -> Any:
        del k
        return super().tell(here, there, 0)


class Slower(RopeInterpolated):
    """It supposes of the frequencies before the division what it needs of those after it."""

    @hypothesis("some frequency is not a rational multiple of π")
    def irrational(self, i: Any, j: Any) -> list[Any]:
        sine = array_namespace(i).sin((j - i) * self.omega)
        return [differ(array_namespace(i).sum(sine**2), 0)]


@pytest.mark.parametrize(
    ("kind", "under"),
    [
        (BinaryDigits, "the positions are below 2^d"),
        (LearnedTable, "no two of its rows are equal"),
        (Rope, ROTATES),
        (RopeInterpolated, ROTATES),
        (RopeAxial, "some ω_b and some ν_c are not rational multiples of π"),
        (MRope, "each axis has a pair whose frequency is not a rational multiple of π"),
        (Sinusoidal, "some frequency is not a rational multiple of π"),
    ],
)
def test_positions_are_told_apart_under_it_and_not_without(
    kind: type[Encoding], under: str
) -> None:
    cell = decided(kind, unique)
    assert (cell.verdict, cell.under) == ("proved", (under,))
    assert cell.needed is not None


def test_what_contradicts_the_law_itself_is_not_tried() -> None:
    assert list(ways(Silent(), unique)) == []
    assert decided(Silent, unique).verdict == "refuted"


@pytest.mark.parametrize("kind", [Shorter, WrongFact, FirstAxisAlone, Slower])
def test_what_is_not_enough_proves_nothing(kind: type[Encoding]) -> None:
    assert list(ways(kind(), unique))  # it can hold, and was tried
    cell = decided(kind, unique, limit_seconds=0.5)
    assert (cell.verdict, bool(cell.under)) != ("refuted", False) or cell.obeyed
    assert cell.verdict != "proved"


def test_it_takes_the_letters_that_it_speaks_of() -> None:
    with pytest.raises(TypeError, match="uses i; a hypothesis may only use the parameters"):
        decided(Unsaid, unique)


def test_it_is_tried_of_the_laws_that_speak_of_the_same() -> None:
    assert list(ways(BinaryDigits(), unique)) == [("below",)]
    assert list(ways(BinaryDigits(), relative)) == list(ways(BinaryDigits())) == []
    assert decided(BinaryDigits, bounded).under == ()
    with pytest.raises(TypeError, match="uses i, j, which this law does not"):
        relative.statement(BinaryDigits(), ("below",))


def test_that_no_time_was_left_is_no_word_on_what_applies() -> None:
    class Fresh(Rope):
        """Of which nothing is known yet."""

    require_read(Fresh)  # with time: it is the proof that has none
    with within(0), pytest.raises(OutOfTime):
        of_tokens(Fresh)
    assert of_tokens(Fresh) == ""
