"""What every rule must refuse: each line would be false, or would rest on nothing."""

from __future__ import annotations

import pytest

from attnproof.symbolic.derivation import Rewrite
from attnproof.symbolic.kernel import Refused, close, replay
from attnproof.symbolic.rules import RULES, sign
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
from attnproof.symbolic.terms import Term, make
from tests.symbolic.vocabulary import (
    HALF,
    THREE,
    TWO,
    A,
    P,
    X,
    Y,
    a,
    b,
    chosen,
    e,
    f,
    g,
    granted_by_kind,
    holds,
    i,
    inverse,
    j,
    k,
    m,
    minus,
    n,
    q,
    s,
    same,
    spread,
    table,
    total,
    under_,
    up_to,
    var,
)  # fmt: skip

EXP = unary("exp", a)
C = make("less_equal", (j, i))
MASK = make("entry", (var("M", n, kind="boolean"), i))
BELOW_MINUS_INFINITY = chosen(C, a, MINUS_INFINITY)
TWO_N = mul(TWO, n)
pair = index("w", TWO_N)
t_ = var("t", n, kind="permutation", below=n)
other = var("o", m, kind="permutation", below=m)
tall, wide = var("g", m, n, kind="orthogonal"), var("g", n, m, kind="orthogonal")
wider = var("f2", n, kind="index map", below=TWO_N)
OUT = add(i, ONE)
moved = table(j, entry(X, entry(s, j)))
F: tuple[object, ...] = ("F", 0, ("equivariant",))
SUM = total(j, entry(X, j))


def call(rows: Term, *shape: Term, data: tuple[object, ...] = F) -> Term:
    return make("call", (rows,), data, shape or rows.shape)


