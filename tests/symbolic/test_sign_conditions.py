"""Signs by their form and by facts: each line says how much is certain, and what it rests on."""

from __future__ import annotations

from fractions import Fraction

import pytest

from attnproof.symbolic.linear import as_term, collected, divided, minus, multiples
from attnproof.symbolic.rules.base import NOTHING, Assumption
from attnproof.symbolic.scalars import (
    MINUS_INFINITY,
    ONE,
    ZERO,
    add,
    entry,
    index,
    mul,
    num,
    power,
    unary,
)
from attnproof.symbolic.signs import case_facts, closed_indicators, nonzero, sign
from attnproof.symbolic.terms import Term, make
from tests.symbolic.vocabulary import (
    HALF,
    PI,
    THREE,
    TWO,
    A,
    D,
    L,
    P,
    X,
    Y,
    a,
    b,
    c,
    chosen,
    e,
    holds,
    i,
    j,
    less_one,
    m,
    n,
    outcome,
    q,
    same,
    space,
    spread,
    stack,
    total,
    u,
    under_,
    up_to,
    v,
    var,
)

Facts = frozenset[Assumption]
d = var("d", kind="nonnegative")
r = var("r", kind="positive")
Q: Assumption = ("positive", q)
R: Assumption = ("positive", r)
DD: Assumption = ("nonnegative", d)
BELOW = chosen(make("less", (a, b)), a, MINUS_INFINITY)
POS: Assumption = ("positive", a)
NN: Assumption = ("nonnegative", a)
NB: Assumption = ("nonnegative", b)
NZ: Assumption = ("nonzero", a)
C = make("less", (a, b))
y = var("y")
t = index("t", L)
short = less_one(n)
at_short = index("s", short)


NO_X = make("add", (X, make("mul", (num(-1), X), shape=(n,))), shape=(n,))
j0, first_layer, XL = index("j0", n), index("j0", L), var("XL", L)


def neg(x: Term) -> Term:
    return mul(num(-1), x)


FALLS, FALLS_TOO = unary("exp", neg(d)), unary("exp", neg(entry(D, i)))


def facts(*told: Assumption) -> Facts:
    return frozenset(told)


