"""Angles that are taken apart by positions first, and further only where that is needed."""

from __future__ import annotations

import pytest

from attnproof.symbolic import namespace as xp
from attnproof.symbolic.claim import Claim, equal
from attnproof.symbolic.derive import TOO_DEEP, NotProved, derive
from attnproof.symbolic.givens import Given, positions, real
from attnproof.symbolic.normal_form.functions import MAX_PARTS, disjoint
from attnproof.symbolic.normal_form.normaliser import Normaliser
from attnproof.symbolic.prove import decide
from attnproof.symbolic.statement import Statement
from attnproof.symbolic.terms import postorder

GIVEN: dict[str, Given] = {"p": positions(), "s": positions(), "a": real(), "b": real()}
p, s, a, b = (given.named(name) for name, given in GIVEN.items())


def verdict(claim: Claim) -> str:
    return decide(Statement(GIVEN, {"": claim}), limit_seconds=1).verdict


def angles(*, together: bool) -> set[str]:
    form = Normaliser(together=together)(xp.cos((p + s) * (a + b)).term).right
    return {repr(t.args[0]) for t in postorder(form) if t.op == "cos"}


def test_the_angle_of_one_position_stays_in_one_part() -> None:
    assert len(angles(together=True)) == 2
    assert len(angles(together=False)) == 4


def test_what_needs_smaller_parts_is_still_proved() -> None:
    one, other = p * a, p * b
    split = xp.cos(one) * xp.cos(other) - xp.sin(one) * xp.sin(other)
    assert verdict(equal(xp.cos(p * (a + b)), split)) == "proved"
    assert verdict(equal(xp.cos(p * (a + b)), split + 2 * xp.sin(one) * xp.sin(other))) == "refuted"


def test_multiples_and_signs_of_a_part_are_those_of_one_part() -> None:
    part = p * (a - 2 * b)
    assert verdict(equal(xp.cos(-3 * part), 4 * xp.cos(part) ** 3 - 3 * xp.cos(part))) == "proved"
    assert verdict(equal(xp.sin(-part), -xp.sin(part))) == "proved"
    assert verdict(equal(xp.sin(-part), xp.sin(part))) == "refuted"


def test_parts_that_share_a_term_are_not_apart() -> None:
    one, other = (frozenset({((t.term, 1),)}) for t in (a, b))
    assert disjoint([one, other])
    assert not disjoint([one | other, other])


def test_an_angle_of_very_many_parts_stays_whole() -> None:
    many = 10_000 * a
    with pytest.raises(NotProved, match="the normal forms differ"):
        derive(xp.cos(many).term, xp.cos(many / 10_000_001 + b).term)
    split = xp.cos(many) * xp.cos(b) - xp.sin(many) * xp.sin(b)
    assert verdict(equal(xp.cos(many + b), split)) == "proved"
    assert verdict(equal(xp.sin(-many), -xp.sin(many))) == "proved"
    one, other = 100 * p * a, 100 * p * b
    split = xp.cos(one) * xp.cos(other) - xp.sin(one) * xp.sin(other)
    assert verdict(equal(xp.cos(100 * p * (a + b)), split)) == "proved"
    most = 2 * (MAX_PARTS // 2) * a
    assert verdict(equal(xp.cos(most), 2 * xp.cos(most / 2) ** 2 - 1)) == "proved"


def test_a_search_that_goes_too_deep_says_so() -> None:
    nested = a
    for _ in range(900):
        nested = xp.tanh(nested)
    with pytest.raises(NotProved, match=TOO_DEEP):
        derive(nested.term, b.term)
