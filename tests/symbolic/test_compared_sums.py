"""Sums as they are compared: collected, divided, conditioned and ordered."""

from __future__ import annotations

from fractions import Fraction

from attnproof.symbolic.linear import as_term, collected, divided, minus, multiples
from attnproof.symbolic.rules.base import NOTHING
from attnproof.symbolic.scalars import ONE, ZERO, add, entry, index, mul, num, power, unary
from attnproof.symbolic.signs import case_facts, closed_indicators, sign
from attnproof.symbolic.terms import Term, make
from tests.cases import each
from tests.symbolic.test_sign_conditions import BELOW, DD, C, Facts, Q, R, d, facts, j0, neg, r, y
from tests.symbolic.vocabulary import (
    HALF,
    THREE,
    TWO,
    P,
    X,
    Y,
    a,
    b,
    c,
    e,
    holds,
    i,
    j,
    m,
    n,
    outcome,
    q,
    same,
    space,
    total,
    u,
    under_,
    up_to,
    v,
    var,
)


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


@each(ORDERED)
def test_what_is_certainly_no_larger(small: Term, large: Term, used: Facts) -> None:
    certain, by = sign(minus(large, small))
    assert certain
    assert by == used
    assert not sign(minus(small, large))[0]


@each(UNORDERED)
def test_what_may_be_larger(small: Term, large: Term) -> None:
    assert not sign(add(large, neg(small)))[0]


def test_signs_of_what_is_over_a_space() -> None:
    assert sign(entry(var("S", space, kind="positive"), outcome))[0] == 2
    assert sign(mul(u, v)) == (1, NOTHING)