FORM: list[tuple[Term, int, Facts]] = [
    (num(2), 2, NOTHING),
    (ZERO, 1, NOTHING),
    (num(-1), 0, NOTHING),
    (HALF, 2, NOTHING),
    (q, 2, facts(Q)),
    (d, 1, facts(DD)),
    (a, 0, NOTHING),
    (u, 1, NOTHING),
    (n, 2, NOTHING),
    (i, 1, NOTHING),
    (outcome, 0, NOTHING),
    (PI, 2, NOTHING),
    (entry(P, i), 2, facts(("positive", P))),
    (entry(D, i), 1, facts(("nonnegative", D))),
    (entry(X, i), 0, NOTHING),
    (P, 2, facts(("positive", P))),
    (holds(C), 1, NOTHING),
    (up_to(a, a), 2, NOTHING),
    (under_(a, a), 1, NOTHING),
    (up_to(a, b), 1, NOTHING),
    (holds(make("equal", (a, a))), 2, NOTHING),
    (power(a, 2), 1, NOTHING),
    (power(a, 3), 0, NOTHING),
    (power(q, 3), 2, facts(Q)),
    (power(q, 2), 2, facts(Q)),
    (power(d, 2), 1, NOTHING),
    (power(q, -1), 2, facts(Q)),
    (power(d, -1), 1, facts(DD)),
    (power(a, -2), 1, NOTHING),
    (power(BELOW, 2), 0, NOTHING),
    (power(BELOW, 3), 0, NOTHING),
    (unary("sqrt", q), 2, facts(Q)),
    (unary("sqrt", d), 1, facts(DD)),
    (unary("sqrt", a), 0, NOTHING),
    (unary("abs", a), 1, NOTHING),
    (unary("abs", q), 2, facts(Q)),
    (unary("abs", BELOW), 0, NOTHING),
    (unary("tanh", q), 2, facts(Q)),
    (unary("tanh", d), 1, facts(DD)),
    (unary("tanh", a), 0, NOTHING),
    (unary("exp", a), 2, NOTHING),
    (unary("exp", BELOW), 1, NOTHING),
    (unary("log", n), 1, NOTHING),
    (unary("log", q), 0, NOTHING),
    (unary("log", add(n, q)), 2, facts(Q)),
    (unary("log", a), 0, NOTHING),
    (unary("cos", a), 0, NOTHING),
    (total(i, entry(P, i)), 2, facts(("positive", P))),
    (total(i, entry(D, i)), 1, facts(("nonnegative", D))),
    (total(i, entry(X, i)), 0, NOTHING),
    (total(at_short, q), 1, facts(Q)),
    (total(outcome, q), 2, facts(Q)),
    (total(outcome, d), 1, facts(DD)),
    (total(j, up_to(j, i)), 2, NOTHING),
    (total(j, up_to(j, a)), 1, NOTHING),
    (total(j, holds(make("equal", (j, ZERO)))), 2, NOTHING),
    (total(at_short, holds(make("equal", (at_short, ZERO)))), 1, NOTHING),
    (add(q, r), 2, facts(Q, R)),
    (add(q, d), 2, facts(Q, DD)),
    (add(d, u), 1, facts(DD)),
    (add(q, a), 0, NOTHING),
    (add(n, num(-1)), 1, NOTHING),
    (add(n, num(-2)), 0, NOTHING),
    (add(n, q, num(-1)), 2, facts(Q)),
    (add(ONE, unary("cos", a)), 1, NOTHING),
    (add(TWO, unary("sin", a)), 2, NOTHING),
    (add(ONE, neg(unary("tanh", a))), 1, NOTHING),
    (add(HALF, unary("cos", a)), 0, NOTHING),
    (add(ONE, unary("cos", BELOW)), 0, NOTHING),
    (add(TWO, mul(TWO, unary("cos", a))), 1, NOTHING),
    (add(ONE, mul(TWO, unary("cos", a))), 0, NOTHING),
    (add(ONE, neg(holds(C))), 1, NOTHING),
    (add(ONE, mul(num(-2), holds(C))), 0, NOTHING),
    (add(unary("exp", q), num(-1)), 2, facts(Q)),
    (add(unary("exp", d), num(-1)), 1, facts(DD)),
    (add(unary("exp", a), num(-1)), 0, NOTHING),
    (add(ONE, neg(unary("exp", neg(q)))), 2, facts(Q)),
    (add(ONE, neg(unary("exp", neg(d)))), 1, facts(DD)),
    (add(ONE, neg(unary("exp", q))), 0, NOTHING),
    (add(ONE, neg(power(n, -1))), 1, NOTHING),
    (add(ONE, neg(power(add(n, q), -1))), 2, facts(Q)),
    (add(ONE, neg(power(q, -1))), 0, NOTHING),
    (add(make("maximum", (a, TWO)), num(-1)), 2, NOTHING),
    (add(make("maximum", (a, ONE)), num(-1)), 1, NOTHING),
    (add(make("maximum", (a, HALF)), num(-1)), 0, NOTHING),
    (add(q, BELOW), 0, NOTHING),
    (add(X, P), 0, NOTHING),
    (mul(q, r), 2, facts(Q, R)),
    (mul(q, d), 1, facts(Q, DD)),
    (mul(q, a), 0, NOTHING),
    (mul(a, a), 1, NOTHING),
    (mul(a, a, a), 0, NOTHING),
    (mul(a, b, a, b), 1, NOTHING),
    (mul(neg(a), b), 0, NOTHING),
    (mul(num(-1), num(-1)), 2, NOTHING),
    (mul(BELOW, BELOW), 0, NOTHING),
    (chosen(C, q, r), 2, facts(Q, R)),
    (chosen(C, q, d), 1, facts(Q, DD)),
    (chosen(C, d, q), 1, facts(Q, DD)),
    (chosen(C, q, a), 0, NOTHING),
    (chosen(C, q, MINUS_INFINITY), 0, NOTHING),
    (make("maximum", (a, q)), 2, facts(Q)),
    (make("maximum", (q, a)), 2, facts(Q)),
    (make("maximum", (d, a)), 1, facts(DD)),
    (make("maximum", (a, b)), 0, NOTHING),
    (make("maximum", (MINUS_INFINITY, q)), 2, facts(Q)),
    (stack(q, t, y, mul(y, r)), 2, facts(Q, R)),
    (stack(q, t, y, mul(y, d)), 0, NOTHING),
    (stack(d, t, y, mul(y, r)), 0, NOTHING),
    (stack(q, t, y, mul(y, a)), 0, NOTHING),
    (stack(P, t, var("y", n), var("y", n)), 0, NOTHING),
    (spread(q, n), 2, facts(Q)),
    (make("permute", (A,), (1, 0), (n, n)), 0, NOTHING),
    (make("concat", (P, P), 0, (mul(TWO, n),)), 0, NOTHING),
    (MINUS_INFINITY, 0, NOTHING),
    (add(mul(q, a), mul(num(-1), q, a)), 1, NOTHING),
    (add(mul(q, r), neg(mul(q, r))), 1, NOTHING),
    (add(q, d, r, neg(mul(r, holds(C)))), 2, facts(Q, DD, R)),
    (add(q, mul(num(Fraction(-1, 2)), q, holds(C))), 2, facts(Q)),
    (add(q, neg(mul(q, holds(C))), r, neg(mul(r, up_to(b, a)))), 1, facts(Q, R)),
    (add(mul(n, FALLS), ONE, neg(FALLS), neg(FALLS_TOO)), 1, facts(("nonnegative", D))),
    (add(mul(n, FALLS_TOO), ONE, neg(FALLS), neg(FALLS_TOO)), 1, facts(DD)),
    (add(q, mul(under_(ZERO, a), a)), 2, facts(Q)),
    *(
        (add(mul(same(a, b), add(x, neg(z))), ONE, neg(same(a, b))), 1, NOTHING)
        for x, z in ((a, b), (b, a))
    ),
    *(
        (add(x, neg(z), neg(mul(same(a, b), add(x, neg(z))))), 0, NOTHING)
        for x, z in ((a, b), (b, a))
    ),
    (add(q, neg(mul(q, holds(C)))), 1, facts(Q)),
    (add(mul(q, holds(C)), neg(q)), 0, NOTHING),
    (unary("sqrt", up_to(a, BELOW)), 0, NOTHING),
    (unary("tanh", up_to(a, BELOW)), 0, NOTHING),
    (power(up_to(a, BELOW), 2), 0, NOTHING),
    (power(up_to(a, BELOW), 3), 0, NOTHING),
    (add(ONE, unary("cos", a), *(under_(x, b) for x in (a, c, y, d))), 1, NOTHING),
    (add(ONE, neg(unary("exp", neg(up_to(a, BELOW))))), 0, NOTHING),
    *((add(ONE, neg(power(add(ONE, q), k))), 0, NOTHING) for k in (0, 7)),
    (unary("log", unary("exp", D)), 0, NOTHING),
    (unary("log", add(ONE, up_to(a, BELOW))), 0, NOTHING),
    (total(j, add(entry(X, j), neg(entry(X, j0)))), 0, NOTHING),
    (make("add", (P, unary("tanh", P)), shape=(n,)), 2, facts(("positive", P))),
    (NO_X, 0, NOTHING),
    (add(BELOW, neg(BELOW)), 0, NOTHING),
    (add(q, mul(up_to(ZERO, a), a)), 2, facts(Q)),
    (add(ONE, mul(up_to(ZERO, a), a, q)), 2, facts(Q)),
    (add(q, *(mul(up_to(ZERO, x), x) for x in (a, b, c))), 2, facts(Q)),
    (add(q, *(mul(up_to(ZERO, x), x) for x in (a, b, c, y))), 0, NOTHING),
    (add(num(4), *(neg(under_(x, b)) for x in (a, c, y, d))), 1, NOTHING),
    (make("maximum", (u, d)), 1, NOTHING),
    (stack(q, t, y, mul(y, add(entry(XL, t), neg(entry(XL, first_layer)), ONE))), 0, NOTHING),
    (add(make("maximum", (unary("exp", a), TWO)), num(-1)), 2, NOTHING),
    (add(make("maximum", (TWO, unary("exp", a))), num(-1)), 2, NOTHING),
    (add(make("maximum", (ONE, unary("cos", a))), num(-1)), 1, NOTHING),
    (add(make("maximum", (ONE, unary("exp", q))), num(-1)), 2, facts(Q)),
    (add(ONE, neg(power(add(ONE, up_to(a, BELOW)), -1))), 0, NOTHING),
    (add(ONE, neg(unary("exp", make("mul", (num(-1), D), shape=(n,))))), 0, NOTHING),
    (add(mul(ZERO, unary("exp", neg(q))), unary("cos", a), ONE), 1, NOTHING),
]

