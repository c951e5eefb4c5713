"""Steps to a sign: each rule shows what is true, refuses what is near, and has a planted fault."""

from __future__ import annotations

import pytest

from attnproof.symbolic.derivation import SignStep
from attnproof.symbolic.kernel import Refused
from attnproof.symbolic.rules.base import Assumption
from attnproof.symbolic.rules.inequalities import STEPS, known_after
from attnproof.symbolic.scalars import (
    add,
)
from attnproof.symbolic.terms import Term, free
from tests.cases import each
from tests.symbolic.sign_step_cases import (
    NONNEG,
    NONZERO,
    POS,
    SHOWN,
    Arguments,
    less,
)
from tests.symbolic.sign_step_refusals import NEAR
from tests.symbolic.test_sizes import wrong
from tests.symbolic.vocabulary import (
    HALF,
    a,
    minus,
)

EACH = [(rule, *one) for rule, ones in SHOWN.items() for one in ones]


def after(before: tuple[SignStep, ...], step: SignStep) -> frozenset[Assumption]:
    """What the last step rests on."""
    return known_after((*before, step), over=free(step.number)).known[step.kind, step.number]


@each(EACH)
def test_a_step_shows_what_is_true_and_says_what_it_rests_on(
    rule: str, before: tuple[SignStep, ...], kind: str, t: Term, arguments: Arguments
) -> None:
    rests = after(before, SignStep(kind, t, rule, arguments))
    told = {(one.kind, one.number) for one in before}
    assert {fact for fact in rests if fact[1].op != "var" or fact in told} == told
    certain = {POS: 2, NONNEG: 1, NONZERO: 0}[kind]
    assert not wrong(t, certain, rests)
    for missing in before:
        rest = tuple(one for one in before if one is not missing)
        with pytest.raises(Refused):
            after(rest, SignStep(kind, t, rule, arguments))


@each(EACH)
def test_a_step_shows_no_more_and_nothing_else(
    rule: str, before: tuple[SignStep, ...], kind: str, t: Term, arguments: Arguments
) -> None:
    others: list[tuple[str, Term]] = [(kind, less(t, HALF)), (kind, minus(t)), (kind, add(t, a))]
    if kind == NONNEG:
        others.append((POS, t))
    for wanted, number in others:
        try:
            rests = after(before, SignStep(wanted, number, rule, arguments))
        except Refused:
            continue
        assert not wrong(number, 2 if wanted == POS else 1, rests), (wanted, number)


def test_every_rule_of_steps_is_asked() -> None:
    assert set(SHOWN) == set(STEPS) == {rule for rule, *_ in NEAR}


@each(NEAR)
def test_what_is_near_a_step_is_refused(
    rule: str, before: tuple[SignStep, ...], kind: str, t: Term, arguments: Arguments
) -> None:
    with pytest.raises(Refused):
        after(before, SignStep(kind, t, rule, arguments))