REFUSED: list[tuple[str, Term, tuple[object, ...]]] = [
    ("definition", add(a, b), ()),
    ("entry", entry(make("matmul", (A, A), shape=(n, n)), OUT, j), ()),
    ("entry", entry(X, i), ()),
    ("entry", entry(make("concat", (X, Y), 0, (TWO_N,)), pair), ()),
    ("tabulate", a, ()),
    ("ring", mul(a, power(a, -1)), (ONE,)),
    ("ring", mul(a, power(a, -1)), (ONE, a)),
    ("ring", mul(b, power(b, -1)), (ONE, q)),
    ("ring", mul(i, power(i, -1)), (ONE, i)),
    ("ring", mul(holds(C), power(holds(C), -1)), (ONE, holds(C))),
    ("ring", power(ZERO, -1), (ONE,)),
    ("ring", mul(ZERO, power(ZERO, -1)), (ONE,)),
    ("ring", mul(ZERO, MINUS_INFINITY), (ZERO,)),
    ("ring", add(MINUS_INFINITY, minus(MINUS_INFINITY)), (ZERO,)),
    ("ring", add(BELOW_MINUS_INFINITY, minus(BELOW_MINUS_INFINITY)), (ZERO,)),
    ("ring", ZERO, (mul(ZERO, MINUS_INFINITY),)),
    ("ring", power(add(a, b), -1), (add(power(a, -1), power(b, -1)),)),
    ("ring", make("add", (X, Y), shape=(n,)), (make("add", (Y, X), shape=(n,)),)),
    ("exp", EXP, (mul(EXP, EXP),)),
    ("exp", EXP, (power(EXP, -1),)),
    ("exp", EXP, (add(EXP, ZERO),)),
    ("exp", unary("exp", add(a, b)), (add(EXP, unary("exp", b)),)),
    ("exp", unary("exp", MINUS_INFINITY), (ONE,)),
    ("exp", unary("exp", add(a, MINUS_INFINITY)), (mul(EXP, unary("exp", MINUS_INFINITY)),)),
    ("exp", unary("exp", mul(a, b)), (mul(EXP, unary("exp", b)),)),
    ("angle addition", unary("cos", a), (a, b)),
    ("angle addition", EXP, (a, ZERO)),
    ("parity", unary("sin", a), (a,)),
    ("zero angle", unary("cos", a), ()),
    ("sin² + cos² = 1", power(unary("sin", a), 3), ()),
    ("sin² + cos² = 1", power(unary("cos", a), 2), ()),
    ("root", power(unary("sqrt", a), 2), ()),
    ("root", power(unary("sqrt", q), 3), ()),
    ("absolute value", unary("abs", a), (a,)),
    ("absolute value", unary("abs", minus(q)), (minus(q),)),
    ("absolute value", unary("abs", add(i, minus(j))), (add(i, minus(j)),)),
    ("absolute value", unary("abs", a), (unary("abs", b),)),
    ("ordered absolute value", mul(up_to(i, k), unary("abs", add(i, minus(j)))),
     (unary("abs", add(i, minus(j))),)),
    ("ordered absolute value", mul(holds(make("equal", (i, j))), unary("abs", add(a, minus(b)))),
     (unary("abs", add(a, minus(b))),)),
    ("maximum", make("maximum", (a, b)), (a,)),
    ("maximum", make("maximum", (MINUS_INFINITY, MINUS_INFINITY)), (a,)),
    ("where", BELOW_MINUS_INFINITY, ()),
    ("push", add(ONE, chosen(C, ZERO, ZERO)), (-1,)),
    ("push", add(chosen(C, a, b), ONE), (True,)),
    ("push", add(ONE, a), (1,)),
    ("push", make("abs", (chosen(C, a, b),)), (0,)),
    ("infinity", add(BELOW_MINUS_INFINITY, MINUS_INFINITY), ()),
    ("infinity", mul(a, MINUS_INFINITY), ()),
    ("infinity", mul(ZERO, MINUS_INFINITY), ()),
    ("infinity", mul(i, MINUS_INFINITY), ()),
    ("infinity", mul(holds(C), MINUS_INFINITY), ()),
    ("infinity", mul(num(-1), MINUS_INFINITY), ()),
    ("infinity", mul(MINUS_INFINITY, MINUS_INFINITY), ()),
    ("infinity", add(a, b), ()),
    ("indicator", holds(C), ()),
    ("indicator power", power(holds(C), 0), ()),
    ("indicator power", power(a, 2), ()),
    ("comparison", up_to(a, b), (b, a)),
    ("comparison", under_(a, b), (b, a)),
    ("comparison", same(a, b), (a, minus(b))),
    ("decide", same(i, j), ()),
    ("decide", same(a, b), ()),
    ("decide", up_to(i, j), ()),
    ("decide", under_(ONE, n), ()),
    ("decide", under_(OUT, n), ()),
    ("decide", same(HALF, ONE), ()),
    ("decide", holds(make("and", (C, C))), ()),
    ("decide", holds(make("or", (C, C))), ()),
    ("decide", holds(make("is in", (i, e))), ()),
    ("decide", holds(MASK), ()),
    ("equals for equals", mul(entry(X, i), TWO), (i, j)),
    ("equals for equals", mul(up_to(i, j), entry(X, i)), (i, j)),
    ("equals for equals", mul(same(n, m), entry(X, i)), (n, m)),
    ("equals for equals", mul(same(n, mul(ONE, n)), entry(X, i)), (n, mul(ONE, n))),
    ("equals for equals", mul(same(i, j), i, MINUS_INFINITY), (i, j)),
    ("distribute", total(j, add(entry(X, j), MINUS_INFINITY)), ()),
    ("distribute", total(j, mul(entry(X, j), a)), ()),
    ("factor", total(j, TWO), (None,)),
    ("factor", total(j, TWO), (0,)),
    ("factor", total(j, mul(a, entry(X, j))), (-1,)),
    ("factor", total(j, mul(a, entry(X, j))), (True,)),
    ("factor", total(j, mul(entry(X, j), a)), (1,)),
    ("factor", total(j, mul(a, MINUS_INFINITY)), (1,)),
    ("constant", total(j, TWO), ()),
    ("constant", total(j, j), ()),
    ("constant", total(index("z", num(-2)), ONE), ()),
    ("constant", total(index("z", HALF), ONE), ()),
    ("constant", total(index("z", add(n, num(-2))), ONE), ()),
    ("exchange", total(j, entry(X, j)), ()),
    ("reindex", total(j, entry(X, j)), (other,)),
    ("reindex", total(j, entry(X, j)), (e,)),
    ("reindex", total(j, entry(X, j)), (X,)),
    ("delta", total(j, mul(same(j, OUT), entry(X, j))), ()),
    ("delta", total(j, same(j, n)), ()),
    ("delta", total(j, same(j, num(-1))), ()),
    ("delta", total(j, same(j, HALF)), ()),
    ("delta", total(j, same(j, a)), ()),
    ("delta", total(j, same(j, j)), ()),
    ("delta", total(j, same(j, entry(s, j))), ()),
    ("delta", total(j, same(j, entry(wider, i))), ()),
    ("delta", total(j, same(i, k)), ()),
    ("delta", total(j, mul(entry(X, j), same(j, i))), ()),
    ("delta", total(j, mul(same(j, i), MINUS_INFINITY)), ()),
    ("radix", total(pair, entry(X, i)), (n, n)),
    ("radix", total(pair, entry(X, i)), (mul(num(-1), n), num(-2))),
    ("radix", total(pair, entry(X, i)), (mul(num(4), n), HALF)),
    ("radix", total(index("z", ZERO), ONE), (ZERO, n)),
    ("cut", total(j, entry(X, j)), (add(n, ONE),)),
    ("cut", total(j, entry(X, j)), (num(-1),)),
    ("cut", total(j, entry(X, j)), (TWO,)),
    ("cut", total(j, entry(X, j)), (HALF,)),
    ("unroll", total(j, entry(X, j)), ()),
    ("unroll", total(index("z", THREE), MINUS_INFINITY), ()),
    ("orthogonal", total(k, mul(entry(tall, k, i), entry(tall, k, j))), ()),
    ("orthogonal", total(j, mul(entry(wide, j, k), entry(wide, j, k))), ()),
    ("orthogonal", total(k, mul(entry(g, k, i), entry(g, k, j))), ()),
    ("orthogonal", total(index("z", add(n, num(-1))), mul(
        entry(g, index("z", add(n, num(-1))), i), entry(g, index("z", add(n, num(-1))), j))), ()),
    ("orthogonal", total(j, mul(entry(g, j, i), entry(var("h", n, n, kind="orthogonal"), j, i))),
     ()),
    ("orthogonal", total(j, mul(entry(g, j, i), entry(g, i, j))), ()),
    ("orthogonal", total(j, mul(entry(g, j, j), entry(g, j, i))), ()),
    ("orthogonal", total(j, mul(entry(g, j, OUT), entry(g, j, OUT))), ()),
    ("orthogonal", total(j, mul(TWO, entry(g, j, i), entry(g, j, i))), ()),
    ("permutation", entry(s, entry(s, i)), ()),
    ("permutation", entry(s, entry(make("inverse", (t_,), shape=(n,)), i)), ()),
    ("permutation", entry(inverse, entry(s, OUT)), ()),
    ("permutation", entry(X, entry(make("inverse", (X,), shape=(n,)), i)), ()),
    ("injective", same(entry(e, k), i), ()),
    ("injective", same(entry(s, i), entry(t_, j)).args[0], ()),
    ("injective", same(entry(s, i), n), ()),
    ("injective", same(entry(s, i), a), ()),
    ("injective", same(entry(s, OUT), entry(s, i)), ()),
    ("injective", same(entry(X, i), entry(Y, j)), ()),
    ("image", same(i, j), ()),
    ("digits", same(add(mul(TWO, i), k), add(mul(TWO, j), k)), (TWO,)),
    ("digits", same(add(mul(TWO, i), minus(ONE)), mul(THREE, j)), (THREE,)),
    ("digits", same(add(mul(m, a), k), k), (m,)),
    ("digits", same(add(mul(i, m), k), k), (n,)),
    ("digits", same(i, j), (ZERO,)),
    ("divide", make("remainder", (add(mul(TWO, i), k), TWO)), ()),
    ("divide", make("remainder", (minus(i), n)), ()),
    ("divide", make("floor_divide", (add(mul(a, m), k), m)), ()),
    ("divide", make("floor_divide", (i, ZERO)), ()),
    ("divide", make("remainder", (add(n, ONE), n)), ()),
    ("integer", add(a, MINUS_INFINITY), ()),
    ("hypothesis", entry(X, i), (Y, X)),
    ("hypothesis", entry(X, OUT), (X, Y)),
    ("hypothesis", entry(X, i), (X, var("Z", m))),
    ("equivariance", entry(call(moved), i), (t_, table(j, entry(X, j)))),
    ("equivariance", entry(call(moved), i), (inverse, table(j, entry(X, j)))),
    ("equivariance", entry(call(moved), i), (s, table(j, entry(Y, j)))),
    ("equivariance", entry(call(moved), OUT), (s, table(j, entry(X, j)))),
    ("equivariance", entry(call(moved, m), k), (s, table(j, entry(X, j)))),
    ("equivariance", entry(call(table(j, entry(A, entry(s, j), j))), i),
     (s, table(j, entry(X, j)))),
]  # fmt: skip