BY_FACTS: list[tuple[Term, Facts, int, Facts]] = [
    (a, facts(POS), 2, facts(POS)),
    (a, facts(NN), 1, facts(NN)),
    (a, facts(NB), 0, NOTHING),
    (entry(X, i), facts(("positive", X)), 2, facts(("positive", X))),
    (entry(X, i), facts(("nonnegative", X)), 1, facts(("nonnegative", X))),
    (entry(X, i), facts(("positive", Y)), 0, NOTHING),
    (entry(X, i), facts(("positive", entry(X, j))), 0, NOTHING),
    (entry(X, i), facts(("nonnegative", entry(X, i))), 1, facts(("nonnegative", entry(X, i)))),
    (a, facts(NZ), 0, NOTHING),
    (power(a, 2), facts(NZ), 2, facts(NZ)),
    (power(a, 3), facts(NZ), 0, NOTHING),
    (power(a, 2), facts(POS), 2, facts(POS)),
    (power(BELOW, 2), facts(NZ), 0, NOTHING),
    (add(a, b), facts(POS, NB), 2, facts(POS, NB)),
    (
        add(a, neg(b)),
        facts(("nonnegative", add(a, neg(b)))),
        1,
        facts(("nonnegative", add(a, neg(b)))),
    ),
    (mul(TWO, a), facts(POS), 2, facts(POS)),
    (neg(a), facts(POS), 0, NOTHING),
    (
        add(mul(TWO, a), mul(num(-2), b)),
        facts(("positive", add(a, neg(b)))),
        2,
        facts(("positive", add(a, neg(b)))),
    ),
    (add(b, neg(a)), facts(("positive", add(a, neg(b)))), 0, NOTHING),
    (
        add(mul(q, a), neg(mul(q, b))),
        facts(("positive", add(a, neg(b)))),
        2,
        facts(Q, ("positive", add(a, neg(b)))),
    ),
    (
        add(mul(d, a), neg(mul(d, b))),
        facts(("positive", add(a, neg(b)))),
        1,
        facts(DD, ("positive", add(a, neg(b)))),
    ),
    (add(mul(c, a), neg(mul(c, b))), facts(("positive", add(a, neg(b)))), 0, NOTHING),
    (
        add(a, neg(b), q),
        facts(("nonnegative", add(a, neg(b)))),
        2,
        facts(Q, ("nonnegative", add(a, neg(b)))),
    ),
    (
        add(a, neg(b), d),
        facts(("nonnegative", add(a, neg(b)))),
        1,
        facts(DD, ("nonnegative", add(a, neg(b)))),
    ),
    (total(i, entry(X, i)), facts(("positive", X)), 2, facts(("positive", X))),
    (
        unary("log", a),
        facts(("nonnegative", add(a, num(-1)))),
        1,
        facts(("nonnegative", add(a, num(-1)))),
    ),
    (make("maximum", (a, b)), facts(POS), 2, facts(POS)),
    (stack(a, t, y, mul(y, q)), facts(POS), 2, facts(POS, Q)),
    (stack(a, t, y, mul(y, b)), facts(POS, ("positive", b)), 2, facts(POS, ("positive", b))),
    (i, facts(("nonnegative", mul(TWO, i))), 1, NOTHING),
    (total(j, entry(X, j)), facts(("positive", entry(X, ZERO))), 0, NOTHING),
    (
        total(j, power(entry(X, j), 2)),
        facts(("nonzero", entry(X, ZERO))),
        2,
        facts(("nonzero", entry(X, ZERO))),
    ),
    (
        total(j, make("maximum", (entry(D, j), entry(X, j)))),
        facts(("positive", entry(X, ZERO))),
        2,
        facts(("nonnegative", D), ("positive", entry(X, ZERO))),
    ),
    (add(q, mul(up_to(a, ZERO), b)), facts(POS), 2, facts(POS, Q)),
    (add(mul(up_to(ZERO, a), q), b, neg(mul(up_to(ZERO, a), b))), facts(NN), 2, facts(NN, Q)),
    (
        add(mul(up_to(ZERO, a), a), b, neg(c)),
        facts(NN, POS, ("nonnegative", add(b, neg(c)))),
        1,
        facts(POS, ("nonnegative", add(b, neg(c)))),
    ),
    (make("add", (P, a, neg(b)), shape=(n,)), facts(("positive", add(a, neg(b)))), 0, NOTHING),
    (add(up_to(a, BELOW), a, neg(b)), facts(("positive", add(a, neg(b)))), 0, NOTHING),
    (
        add(mul(q, X), neg(mul(q, Y))),
        facts(("positive", make("add", (X, neg(Y)), shape=(n,)))),
        0,
        NOTHING,
    ),
    (a, facts(("positive", add(a, neg(up_to(b, BELOW))))), 0, NOTHING),
    (
        add(mul(up_to(ZERO, a), b), c),
        facts(NN, ("positive", neg(a))),
        2,
        facts(NN, ("positive", neg(a))),
    ),
    (stack(q, t, y, mul(y, entry(XL, t))), facts(("positive", entry(XL, first_layer))), 0, NOTHING),
    (
        add(total(i, entry(X, i)), neg(total(i, entry(Y, i)))),
        facts(("nonnegative", add(entry(X, j0), neg(entry(Y, j0))))),
        0,
        NOTHING,
    ),
]

