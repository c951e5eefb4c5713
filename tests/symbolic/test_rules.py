"""Every rule against numbers: what it says is equal is equal, and what it must refuse it does."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnproof.symbolic.derivation import Rewrite
from attnproof.symbolic.kernel import Refused, close, replay
from attnproof.symbolic.normal_form.polynomial import expand, to_term
from attnproof.symbolic.rules import RULES
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
    size,
    unary,
)  # fmt: skip
from attnproof.symbolic.terms import Term, make
from tests.symbolic.interpreter import Undefined, World, close_to
from tests.symbolic.vocabulary import (
    HALF,
    THREE,
    TWO,
    A,
    X,
    Y,
    a,
    b,
    chosen,
    e,
    g,
    granted_by_kind,
    holds,
    i,
    inverse,
    j,
    k,
    less_one,
    m,
    minus,
    n,
    q,
    s,
    same,
    table,
    total,
    under_,
    up_to,
    var,
)  # fmt: skip

TOTAL = total(j, entry(X, j))
EXP = unary("exp", a)
CAUSE = make("less_equal", (j, i))
TWO_N = mul(TWO, n)
pair = index("w", TWO_N)
W = var("W", TWO_N)
ROTATED = make("gather", (A, s), 0, (n, n))
MASK = make("entry", (var("M", n, kind="boolean"), i))
moved = table(j, entry(X, entry(s, j)))
still = table(j, entry(X, j))


def equivariant(rows: Term) -> Term:
    return make("call", (rows,), ("F", 0, ("equivariant",)), rows.shape)


HOLDS: list[tuple[str, Term, tuple[object, ...]]] = [
    ("definition", make("named", (add(X, Y), X, Y), ("sum of two",), (n,)), ()),
    ("entry", entry(ROTATED, i, j), ()),
    ("entry", make("matmul", (X, Y)), ()),
    ("tabulate", make("matmul", (A, A), shape=(n, n)), ()),
    ("ring", power(add(a, b), 3), (to_term(expand(power(add(a, b), 3))),)),
    ("ring", mul(q, b, power(q, -1)), (b, q)),
    ("ring", mul(TOTAL, power(mul(a, b), -1)), (mul(TOTAL, power(b, -1), power(a, -1)),)),
    ("ring", power(ZERO, -1), (ZERO,)),
    ("ring", power(ZERO, 0), (ONE,)),
    ("ring", power(power(a, -1), -1), (a,)),
    ("exp", unary("exp", add(a, minus(mul(TWO, b)))), (mul(EXP, power(unary("exp", b), -2)),)),
    ("exp", unary("exp", ZERO), (ONE,)),
    ("exp", unary("exp", MINUS_INFINITY), (ZERO,)),
    ("angle addition", unary("cos", add(a, b)), (a, b)),
    ("angle addition", unary("sin", add(a, minus(b))), (a, minus(b))),
    ("parity", unary("cos", minus(a)), (a,)),
    ("parity", unary("sin", minus(a)), (a,)),
    ("zero angle", unary("cos", add(a, minus(a))), ()),
    ("zero angle", unary("sin", ZERO), ()),
    ("sin² + cos² = 1", power(unary("sin", a), 2), ()),
    ("root", power(unary("sqrt", q), 2), ()),
    ("root", power(unary("sqrt", n), -2), ()),
    ("absolute value", unary("abs", add(a, minus(b))), (unary("abs", add(b, minus(a))),)),
    ("absolute value", unary("abs", mul(q, EXP)), (mul(EXP, q),)),
    ("ordered absolute value", mul(up_to(i, j), unary("abs", add(i, minus(j))), a),
     (unary("abs", add(i, minus(j))),)),
    ("maximum", make("maximum", (make("maximum", (a, b)), MINUS_INFINITY)),
     (make("maximum", (b, make("maximum", (a, b)))),)),
    ("where", chosen(MASK, a, b), ()),
    ("push", add(a, chosen(MASK, b, MINUS_INFINITY)), (1,)),
    ("push", power(chosen(MASK, a, ZERO), -1), (0,)),
    ("push", unary("exp", chosen(MASK, a, MINUS_INFINITY)), (0,)),
    ("infinity", add(a, MINUS_INFINITY, MINUS_INFINITY), ()),
    ("infinity", mul(q, MINUS_INFINITY, EXP), ()),
    ("indicator", holds(make("not", (CAUSE,))), ()),
    ("indicator", holds(make("and", (CAUSE, MASK))), ()),
    ("indicator", holds(make("and", (make("not", (MASK,)), CAUSE))), ()),
    ("indicator", holds(make("or", (CAUSE, make("or", (MASK, MASK))))), ()),
    ("indicator power", power(holds(MASK), 3), ()),
    ("comparison", same(add(i, j), k), (minus(j), add(i, minus(k)))),
    ("comparison", same(a, b), (b, a)),
    ("comparison", up_to(a, b), (minus(b), minus(a))),
    ("comparison", under_(a, b), (add(a, minus(b)), ZERO)),
    ("decide", same(i, add(i, n)), ()),
    ("decide", same(add(i, j), add(j, i)), ()),
    ("decide", up_to(add(i, ONE), n), ()),
    ("decide", under_(i, i), ()),
    ("decide", under_(mul(i, m), mul(n, m)), ()),
    ("decide", up_to(n, i), ()),
    ("equals for equals", mul(same(i, j), entry(X, i), TOTAL), (i, j)),
    ("equals for equals", mul(EXP, same(a, b), a), (b, a)),
    ("distribute", total(j, add(entry(X, j), minus(entry(Y, j)), ONE)), ()),
    ("factor", total(j, mul(a, TOTAL, entry(X, j))), (2,)),
    ("factor", total(j, mul(a, b)), (2,)),
    ("constant", total(j, ONE), ()),
    ("constant", total(index("z", less_one(n)), ZERO), ()),
    ("constant", total(index("z", less_one(n)), ONE), ()),
    ("exchange", total(j, total(k, mul(entry(X, j), k))), ()),
    ("reindex", total(j, mul(entry(X, j), j)), (s,)),
    ("reindex", total(j, mul(entry(X, j), j)), (inverse,)),
    ("delta", total(j, mul(same(j, i), entry(X, j), entry(A, j, i))), ()),
    ("delta", total(j, same(entry(s, i), j)), ()),
    ("radix", total(pair, mul(entry(W, pair), pair)), (n, TWO)),
    ("radix", total(pair, mul(entry(W, pair), pair)), (TWO, n)),
    ("cut", total(j, mul(entry(X, j), j)), (ONE,)),
    ("cut", total(pair, mul(entry(W, pair), pair)), (n,)),
    ("unroll", total(index("z", THREE), mul(a, index("z", THREE))), ()),
    ("unroll", total(index("z", ZERO), a), ()),
    ("orthogonal", total(j, mul(entry(g, j, i), entry(g, j, entry(s, i)))), ()),
    ("orthogonal", total(j, mul(entry(g, i, j), entry(g, i, j))), ()),
    ("permutation", entry(s, entry(inverse, i)), ()),
    ("permutation", entry(inverse, entry(s, i)), ()),
    ("injective", same(entry(s, i), j), ()),
    ("injective", same(entry(e, k), entry(e, index("k2", m))), ()),
    ("image", holds(make("is in", (i, e))), ()),
    ("digits", same(add(mul(i, m), k), add(mul(j, m), index("k2", m))), (m,)),
    ("digits", same(add(mul(TWO, i), index("z", TWO)), mul(TWO, j)), (TWO,)),
    ("divide", make("floor_divide", (add(mul(i, m), k), m)), ()),
    ("divide", make("remainder", (add(mul(i, m), k), m)), ()),
    ("divide", make("remainder", (add(mul(num(4), n, i), index("z", TWO)), TWO)), ()),
    ("integer", mul(TWO, add(i, n, minus(i))), ()),
    ("hypothesis", entry(X, i), (X, make("named", (X,), ("the same",), (n,)))),
    ("equivariance", entry(equivariant(moved), i), (s, still)),
]  # fmt: skip


def worlds(count: int = 12, largest: int = 3) -> list[World]:
    return [World(seed, largest) for seed in range(count)]


def agreements(before: Term, after: Term, count: int = 12) -> list[bool]:
    """Whether two terms agree, in every world where both have a value."""
    found = []
    for world in worlds(count):
        try:
            found.append(close_to(world(before), world(after)))
        except Undefined:
            continue
    return found


def test_every_rule_has_a_case() -> None:
    assert {rule for rule, _, _ in HOLDS} == set(RULES)


@pytest.mark.parametrize(("rule", "t", "arguments"), HOLDS)
def test_a_rule_keeps_the_value(rule: str, t: Term, arguments: tuple[object, ...]) -> None:
    after, assumed = RULES[rule](t, *arguments)
    proof = replay(Rewrite(rule, t, arguments, after))
    told = {("equal", x) for name, x in assumed if name == "equal"}
    told |= {(name, x) for name, x in assumed if name == "equivariant"}
    close(proof, granted_by_kind(t, after) | told, ("=", t, after))
    found = agreements(t, after)
    assert len(found) >= 4
    assert all(found)


integers = st.integers(-3, 3)
atoms = st.sampled_from([a, b, EXP, q, TOTAL, entry(X, i), holds(CAUSE)])


def larger(inner: st.SearchStrategy[Term]) -> st.SearchStrategy[Term]:
    sums = st.lists(inner, min_size=2, max_size=3).map(lambda parts: add(*parts))
    products = st.lists(inner, min_size=2, max_size=3).map(lambda parts: mul(*parts))
    powers = st.tuples(inner, st.integers(0, 3)).map(lambda x: power(*x))
    inverses = st.tuples(atoms, st.integers(-2, -1)).map(lambda x: power(*x))
    return sums | products | powers | inverses


numbers = st.recursive(atoms | integers.map(num), larger, max_leaves=6)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(numbers, st.integers(0, 99))
def test_an_expanded_polynomial_has_the_same_value(t: Term, seed: int) -> None:
    target = to_term(expand(t))
    cancelled = tuple(x for x in (q, EXP) if target is not t)
    after, _ = RULES["ring"](t, target, *cancelled)
    world = World(seed)
    assert close_to(world(t), world(after))
    for false in (add(target, ONE), add(target, mul(HALF, a)), mul(target, num(2)), minus(target)):
        if not close_to(world(target), world(false)):
            with pytest.raises(Refused):
                RULES["ring"](t, false, *cancelled)


places = st.sampled_from([i, j, k, n, m, ONE, TWO, ZERO])
linear = st.lists(st.tuples(integers, places, places), max_size=4).map(
    lambda parts: add(*(mul(num(z), x, y) for z, x, y in parts))
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(linear, linear, st.sampled_from(["equal", "less", "less_equal"]))
def test_a_decided_comparison_is_decided_rightly(x: Term, y: Term, op: str) -> None:
    t = holds(make(op, (x, y)))
    for source, rule, arguments in ((t, "decide", ()), (same(x, y), "digits", (m,))):
        try:
            after, _ = RULES[rule](source, *arguments)
        except Refused:
            continue
        assert all(agreements(source, after, 8))
    assert all(agreements(x, integer(x), 4))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(linear, st.sampled_from([m, TWO, mul(TWO, m), n]))
def test_a_division_that_is_done_is_done_rightly(x: Term, width: Term) -> None:
    for op in ("floor_divide", "remainder"):
        t = make(op, (x, width))
        try:
            after, _ = RULES["divide"](t)
        except Refused:
            continue
        assert all(agreements(t, after, 8))


def test_an_exponent_may_be_large() -> None:
    large = 10**18
    after, _ = RULES["ring"](mul(power(a, large), power(a, large)), power(a, 2 * large))
    assert after is power(a, 2 * large)
    with pytest.raises(Refused):
        RULES["ring"](power(a, large), power(a, large + 1))
    with pytest.raises(Refused):
        RULES["indicator power"](power(holds(MASK), 0))


def test_symbols_do_not_collide_with_those_of_the_polynomial_ring() -> None:
    x0, x1 = var("x0"), var("x1")
    with pytest.raises(Refused):
        RULES["ring"](x0, x1)
    with pytest.raises(Refused):
        RULES["ring"](mul(x0, x1), ONE, q)
    assert size("x0") is not x0
    assert num(Fraction(1, 2)) is HALF