def test_every_rule_is_seen_to_refuse() -> None:
    always = {"image", "hypothesis", "equivariance", "exchange"}
    assert {rule for rule, _, _ in REFUSED} | always == set(RULES)


@pytest.mark.parametrize(("rule", "t", "arguments"), REFUSED)
def test_a_rule_refuses(rule: str, t: Term, arguments: tuple[object, ...]) -> None:
    with pytest.raises(Refused):
        RULES[rule](t, *arguments)


NOT_GRANTED: list[tuple[str, Term, tuple[object, ...]]] = [
    ("reindex", SUM, (f,)),
    ("reindex", SUM, (make("inverse", (f,), shape=(n,)),)),
    ("permutation", entry(f, entry(make("inverse", (f,), shape=(n,)), i)), ()),
    ("injective", same(entry(f, i), entry(f, j)), ()),
    ("injective", same(entry(f, i), j), ()),
    ("image", holds(make("is in", (i, f))), ()),
    ("orthogonal", total(j, mul(entry(A, j, i), entry(A, j, i))), ()),
    ("equivariance", entry(call(moved, data=("F", 0, ())), i), (s, table(j, entry(X, j)))),
    ("equivariance", entry(call(moved, data=("G", 0, ("equivariant",))), i),
     (s, table(j, entry(X, j)))),
    ("hypothesis", entry(X, i), (X, Y)),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "t", "arguments"), NOT_GRANTED)