NOT_ZERO: list[tuple[Term, Facts, bool, Facts]] = [
    (ONE, NOTHING, True, NOTHING),
    (ZERO, NOTHING, False, NOTHING),
    (num(-3), NOTHING, True, NOTHING),
    (a, NOTHING, False, NOTHING),
    (a, facts(NZ), True, facts(NZ)),
    (neg(a), facts(NZ), True, facts(NZ)),
    (b, facts(NZ), False, NOTHING),
    (entry(X, i), facts(("nonzero", X)), False, NOTHING),
    (add(b, neg(a)), facts(("nonzero", add(a, neg(b)))), True, facts(("nonzero", add(a, neg(b))))),
    (add(a, b), facts(("nonzero", add(b, a))), True, facts(("nonzero", add(b, a)))),
    (a, facts(POS), True, facts(POS)),
    (a, facts(NN), False, facts(NN)),
    (power(a, 3), facts(NZ), True, facts(NZ)),
    (power(a, -1), facts(NZ), True, facts(NZ)),
    (power(a, 2), NOTHING, False, NOTHING),
    (unary("abs", a), facts(NZ), True, facts(NZ)),
    (power(BELOW, 2), NOTHING, False, NOTHING),
    (q, NOTHING, True, facts(Q)),
    (mul(a, b), facts(NZ, ("nonzero", b)), True, facts(NZ, ("nonzero", b))),
    (mul(a, b), facts(NZ), False, facts(NZ)),
    (mul(a, neg(q)), facts(NZ), True, facts(NZ, Q)),
    (unary("cos", ONE), NOTHING, True, NOTHING),
    (unary("cos", ZERO), NOTHING, True, NOTHING),
    (unary("cos", add(mul(HALF, u), ONE)), NOTHING, True, NOTHING),
    (unary("cos", PI), NOTHING, False, NOTHING),
    (unary("cos", mul(HALF, PI)), NOTHING, False, NOTHING),
    (unary("cos", a), NOTHING, False, NOTHING),
    (unary("sin", ONE), NOTHING, True, NOTHING),
    (unary("sin", ZERO), NOTHING, False, NOTHING),
    (unary("sin", n), NOTHING, True, NOTHING),
    (unary("sin", u), NOTHING, False, NOTHING),
    (unary("sin", i), NOTHING, False, NOTHING),
    (unary("sin", add(i, ONE)), NOTHING, True, NOTHING),
    (unary("sin", PI), NOTHING, False, NOTHING),
    (unary("sin", q), NOTHING, False, facts(Q)),
    (unary("exp", a), NOTHING, True, NOTHING),
    (unary("exp", BELOW), NOTHING, False, NOTHING),
    (BELOW, facts(NZ), False, NOTHING),
    (BELOW, facts(("nonzero", BELOW)), True, facts(("nonzero", BELOW))),
    (add(a, b), facts(NZ, ("nonzero", b)), False, NOTHING),
    (X, facts(("nonzero", X)), False, NOTHING),
    (power(BELOW, 2), facts(("nonzero", BELOW)), False, NOTHING),
]


