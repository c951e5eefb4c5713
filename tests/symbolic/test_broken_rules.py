"""A broken rule flips a verdict, and the numbers of the steps tell which one it was."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from attnproof.symbolic import Claim, Statement, boolean, equal, permutation, real, sizes
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.decision import Step
from attnproof.symbolic.givens import Given
from attnproof.symbolic.prove import decide
from attnproof.symbolic.rules import RULES
from attnproof.symbolic.scalars import add, mul, num, unary
from attnproof.symbolic.steps import flatten
from attnproof.symbolic.terms import Term
from tests.symbolic.interpreter import World, close_to

(N,) = sizes("n")
GIVEN: dict[str, Given] = {
    "x": real(N),
    "s": permutation(N),
    "M": boolean(N),
    "a": real(),
    "b": real(),
}
x, sigma, mask, a, b = (GIVEN[name].named(name) for name in GIVEN)
Faulty = Callable[..., tuple[Term, frozenset[tuple[str, Term]]]]


def no_sign(t: Term, u: Term, v: Term) -> tuple[Term, frozenset[tuple[str, Term]]]:
    cu, su, cv, sv = (unary(op, z) for z in (u, v) for op in ("cos", "sin"))
    whole = add(mul(cu, cv), mul(su, sv)) if t.op == "cos" else add(mul(su, cv), mul(cu, sv))
    return whole, frozenset()


def any_two_maps(t: Term) -> tuple[Term, frozenset[tuple[str, Term]]]:
    return t.args[1].args[1], frozenset()


def swapped(t: Term) -> tuple[Term, frozenset[tuple[str, Term]]]:
    c, u, v = t.args
    gate = unary("indicator", c)
    return add(mul(gate, v), u, mul(num(-1), gate, u)), frozenset()


def no_not(t: Term) -> tuple[Term, frozenset[tuple[str, Term]]]:
    return unary("indicator", t.args[0].args[0]), frozenset()


def no_count(_: Term) -> tuple[Term, frozenset[tuple[str, Term]]]:
    return num(1), frozenset()


BROKEN: list[tuple[str, Faulty, Claim]] = [
    (
        "angle addition",
        no_sign,
        equal(xp.cos(a + b), xp.cos(a) * xp.cos(b) + xp.sin(a) * xp.sin(b)),
    ),
    ("permutation", any_two_maps, equal(x[sigma][sigma], x)),
    ("where", swapped, equal(xp.where(mask, 1, 0), 1 - xp.astype(mask, float))),
    ("indicator", no_not, equal(xp.astype(~mask, float), xp.astype(mask, float))),
    ("constant", no_count, equal(xp.sum(xp.ones(N)), 1)),
]


def wrong_steps(found: list[Step]) -> set[str]:
    """The rules of steps that change their value in some world."""
    wrong = set()
    for world in (World(seed, largest=3) for seed in range(8)):
        wrong |= {s.rule for s in found if not close_to(world(s.before), world(s.after))}
    return wrong


@pytest.mark.parametrize(("rule", "faulty", "claim"), BROKEN, ids=[rule for rule, *_ in BROKEN])
def test_a_broken_rule_is_found_by_the_numbers_of_its_steps(
    rule: str, faulty: Faulty, claim: Claim, monkeypatch: pytest.MonkeyPatch
) -> None:
    statement = Statement(GIVEN, {"": claim})
    assert decide(statement, refuting=False).verdict == "undecided"
    monkeypatch.setitem(RULES, rule, faulty)
    decided = decide(statement, refuting=False)
    assert decided.verdict == "proved"
    (link,) = decided.claims[0].links
    assert link.derivation is not None
    assert wrong_steps(list(flatten(link.derivation))) == {rule}
