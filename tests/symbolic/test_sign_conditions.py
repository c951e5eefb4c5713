"""Signs by their form and by facts: each line says how much is certain, and what it rests on."""

from __future__ import annotations

from fractions import Fraction

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
from attnproof.symbolic.signs import nonzero, sign
from attnproof.symbolic.terms import Term, make
from tests.cases import each
from tests.symbolic.vocabulary import (
    HALF,
    PI,
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
    holds,
    i,
    j,
    less_one,
    n,
    outcome,
    q,
    same,
    spread,
    stack,
    total,
    u,
    under_,
    up_to,
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
    (add(ONE, neg(unary("tanh", a))), 2, NOTHING),
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
    (add(q, *(mul(up_to(ZERO, x), x) for x in (a, b, c, y))), 2, facts(Q)),
    (add(q, *(mul(up_to(ZERO, x), z) for x, z in ((a, b), (b, c), (c, y), (y, a)))), 0, NOTHING),
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


@each(FORM)
def test_what_a_form_settles(t: Term, certain: int, used: Facts) -> None:
    found, by = sign(t)
    assert found == certain
    assert not certain or by == used


@each(BY_FACTS)
def test_what_facts_settle(t: Term, told: Facts, certain: int, used: Facts) -> None:
    found, by = sign(t, told)
    assert found == certain
    assert not certain or by == used


@each(NOT_ZERO)
def test_what_is_certainly_not_0(t: Term, told: Facts, certain: bool, used: Facts) -> None:
    found, by = nonzero(t, told)
    assert found is certain
    assert not certain or by == used