@pytest.mark.parametrize(("t", "certain", "used"), FORM)
def test_what_a_form_settles(t: Term, certain: int, used: Facts) -> None:
    found, by = sign(t)
    assert found == certain
    assert not certain or by == used


@pytest.mark.parametrize(("t", "told", "certain", "used"), BY_FACTS)
def test_what_facts_settle(t: Term, told: Facts, certain: int, used: Facts) -> None:
    found, by = sign(t, told)
    assert found == certain
    assert not certain or by == used


@pytest.mark.parametrize(("t", "told", "certain", "used"), NOT_ZERO)
def test_what_is_certainly_not_0(t: Term, told: Facts, certain: bool, used: Facts) -> None:
    found, by = nonzero(t, told)
    assert found is certain
    assert not certain or by == used


# sums as they are compared


def test_sums_are_collected() -> None:
    half = Fraction(1, 2)
    assert collected(add(a, a, b)) == {(a,): 2, (b,): 1}
    assert collected(add(a, neg(a))) == {}
    assert collected(ZERO) == {}
    assert collected(mul(HALF, a, TWO, b)) == {tuple(sorted((a, b), key=lambda x: x.key)): 1}
    assert collected(power(a, 3)) == {(a, a, a): 1}
    assert collected(power(a, -2)) == {(power(a, -1),) * 2: 1}
    assert collected(power(a, 7)) == {(power(a, 7),): 1}
    assert collected(power(a, 6)) == {(a,) * 6: 1}
    assert collected(power(a, 0)) == {(power(a, 0),): 1}
    assert collected(mul(HALF, add(a, mul(TWO, b)))) == {(a,): half, (b,): 1}
    assert collected(a, half) == {(a,): half}
    assert collected(THREE, half) == {(): 3 * half}
    product = mul(q, add(a, b))
    assert collected(product) == {tuple(sorted(product.args, key=lambda x: x.key)): 1}
    assert as_term({}) is ZERO
    assert as_term({(): Fraction(1)}) is ONE
    assert as_term({(a,): Fraction(1)}) is a
    assert as_term({(a,): Fraction(2), (): Fraction(-1)}) is make("add", (num(-1), mul(TWO, a)))
    assert minus(a, a) is ZERO
    assert minus(add(a, b), b) is a
    assert minus(ZERO, a) is neg(a)


