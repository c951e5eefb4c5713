"""Conditions of the kernel's own derivations, each with a false proof that nothing else stops.

A :class:`Fault` names a condition by the words with which it refuses.  Without it the derivation
would be a proof of something false, or of something that does not follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

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
)  # fmt: skip
from attnproof.symbolic.kernel import law
from attnproof.symbolic.normal_form.equations import chain, inside, reverse, rewrite, under
from attnproof.symbolic.scalars import (
    MINUS_INFINITY,
    ONE,
    ZERO,
    add,
    entry,
    index,
    integer,
    mul,
    num,
    power,
    unary,
)  # fmt: skip
from attnproof.symbolic.terms import Term, bind, make
from tests.symbolic.vocabulary import (
    TWO,
    A,
    R,
    S,
    X,
    Y,
    a,
    b,
    i,
    m,
    minus,
    n,
    same,
    space,
    spread,
    table,
    total,
    u,
    under_,
    up_to,
    var,
)  # fmt: skip

__all__ = ["FAULTS", "HARMLESS", "Fault", "assumed", "gap", "squares"]


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


def assumed(left: Term, right: Term) -> Assume:
    """left = right, taken for granted."""
    return Assume(left, right, law(left, right))


def gap(x: Term, y: Term) -> Term:
    """x − y, as the kernel writes it."""
    return add(x, minus(y))


def squares(x: Term, y: Term) -> Term:
    """The sum of the squares of all differences, as the kernel writes it."""
    at = [index(f"square#{k}", length) for k, length in enumerate(x.shape)]
    whole = power(gap(entry(x, *at), entry(y, *at)), 2)
    for place in reversed(at):
        whole = make("sum", (place.args[0], bind(whole, place)))
    return whole


def product(x: Term, y: Term) -> Term:
    return make("matmul", (x, y), shape=(x.shape[0], y.shape[1]))


def eye(length: Term) -> Term:
    return make("eye", (length,), shape=(length, length))


AFTER = integer(add(u, ONE))

# |u| = u for every natural u, [t < t + 1] = 1 for every number t, and the sum of a vector

ABS = law(unary("abs", u), u, (u,))
LESS = law(under_(a, add(a, ONE)), ONE, (a,))
SUM = law(make("reduce", (X,), 0), total(i, entry(X, i)), (X,))
below, W = index("in", n), var("W", m)
REAL = "natural induction: no natural number"


def over_an_index() -> Derivation:
    """[i <= n − 1] = 1 for an index i below n, so [n <= n − 1] = 1."""
    least = integer(add(n, num(-1)))
    t = up_to(below, least)
    shown = make("assumed equal", (bind(t, below), ONE), (("n", ()),))
    wrong = Assume(up_to(n, least), ONE, shown, (n,))
    return Lemma(wrong, rewrite("decide", t), (below,))


def of_an_equation_that_is_refuted() -> Derivation:
    """a + 1 = a from a + 1 ≠ a."""
    apart = Differ(
        add(a, ONE), a, assumed(add(a, ONE), a), rewrite("ring", gap(add(a, ONE), a), ONE)
    )
    return Lemma(assumed(add(a, ONE), a), apart)


def rest_by_induction(variable: Term) -> Derivation:
    """⌊x⌋ = x at 0, and at x + 1 if at x."""
    left = make("floor_divide", (variable, ONE))
    zero = rewrite("divide", make("floor_divide", (ZERO, ONE)))
    after = integer(add(variable, ONE))
    taken = rewrite("floor", make("floor_divide", (after, ONE)), ONE, variable)
    before = inside(taken.right, [(1, assumed(left, variable))])
    step = chain(taken, before, rewrite("ring", before.right, after))
    return NaturalInduction(left, variable, variable, zero, step)


def from_a_base_that_differs() -> Derivation:
    """u = 1 + u at 0 is refuted, and holds at u + 1 if at u."""
    base = Differ(ZERO, one_more(ZERO), assumed(ZERO, one_more(ZERO)),
                  rewrite("ring", gap(ZERO, one_more(ZERO)), num(-1)))  # fmt: skip
    before = assumed(u, one_more(u))
    inner = inside(AFTER, [(AFTER.args.index(u), before)])
    step = chain(inner, rewrite("ring", inner.right, one_more(AFTER)))
    return NaturalInduction(u, one_more(u), u, base, step)


def one_more(x: Term) -> Term:
    return make("add", (x, ONE))


def without_a_base() -> Derivation:
    """[1 <= u] = 1 from 1 on."""
    base = rewrite("decide", up_to(ONE, ONE))
    return NaturalInduction(up_to(ONE, u), ONE, u, base, decided(up_to(ONE, AFTER)))


def decided(t: Term) -> Derivation:
    return rewrite("decide", t)


def with_an_assumption_on_the_number() -> Derivation:
    """[u = 2] = 0 at 0, and at u + 1 if u is 2."""
    after = same(AFTER, TWO)
    two = inside(AFTER, [(AFTER.args.index(u), assumed(u, TWO))])
    moved = inside(after, [(0, inside(after.args[0], [(0, two)]))])
    step = chain(moved, decided(moved.right))
    return NaturalInduction(same(u, TWO), ZERO, u, decided(same(ZERO, TWO)), step)


def with_its_own_next_case() -> Derivation:
    """[u = 0] = 1 at 0, and at u + 1 if at u + 1."""
    after = same(AFTER, ZERO)
    return NaturalInduction(same(u, ZERO), ONE, u, decided(same(ZERO, ZERO)), assumed(after, ONE))


def of_one_unit_vector() -> Derivation:
    """The vector that is 1 at an index has only ones, where that index is the summed one."""
    at, j = index("square#0", n), index("j", n)
    unit, ones = table(j, same(j, at)), spread(ONE, n)
    body = power(gap(entry(unit, at), entry(ones, at)), 2)
    one = chain(rewrite("entry", entry(unit, at)), decided(same(at, at)))
    difference = inside(body.args[0], [
        (0, one), (1, inside(body.args[0].args[1], [(1, rewrite("entry", entry(ones, at)))])),
    ])  # fmt: skip
    zero = chain(inside(body, [(0, difference)]), rewrite("ring", power(gap(ONE, ONE), 2), ZERO))
    whole = make("sum", (n, bind(body, at)))
    summed = under(whole, (at,), zero)
    return SumOfSquares(unit, ones, chain(summed, rewrite("constant", summed.right)))


def by_an_index_of_nothing() -> Derivation:
    """1 + 0·e = 0·e by way of an e below 0, so a ≠ a."""
    e, z = index("e", ZERO), index("z", ONE)
    first, last = add(ONE, mul(ZERO, e)), mul(ZERO, e)
    t = total(z, same(z, e))
    one = chain(rewrite("ring", first, ONE), reverse(rewrite("delta", t)))
    zero = chain(rewrite("unroll", t), decided(same(ZERO, e)), rewrite("ring", ZERO, last))
    return Differ(a, a, chain(one, zero), rewrite("ring", gap(first, last), ONE))


TWICE, HALVED = (np.eye(2) * x for x in (2, 0.5))
B, C = var("B", n, n), var("C", n, n)
E, F = var("E", m, n), var("F", n, m)

FAULTS: list[Fault] = [
    Fault("an equation read off two numbers that differ", "replay: a part is no equation",
          lambda: Reverse(Differ(ONE, ZERO, assumed(ONE, ZERO),
                                 rewrite("ring", gap(ONE, ZERO), ONE)))),
    Fault("a law of naturals at −1", "assume: no natural",
          lambda: Assume(unary("abs", num(-1)), num(-1), ABS, (num(-1),))),
    Fault("a law of naturals at u − 1", "assume: no natural",
          lambda: Assume(unary("abs", gap(u, ONE)), gap(u, ONE), ABS, (gap(u, ONE),))),
    Fault("a law of naturals at a real number", "assume: no natural",
          lambda: Assume(unary("abs", a), a, ABS, (a,))),
    Fault("a law of numbers at −∞", "assume: no real",
          lambda: Assume(under_(MINUS_INFINITY, add(MINUS_INFINITY, ONE)), ONE, LESS,
                         (MINUS_INFINITY,))),
    Fault("a law of vectors at a longer one", "assume: no real",
          lambda: Assume(make("reduce", (W,), 0), total(i, entry(W, i)), SUM, (W,)), {n: 1, m: 3}),
    Fault("another equation than the law", "assume: not the law",
          lambda: Assume(ZERO, ONE, law(a, a))),
    Fault("another instance than it says", "assume: not the law",
          lambda: Assume(unary("abs", a), a, ABS, (u,))),
    Fault("a law for all indices", "law: not variables that may have any value", over_an_index),
    Fault("a lemma that is no equation", "lemma: it is no equation",
          of_an_equation_that_is_refuted),
    Fault("a lemma with a variable free in its assumptions", "lemma: a variable is not arbitrary",
          lambda: Lemma(Assume(add(b, ONE), b, law(a, b, (a,)), (add(b, ONE),)), assumed(a, b),
                        (a,)), {a: 1.0, b: 1.0}),
    Fault("induction over the real numbers", REAL, lambda: rest_by_induction(a)),
    Fault("a base case that is refuted", "natural induction: a part is no equation",
          from_a_base_that_differs),
    Fault("induction without a base", "natural induction: not the base case", without_a_base),
    Fault("a step that is another equation", "natural induction: not the step",
          lambda: NaturalInduction(same(u, ZERO), ONE, u, decided(same(ZERO, ZERO)),
                                   Reflexive(ONE))),
    Fault("the hypothesis of induction at u + 1", "natural induction: it is not arbitrary",
          with_its_own_next_case, told=False),
    Fault("an assumption on the number", "natural induction: it is not arbitrary",
          with_an_assumption_on_the_number, {u: 2}),
    Fault("an index of the sum that the array has", "sum of squares: an index is taken",
          of_one_unit_vector, {n: 2}),
    Fault("the squares of something else", "sum of squares: not Σ (a − b)² = 0",
          lambda: SumOfSquares(X, Y, Reflexive(ZERO))),
    Fault("a mean of squares over outcomes", "sum of squares: no number of entries",
          lambda: SumOfSquares(R, S, assumed(squares(R, S), ZERO)), told=False),
    Fault("the factors change places", "left inverse: not A B = 1 for square matrices",
          lambda: LeftInverse(product(B, A), product(A, B), Reflexive(product(A, B)))),
    Fault("matrices over outcomes", "left inverse: no number of rows",
          lambda: inverse_over(space), told=False),
    Fault("A A = 1 from A B = 1", "left inverse: not B A = 1",
          lambda: LeftInverse(product(A, A), eye(n), assumed(product(A, B), eye(n))),
          {A: TWICE, B: HALVED}),
    Fault("a contradiction that is none", "differ: a part is no equation",
          lambda: Differ(a, a, Differ(ONE, ZERO, assumed(ONE, ZERO),
                                      rewrite("ring", gap(ONE, ZERO), ONE)),
                         rewrite("ring", gap(ONE, ZERO), ONE))),
    Fault("the difference of other numbers", "differ: not the difference of the two",
          lambda: Differ(a, b, assumed(a, b), Reflexive(ONE)), {a: 1.0, b: 1.0}),
    Fault("a difference that may be 0", "differ: the form does not settle",
          lambda: Differ(a, b, assumed(a, b), Reflexive(gap(a, b))), {a: 1.0, b: 1.0}),
    Fault("a contradiction by way of nothing", "replay: it may have no value",
          by_an_index_of_nothing),
]  # fmt: skip


def inverse_over(length: Term) -> Derivation:
    x, y = (var(name, length, length) for name in "xy")
    return LeftInverse(product(y, x), eye(length), assumed(product(x, y), eye(length)))


HARMLESS = {
    "assume: no law": "nobody grants it, for a grant is a law",
    "assume: not one value for each variable": "fewer values cannot be put in their places",
    "lemma: only equations rest on it": "a proof without its witness closes nothing",
    "natural induction: the shapes differ": "asked again of the equation that results",
    "natural induction: a variable ranges below the number": "no index of nothing is passed by",
    "natural induction: the number is no further variable": "it is free in no assumption",
    "sum of squares: not two finite arrays of one shape": "no rule shows that ∞ − ∞ is 0",
    "differ: the shapes differ": "arrays of two shapes do differ",
    "differ: not two finite numbers": "no difference with ∞ has a form that is not 0",
}
