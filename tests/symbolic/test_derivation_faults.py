"""Without one of its conditions the kernel would prove something false, and the numbers tell."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from attnproof.symbolic import kernel
from attnproof.symbolic.derivation import (
    Assume,
    Derivation,
    Differ,
    LeftInverse,
    Lemma,
    NaturalInduction,
    Reflexive,
    Reverse,
    SumOfSquares,
)
from attnproof.symbolic.kernel import Proof, law, replay
from attnproof.symbolic.normal_form.equations import rewrite
from attnproof.symbolic.rules import inequalities
from attnproof.symbolic.rules.base import Refused, need
from attnproof.symbolic.scalars import MINUS_INFINITY, ONE, ZERO, add, entry, num, unary
from attnproof.symbolic.terms import Term, make
from tests.symbolic.false_proofs import (
    ABS,
    LESS,
    REAL,
    SUM,
    W,
    assumed,
    by_an_index_of_nothing,
    decided,
    eye,
    from_a_base_that_differs,
    gap,
    inverse_over,
    of_an_equation_that_is_refuted,
    over_an_index,
    product,
    rest_by_induction,
    squares,
    with_an_assumption_on_the_number,
    with_its_own_next_case,
    without_a_base,
)
from tests.symbolic.interpreter import Undefined, World, close_to
from tests.symbolic.vocabulary import (
    A,
    R,
    S,
    X,
    Y,
    a,
    b,
    i,
    m,
    n,
    same,
    space,
    total,
    u,
    under_,
    var,
)


@dataclass(frozen=True)
class Fault:
    """``rule: why`` is the condition; ``false`` the derivation.

    In worlds with the values ``drawn``, what the derivation rests on holds; ``told`` is whether
    numbers then show it to be false.
    """

    says: str
    condition: str
    false: Callable[[], Derivation]
    drawn: Mapping[Term, Any] = field(default_factory=dict)
    told: bool = True


TWICE, HALVED = (np.eye(2) * x for x in (2, 0.5))
B, C = var("B", n, n), var("C", n, n)
E, F = var("E", m, n), var("F", n, m)

FAULTS: list[Fault] = [
    Fault(
        "an equation read off two numbers that differ",
        "reverse: a part is not an equation",
        lambda: Reverse(
            Differ(ONE, ZERO, assumed(ONE, ZERO), rewrite("ring", gap(ONE, ZERO), ONE))
        ),
    ),
    Fault(
        "a law of naturals at −1",
        "assume: not a natural",
        lambda: Assume(unary("abs", num(-1)), num(-1), ABS, (num(-1),)),
    ),
    Fault(
        "a law of naturals at u − 1",
        "assume: not a natural",
        lambda: Assume(unary("abs", gap(u, ONE)), gap(u, ONE), ABS, (gap(u, ONE),)),
    ),
    Fault(
        "a law of naturals at a real number",
        "assume: not a natural",
        lambda: Assume(unary("abs", a), a, ABS, (a,)),
    ),
    Fault(
        "a law of numbers at −∞",
        "assume: not a real",
        lambda: Assume(
            under_(MINUS_INFINITY, add(MINUS_INFINITY, ONE)), ONE, LESS, (MINUS_INFINITY,)
        ),
    ),
    Fault(
        "a law of vectors at a longer one",
        "assume: not a real",
        lambda: Assume(make("reduce", (W,), 0), total(i, entry(W, i)), SUM, (W,)),
        {n: 1, m: 3},
    ),
    Fault(
        "another equation than the law", "assume: not the law", lambda: Assume(ZERO, ONE, law(a, a))
    ),
    Fault(
        "another instance than it says",
        "assume: not the law",
        lambda: Assume(unary("abs", a), a, ABS, (u,)),
    ),
    Fault("a law for all indices", "law: not variables that may have any value", over_an_index),
    Fault(
        "a lemma that is no equation",
        "lemma: it is not an equation",
        of_an_equation_that_is_refuted,
    ),
    Fault(
        "a lemma with a variable free in its assumptions",
        "lemma: a variable is not arbitrary",
        lambda: Lemma(Assume(add(b, ONE), b, law(a, b, (a,)), (add(b, ONE),)), assumed(a, b), (a,)),
        {a: 1.0, b: 1.0},
    ),
    Fault("induction over the real numbers", REAL, lambda: rest_by_induction(a)),
    Fault(
        "a base case that is refuted",
        "natural induction: a part is not an equation",
        from_a_base_that_differs,
    ),
    Fault("induction without a base", "natural induction: not the base case", without_a_base),
    Fault(
        "a step that is another equation",
        "natural induction: not the step",
        lambda: NaturalInduction(same(u, ZERO), ONE, u, decided(same(ZERO, ZERO)), Reflexive(ONE)),
    ),
    Fault(
        "the hypothesis of induction at u + 1",
        "natural induction: it is not arbitrary",
        with_its_own_next_case,
        told=False,
    ),
    Fault(
        "an assumption on the number",
        "natural induction: it is not arbitrary",
        with_an_assumption_on_the_number,
        {u: 2},
    ),
    Fault(
        "the squares of something else",
        "sum of squares: not Σ (a − b)² = 0",
        lambda: SumOfSquares(X, Y, Reflexive(ZERO)),
    ),
    Fault(
        "a mean of squares over outcomes",
        "sum of squares: the number of entries may be negative",
        lambda: SumOfSquares(R, S, assumed(squares(R, S), ZERO)),
        told=False,
    ),
    Fault(
        "the factors change places",
        "left inverse: not A B = 1 for square matrices",
        lambda: LeftInverse(product(B, A), product(A, B), Reflexive(product(A, B))),
    ),
    Fault(
        "matrices over outcomes",
        "left inverse: the number of rows may be negative",
        lambda: inverse_over(space),
        told=False,
    ),
    Fault(
        "A A = 1 from A B = 1",
        "left inverse: not B A = 1",
        lambda: LeftInverse(product(A, A), eye(n), assumed(product(A, B), eye(n))),
        {A: TWICE, B: HALVED},
    ),
    Fault(
        "a contradiction that is none",
        "differ: a part is not an equation",
        lambda: Differ(
            a,
            a,
            Differ(ONE, ZERO, assumed(ONE, ZERO), rewrite("ring", gap(ONE, ZERO), ONE)),
            rewrite("ring", gap(ONE, ZERO), ONE),
        ),
    ),
    Fault(
        "the difference of other numbers",
        "differ: not the difference of the two",
        lambda: Differ(a, b, assumed(a, b), Reflexive(ONE)),
        {a: 1.0, b: 1.0},
    ),
    Fault(
        "a difference that may be 0",
        "differ: its form does not show",
        lambda: Differ(a, b, assumed(a, b), Reflexive(gap(a, b))),
        {a: 1.0, b: 1.0},
    ),
    Fault(
        "a contradiction by way of nothing", "differ: it may have no value", by_an_index_of_nothing
    ),
]


HARMLESS = {
    "assume: not a law": "nobody grants it, for a grant is a law",
    "assume: not one value for each variable": "fewer values cannot be put in their places",
    "lemma: only equations rest on it": "a proof without its witness closes nothing",
    "natural induction: the shapes differ": "asked again of the equation that results",
    "natural induction: a variable ranges below the number": "no index of nothing is passed by",
    "natural induction: the number may not be a further variable": "it is free in no assumption",
    "sum of squares: not two finite arrays of one shape": "no rule shows that ∞ − ∞ is 0",
    "differ: the shapes differ": "arrays of two shapes do differ",
    "differ: not two finite numbers": "no difference with ∞ has a form that is not 0",
}


KINDS = ("assume", "law", "lemma", "natural induction", "sum of squares", "left inverse", "differ")


def a_world(seed: int, fault: Fault) -> World:
    world = World(seed, largest=3)
    sizes = {v.data[0]: x for v, x in fault.drawn.items() if v.op == "size"}
    arrays = {v: x for v, x in fault.drawn.items() if v.op == "var"}
    world.sizes |= sizes | {n.data[0]: 2 for v in arrays for n in v.shape}
    world.drawn |= arrays
    return world


def is_false(proof: Proof, fault: Fault) -> bool:
    """Whether what is proved fails in a world in which the assumptions hold."""
    for world in (a_world(seed, fault) for seed in range(20)):
        try:
            for _, told in proof.assumes:
                if fault.told and told.op == "assumed equal" and told.data is None:
                    assert close_to(world(told.args[0]), world(told.args[1]))
            if close_to(world(proof.left), world(proof.right)) != (proof.relation == "="):
                return True
        except Undefined:
            continue
    return False


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.says)
def test_a_condition_that_is_forgotten_is_noticed(
    fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    derivation = fault.false()
    with pytest.raises(Refused, match=re.escape(fault.condition)):
        replay(derivation)

    forgotten = fault.condition.partition(": ")[2]

    def forgetful(condition: object, why: str, *terms: Term) -> None:
        if not why.startswith(forgotten):
            need(condition, why, *terms)

    for module in (kernel, inequalities):
        monkeypatch.setattr(module, "need", forgetful)
    proof = replay(derivation)
    assert is_false(proof, fault) or not fault.told


def conditions_in_the_kernel() -> set[str]:
    """``rule: why`` of every condition the kernel states, up to the first word it computes."""
    found = set()
    for rule in ast.parse(inspect.getsource(kernel)).body:
        for node in ast.walk(rule) if isinstance(rule, ast.FunctionDef) else ():
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "need":
                why = node.args[1]
                first = why.values[0] if isinstance(why, ast.JoinedStr) else why
                assert isinstance(rule, ast.FunctionDef)
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    found.add(f"{rule.name.strip('_').replace('_', ' ')}: {first.value}")
    return found


def test_every_condition_of_the_newer_derivations_has_a_fault() -> None:
    planted = [fault.condition for fault in FAULTS] + list(HARMLESS)
    ours = {c for c in conditions_in_the_kernel() if c.split(":")[0] in KINDS}
    assert len(ours) >= 25
    for condition in ours:
        assert any(condition.startswith(p) or p.startswith(condition) for p in planted), condition
    for condition in HARMLESS:
        assert any(condition.startswith(c) for c in ours), condition