def test_products_are_divided() -> None:
    assert divided((a, b, a), (a,)) == (b, a)
    assert divided((a, b), (a, b)) == ()
    assert divided((a, b), ()) == (a, b)
    assert divided((a, b), (a, a)) is None
    assert divided((), (a,)) is None


def test_multiples_of_a_sum() -> None:
    def ways(own: Term, told: Term) -> set[tuple[Term, Term]]:
        found = multiples(collected(own), collected(told))
        return {(factor, as_term(rest)) for factor, rest in found}

    assert ways(add(a, b), a) == {(ONE, b)}
    assert ways(mul(TWO, a), a) == {(TWO, ZERO)}
    assert ways(neg(a), a) == set()
    assert ways(a, neg(a)) == set()
    assert ways(mul(q, a), a) == {(mul(ONE, q), ZERO)}
    assert ways(a, add(a, ONE)) == {(ONE, num(-1))}
    assert ways(add(a, b), add(a, neg(b))) == {(ONE, mul(TWO, b))}
    assert ways(a, ONE) == set()
    assert ways(mul(num(Fraction(-1, 2)), a), a) == set()
    assert ways(a, add(mul(TWO, a), b)) == {(HALF, mul(num(Fraction(-1, 2)), b))}
    assert ways(add(mul(TWO, a), b), add(a, b)) == {(TWO, neg(b)), (ONE, a)}


