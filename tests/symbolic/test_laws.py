"""Laws for all values of some variables: used at given values, at good ones, and at no others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from attnproof.symbolic import Array, equal, for_all, function, natural, over, positive, real, sizes
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.claim import Law, at_least, greater, rows
from attnproof.symbolic.givens import Given
from tests.symbolic.stating import Said, because, verdict

(d,) = sizes("d", "features")
GIVEN: dict[str, Given] = {
    "f": function(0),
    "g": function(0),
    "a": real(),
    "b": real(),
    "m": natural(),
    "x": real(d),
    "F": function(1, out=None),
}
f, g, F = (GIVEN[name].named(name) for name in "fgF")
ADDS = for_all({"s": real(), "t": real()}, lambda s, t: equal(f(s + t), f(s) + f(t)))
POWER = for_all({"i": natural()}, lambda i: equal(g(i + 1), 2 * g(i)))
FIXED = for_all({"r": positive()}, lambda r: equal(f(r), r))
SCALES = for_all({"c": real(), "z": real(d)}, lambda c, z: equal(F(c * z), c * F(z)))


def assumed(*laws: Law) -> Any:
    return lambda: list(laws)


TRUE = {
    "at two numbers": Said(
        GIVEN,
        lambda a, b: equal(f(a + b), f(a) + f(b)).with_facts(ADDS.at(s=a, t=b)),
        assumed(ADDS),
    ),
    "twice at one": Said(
        GIVEN, lambda a: equal(f(a + a), 2 * f(a)).with_facts(ADDS.at(s=a, t=a)), assumed(ADDS)
    ),
    "at two places": Said(
        GIVEN,
        lambda a, b: equal(f(a + a + b), 2 * f(a) + f(b)).with_facts(
            ADDS.at(s=a + a, t=b), ADDS.at(s=a, t=a)
        ),
        assumed(ADDS),
    ),
    "at a natural": Said(
        GIVEN, lambda m: equal(g(m + 1), 2 * g(m)).with_facts(POWER.at(i=m)), assumed(POWER)
    ),
    "at an array": Said(
        GIVEN,
        lambda a, x: equal(F(a * x), a * F(x)).with_facts(SCALES.at(c=a, z=x)),
        assumed(SCALES),
    ),
    "at every index": Said(
        GIVEN,
        lambda: equal(rows(d, lambda j: g(j + 1)), 2 * rows(d, g)).with_facts(
            over(d, lambda j: POWER.at(i=j))
        ),
        assumed(POWER),
    ),
    "by induction": Said(
        GIVEN, lambda m: equal(g(m + 1) * 1, 2 * g(m)).with_facts(POWER.at(i=m)), assumed(POWER)
    ),
}
FALSE = {
    "another function": Said(
        GIVEN,
        lambda a, b: equal(g(a + b), g(a) + g(b)).with_facts(ADDS.at(s=a, t=b)),
        assumed(ADDS),
    ),
    "at other numbers": Said(
        GIVEN,
        lambda a, b: equal(f(a - b), f(a) + f(b)).with_facts(ADDS.at(s=a, t=b)),
        assumed(ADDS),
    ),
    "a law that nobody assumes": Said(
        GIVEN, lambda a, b: equal(f(a + b), f(a) + f(b)).with_facts(ADDS.at(s=a, t=b))
    ),
    "a law at one natural only": Said(
        GIVEN, lambda m: equal(g(m + 2), 2 * g(m)).with_facts(POWER.at(i=m)), assumed(POWER)
    ),
    "a law of naturals at −1": Said(
        GIVEN,
        lambda m: equal(g(m - m), 2 * g(m - m - 1)).with_facts(POWER.at(i=m - m - 1)),
        assumed(POWER),
    ),
    "a law of naturals at a real number": Said(
        GIVEN, lambda a: equal(g(a + 1), 2 * g(a)).with_facts(POWER.at(i=a)), assumed(POWER)
    ),
    "at half a natural": Said(
        GIVEN,
        lambda m: equal(g(m / 2 + 1), 2 * g(m / 2)).with_facts(POWER.at(i=m / 2)),
        assumed(POWER),
    ),
    "a law over positive numbers": Said(
        GIVEN | {"p": positive()},
        lambda p: equal(f(p), p).with_facts(FIXED.at(r=p)),
        assumed(FIXED),
    ),
}


@pytest.mark.parametrize("name", TRUE)
def test_a_law_is_used_at_good_values(name: str) -> None:
    assert verdict(TRUE[name]) == "proved"


@pytest.mark.parametrize("name", FALSE)
def test_what_does_not_follow_from_a_law_is_not_proved(name: str) -> None:
    assert verdict(FALSE[name]) == "undecided"


def test_a_law_has_names_and_shapes() -> None:
    with pytest.raises(TypeError, match="no variable r"):
        ADDS.at(r=1)
    with pytest.raises(TypeError, match="has shape"):
        ADDS.at(s=real(d).named("x"))


# conclusions that later ones use


def shown_first(later: Any, first: Any = 0) -> Said:
    """That x·1 = x for all x (and 0 added), and what follows from it."""
    every = for_all({"r": real()}, lambda r: equal(r * 1 + first, r))
    return Said(GIVEN, lambda a, b: {"first": every, "then": later(every, a, b)})


def test_a_conclusion_is_used_by_a_later_one_if_it_is_proved() -> None:
    def then(every: Law, a: Array, b: Array) -> Any:
        return equal(a * 1 + b * 1, a + b).with_facts(every.at(r=a), every.at(r=b))

    assert verdict(shown_first(then)) == "proved"
    false = shown_first(then, 1)
    assert verdict(false) == "undecided"
    assert "neither a hypothesis nor an earlier conclusion" in because(false)


def test_a_conclusion_does_not_rest_on_itself_or_on_a_later_one() -> None:
    every = for_all({"r": real()}, lambda r: equal(f(r), r))
    itself = for_all({"r": real()}, lambda r: equal(f(r), r).with_facts(every.at(r=r)))
    for claims in ({"": itself}, {"one": itself, "two": every}, {"one": itself, "two": itself}):
        assert verdict(Said(GIVEN, only(claims))) == "undecided"


def only(claims: Any) -> Callable[[], Any]:
    return lambda: claims


HYPOTHESES: list[tuple[Any, Any]] = [
    (lambda a: [(a, 1)], lambda r: equal(r, 1)),
    (lambda a: [greater(a, 1)], lambda r: greater(r, 1)),
]


@pytest.mark.parametrize(("hypothesis", "body"), HYPOTHESES, ids=["equal", "greater"])
def test_for_all_is_not_for_one(hypothesis: Any, body: Any) -> None:
    """From a = 1, or a > 1, of the one number that is given it does not follow of all."""
    every = for_all({"r": real()}, body)
    assert verdict(Said({"a": real()}, only(every), hypothesis)) == "undecided"
    shadowing = for_all({"a": real()}, lambda a: body(1 * a))
    assert verdict(Said({"a": real()}, only(shadowing), hypothesis)) == "undecided"


def test_a_variable_is_no_given_under_its_name() -> None:
    with pytest.raises(TypeError, match="rename one of them"):
        verdict(Said({"a": positive()}, alike))


def alike(a: Array) -> Any:
    """|x| = x for all x, under the name of a number that is positive."""
    every = for_all({"a": real()}, lambda a: equal(xp.abs(a), a))
    return {"all": every, "this one": equal(a, a)}


def test_a_hypothesis_for_all_numbers_that_is_no_equation_is_told() -> None:
    sign = for_all({"r": real()}, lambda r: at_least(f(r), 0))
    with pytest.raises(TypeError, match="a hypothesis is"):
        verdict(Said(GIVEN, lambda a: at_least(f(a), 0), assumed(sign)))
    for name, expected in (("a", "proved"), ("b", "undecided")):
        said = Said(GIVEN, lambda a: at_least(f(a), 0), assumed_of(name))
        assert verdict(said) == expected


def assumed_of(name: str) -> Any:
    return lambda a, b: [at_least(f({"a": a, "b": b}[name]), 0)]
