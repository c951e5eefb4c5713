"""Angles that are taken apart by positions first, and further only where that is needed."""

from __future__ import annotations

from attnproof.symbolic import namespace as xp
from attnproof.symbolic.claim import Claim, equal
from attnproof.symbolic.givens import Given, positions, real
from attnproof.symbolic.normal_form.functions import disjoint
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