def test_the_conditions_of_a_sum() -> None:
    inner, other = holds(C), under_(b, a)
    assert set(closed_indicators(add(inner, mul(q, other)))) == {inner, other}
    assert closed_indicators(add(a, b)) == []
    assert closed_indicators(total(j, up_to(j, a))) == []
    assert (
        closed_indicators(make("indicator", (make("less", (X, Y), shape=(n,)),), shape=(n,))) == []
    )
    assert closed_indicators(up_to(BELOW, a)) == []


def test_what_a_condition_tells() -> None:
    for condition in (make("not", (C,)), make("equal", (C, C)), make("is in", (i, e))):
        assert case_facts(holds(condition), NOTHING) == (([], ()), ([], ()))
    after, before = ("positive", minus(b, a)), ("nonnegative", minus(a, b))
    assert [told for told, _ in case_facts(under_(a, b), NOTHING)] == [[after], [before]]
    after, before = ("nonnegative", minus(v, u)), ("nonnegative", minus(u, add(v, ONE)))
    assert [told for told, _ in case_facts(up_to(u, v), NOTHING)] == [[after], [before]]


ORDERED: list[tuple[Term, Term, Facts]] = [
    *((unary(f, a), unary(f, add(a, q)), facts(Q)) for f in ("exp", "tanh")),
    (unary("log", q), unary("log", add(q, r)), facts(Q, R)),
    (unary("sqrt", d), unary("sqrt", add(d, q)), facts(Q, DD)),
    (power(add(q, d), -1), power(q, -1), facts(Q, DD)),
    (make("maximum", (a, b)), make("maximum", (add(a, q), b)), facts(Q)),
    (total(i, entry(X, i)), total(i, add(entry(X, i), q)), facts(Q)),
    (up_to(a, b), up_to(a, add(b, q)), facts(Q)),
    (under_(a, b), up_to(a, b), NOTHING),
    (under_(a, b), under_(a, add(b, d)), facts(DD)),
    (up_to(a, b), under_(a, add(b, q)), facts(Q)),
    (mul(q, unary("exp", a)), mul(q, unary("exp", add(a, r))), facts(Q, R)),
    (mul(d, holds(C)), d, facts(DD)),
    (mul(q, unary("cos", a)), q, facts(Q)),
    (d, mul(d, n), facts(DD)),
    (mul(holds(C), q), mul(q, n), facts(Q)),
    (num(-1), unary("tanh", a), NOTHING),
    (same(a, b), up_to(a, b), NOTHING),
    (add(up_to(a, b), up_to(c, y)), add(under_(a, add(b, q)), under_(c, add(y, q))), facts(Q)),
    (unary("exp", q), unary("exp", add(q, r)), facts(R)),
    (
        mul(unary("tanh", q), unary("exp", a)),
        mul(unary("tanh", add(q, r)), unary("exp", add(a, r))),
        facts(Q, R),
    ),
    (total(i, entry(P, i)), total(i, add(entry(P, i), q)), facts(Q)),
    (make("maximum", (q, a)), make("maximum", (add(q, r), a)), facts(R)),
    (
        unary("exp", d),
        mul(*(unary("exp", add(d, mul(num(k), q))) for k in (1, 2, 3))),
        facts(Q, DD),
    ),
]
UNORDERED: list[tuple[Term, Term]] = [
    *((unary(f, a), unary(f, b)) for f in ("exp", "tanh", "log", "sqrt")),
    *((unary(f, a), unary(f, add(a, q))) for f in ("log", "sqrt", "cos", "sin", "abs")),
    (power(q, -1), power(add(q, d), -1)),
    (power(add(a, q), -1), power(a, -1)),
    (unary("log", d), unary("log", add(d, q))),
    (power(add(d, q), -1), power(d, -1)),
    (power(a, 3), power(add(a, q), 3)),
    (make("maximum", (a, b)), make("maximum", (add(a, q), c))),
    (total(i, ONE), total(index("z", m), ONE)),
    (total(i, entry(X, i)), total(i, add(entry(X, i), a))),
    (up_to(a, b), under_(a, b)),
    (up_to(a, b), under_(a, add(b, d))),
    (up_to(a, add(b, q)), up_to(a, b)),
    (under_(a, b), under_(a, add(b, a))),
    (mul(a, unary("exp", b)), mul(a, unary("exp", add(b, q)))),
    (mul(a, holds(C)), a),
    (mul(d, n), d),
    (q, mul(q, holds(C))),
    (mul(q, unary("cos", a)), mul(HALF, q)),
    (holds(make("equal", (a, b))), holds(make("equal", (a, add(b, q))))),
    (unary("exp", a), mul(n, unary("exp", add(a, b)))),
    (unary("exp", BELOW), unary("exp", a)),
    (mul(a, b), mul(add(a, q), add(b, q))),
    (mul(q, r), mul(add(q, ONE), r, HALF)),
    (mul(unary("tanh", a), unary("cos", b)), unary("tanh", add(a, q))),
    (unary("tanh", a), mul(unary("tanh", add(a, q)), n)),
    (power(add(q, d), 7), power(q, 7)),
    (power(add(q, r), -7), power(q, -7)),
    (power(q, -7), power(q, -1)),
    (up_to(a, b), same(a, b)),
    (total(i, entry(X, j0)), total(i, entry(X, i))),
    (total(i, entry(X, i)), total(i, entry(X, j0))),
    (unary("exp", BELOW), unary("exp", add(BELOW, q))),
    (unary("exp", up_to(a, BELOW)), unary("exp", ONE)),
    (unary("exp", q), unary("exp", add(q, up_to(a, BELOW)))),
]


@pytest.mark.parametrize(("small", "large", "used"), ORDERED)
def test_what_is_certainly_no_larger(small: Term, large: Term, used: Facts) -> None:
    certain, by = sign(minus(large, small))
    assert certain
    assert by == used
    assert not sign(minus(small, large))[0]


@pytest.mark.parametrize(("small", "large"), UNORDERED)
def test_what_may_be_larger(small: Term, large: Term) -> None:
    assert not sign(add(large, neg(small)))[0]


def test_signs_of_what_is_over_a_space() -> None:
    assert sign(entry(var("S", space, kind="positive"), outcome))[0] == 2
    assert sign(mul(u, v)) == (1, NOTHING)
