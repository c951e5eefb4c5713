"""Conditions on the reading: what a hypothesis settles is not listed, and all else is."""

from __future__ import annotations

import pytest

from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array
from attnproof.symbolic.divisors import conditions
from attnproof.symbolic.givens import natural, nonnegative, real, sizes
from attnproof.symbolic.terms import Term, make

(n,) = sizes("n")
x, y = (real(n).named(name) for name in "xy")
s, c, m = real().named("s"), nonnegative().named("c"), natural().named("m")


def told(*arrays: Array, facts: tuple[tuple[str, Term], ...] = ()) -> set[str]:
    found = conditions(*(a.term for a in arrays), facts=frozenset(facts))
    return {f"{c.value!r} is {c.wanted}" for c in found}


@pytest.mark.parametrize(
    ("array", "fact", "without"),
    [
        (x / s, ("nonzero", s.term), "s is not 0"),
        (1 / s**2, ("nonzero", s.term), "s^2 is not 0"),
        (x / y, ("positive", y.term), "y[i0] is not 0"),
        (xp.sqrt(s), ("nonnegative", s.term), "s is at least 0"),
        (xp.log(s), ("positive", s.term), "s is greater than 0"),
        (1 / xp.sum(x * x), ("positive", xp.sum(x * x).term), "Σ_j x[j]^2 is not 0"),
    ],
)
def test_a_hypothesis_settles_its_condition(
    array: Array, fact: tuple[str, Term], without: str
) -> None:
    assert told(array) == {without}
    assert told(array, facts=(fact,)) == set()


def test_a_hypothesis_settles_no_other() -> None:
    other = ("nonzero", real().named("t").term)
    assert told(x / s, facts=(other,)) == {"s is not 0"}
    assert told(xp.log(s), facts=(("nonzero", s.term),)) == {"s is greater than 0"}
    assert told(xp.sqrt(s), facts=(("nonzero", s.term),)) == {"s is at least 0"}


def test_whole_division_by_what_may_be_nothing() -> None:
    whole = Array(make("floor_divide", (m.term, natural().named("k").term)))
    assert told(whole) == {"k is not 0"}
    assert told(Array(make("remainder", (m.term, (c + 1).term)))) == set()
