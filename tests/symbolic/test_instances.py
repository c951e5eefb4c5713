"""Laws that a statement assumes are tried at the values that occur in a claim."""

from __future__ import annotations

import pytest

from attnproof.symbolic import namespace as xp
from attnproof.symbolic.claim import Claim, Law, at_least, equal, for_all
from attnproof.symbolic.givens import Given, function, real, sizes
from attnproof.symbolic.proof_methods import equations_of
from attnproof.symbolic.prove import decide
from attnproof.symbolic.statement import Statement

(n,) = sizes("n")
GIVEN: dict[str, Given] = {
    "f": function(0),
    "g": function(1, out=None),
    "plus": function(0, 0),
    "a": real(),
    "b": real(),
    "c": real(),
    "e": real(),
    "x": real(n),
    "y": real(n),
}
f, g, plus, a, b, c, e, x, y = (given.named(name) for name, given in GIVEN.items())
TWO, THREE = {"p": real(), "q": real()}, {"p": real(), "q": real(), "r": real()}

COMMUTES = for_all(TWO, lambda p, q: equal(plus(p, q), plus(q, p)))
ASSOCIATES = for_all(THREE, lambda p, q, r: equal(plus(plus(p, q), r), plus(p, plus(q, r))))
NEUTRAL = for_all({"p": real()}, lambda p: equal(plus(p, e), p))
ADDS = for_all(TWO, lambda p, q: equal(f(p + q), f(p) + f(q)))
TWICE = for_all({"v": real(n)}, lambda v: equal(g(g(v)), g(v)))
BOUNDED = for_all({"p": real()}, lambda p: at_least(f(p), 0))


def verdict(claim: Claim, *laws: Law, refuting: bool = False) -> str:
    return decide(Statement(GIVEN, {"": claim}, (), laws), refuting=refuting).verdict


PROVED: dict[str, tuple[Claim, tuple[Law, ...]]] = {
    "commutes": (equal(plus(a, b), plus(b, a)), (COMMUTES,)),
    "commutes inside": (equal(plus(plus(a, b), c), plus(c, plus(b, a))), (COMMUTES,)),
    "two laws one after the other": (
        equal(plus(plus(a, b), c), plus(plus(b, c), a)),
        (COMMUTES, ASSOCIATES),
    ),
    "neutral from the left": (equal(plus(e, a), a), (NEUTRAL, COMMUTES)),
    "adds": (equal(f(a + b), f(a) + f(b)), (ADDS,)),
    "an array": (equal(g(g(g(x))), g(x)), (TWICE,)),
    "under a function": (equal(xp.exp(g(g(x))) + 1, 1 + xp.exp(g(x))), (TWICE,)),
}


@pytest.mark.parametrize("told", PROVED)
def test_a_law_is_found_where_it_helps_and_nothing_holds_without_it(told: str) -> None:
    claim, laws = PROVED[told]
    assert verdict(claim, *laws) == "proved"
    for missing in laws:
        assert verdict(claim, *(law for law in laws if law is not missing)) == "undecided"


@pytest.mark.parametrize(
    ("claim", "law"),
    [
        (equal(plus(a, b), plus(b, c)), COMMUTES),
        (equal(plus(a, b), plus(b, a)), ASSOCIATES),
        (equal(g(g(x)), x), TWICE),
        (equal(g(g(x)), g(y)), TWICE),
        (equal(f(a + b), f(a)), ADDS),
    ],
)
def test_a_law_shows_nothing_else(claim: Claim, law: Law) -> None:
    assert verdict(claim, law) != "proved"


def test_a_law_of_an_order_gives_no_equation() -> None:
    assert equations_of([BOUNDED], equal(f(a), f(b))) == ()


def test_the_equations_lead_downhill() -> None:
    """Each term has one smaller one: an operation that commutes leads in no circle."""
    found = equations_of([COMMUTES], equal(plus(plus(a, b), c), plus(c, plus(a, b))))
    lefts = [one.left for one in found]
    assert found
    assert len(set(lefts)) == len(lefts)
    assert not set(lefts) & {one.right for one in found}
