"""Derivations of what is false, or of what does not follow; the kernel refuses them."""

from __future__ import annotations

from attnproof.symbolic.derivation import (
    Assume,
    Derivation,
    Differ,
    LeftInverse,
    Lemma,
    NaturalInduction,
)
from attnproof.symbolic.kernel import law
from attnproof.symbolic.normal_form.equations import chain, inside, reverse, rewrite
from attnproof.symbolic.scalars import ONE, ZERO, add, entry, index, integer, mul, num, power, unary
from attnproof.symbolic.terms import Term, bind, make, opened
from tests.symbolic.vocabulary import TWO, X, a, i, m, minus, n, same, total, u, under_, up_to, var


def assumed(left: Term, right: Term) -> Assume:
    """left = right, taken for granted."""
    return Assume(left, right, law(left, right))


def gap(x: Term, y: Term) -> Term:
    """x − y, as the kernel writes it."""
    return add(x, minus(y))


def squares(x: Term, y: Term) -> Term:
    """The sum of the squares of all differences, as the kernel writes it."""
    at = [opened(length, x, y, f"k{k}") for k, length in enumerate(x.shape)]
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
REAL = "natural induction: not a natural number"


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
    base = Differ(
        ZERO,
        one_more(ZERO),
        assumed(ZERO, one_more(ZERO)),
        rewrite("ring", gap(ZERO, one_more(ZERO)), num(-1)),
    )
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


def by_an_index_of_nothing() -> Derivation:
    """1 + 0·e = 0·e by way of an e below 0, so a ≠ a."""
    e, z = index("e", ZERO), index("z", ONE)
    first, last = add(ONE, mul(ZERO, e)), mul(ZERO, e)
    t = total(z, same(z, e))
    one = chain(rewrite("ring", first, ONE), reverse(rewrite("delta", t)))
    zero = chain(rewrite("unroll", t), decided(same(ZERO, e)), rewrite("ring", ZERO, last))
    return Differ(a, a, chain(one, zero), rewrite("ring", gap(first, last), ONE))


def inverse_over(length: Term) -> Derivation:
    x, y = (var(name, length, length) for name in "xy")
    return LeftInverse(product(y, x), eye(length), assumed(product(x, y), eye(length)))