def test_an_assumption_of_nobody_closes_nothing(
    rule: str, t: Term, arguments: tuple[object, ...]
) -> None:
    after, _ = RULES[rule](t, *arguments)
    proof = replay(Rewrite(rule, t, arguments, after))
    granted = granted_by_kind(t, after) | {("equivariant", make("function", data=F))}
    with pytest.raises(Refused, match="nobody granted"):
        close(proof, granted, ("=", t, after))


@pytest.mark.parametrize(
    ("certain", "t"),
    [
        (2, n), (2, EXP), (2, entry(P, i)), (2, add(EXP, i)), (2, mul(n, EXP)), (2, SUM.args[0]),
        (2, total(j, unary("exp", entry(X, j)))), (2, total(j, same(i, j))), (2, power(q, -1)),
        (1, i), (1, holds(C)), (1, mul(EXP, i)), (1, power(a, 2)), (1, power(a, -2)),
        (1, unary("abs", a)), (1, unary("exp", BELOW_MINUS_INFINITY)), (1, unary("sqrt", i)),
        (1, total(index("z", integer(add(n, num(-1)))), ONE)), (1, total(j, same(k, j))),
        (1, ZERO), (1, total(j, up_to(j, k))),
        (0, a), (0, minus(ONE)), (0, minus(EXP)), (0, mul(minus(EXP), minus(EXP))), (0, SUM),
        (0, add(EXP, a)), (0, power(a, 3)), (0, power(a, -1)), (0, MINUS_INFINITY),
        (0, unary("sqrt", a)), (0, unary("cos", a)), (0, mul(EXP, MINUS_INFINITY)),
        (0, add(EXP, BELOW_MINUS_INFINITY)), (0, power(MINUS_INFINITY, 2)),
        (0, unary("abs", MINUS_INFINITY)), (0, make("maximum", (a, MINUS_INFINITY))),
        (0, unary("log", q)), (0, minus(spread(ONE))),
    ],
)  # fmt: skip
def test_a_sign_is_certain_only_from_the_form(certain: int, t: Term) -> None:
    assert sign(t)[0] == certain
