"""Each condition of a rule by its words, and each rule's result as it is written.

Every line of ``REFUSED`` breaks one condition and no other, and names the words with which the
rule refuses; ``EXACT`` says what comes out; ``NAMES`` has indices that bear the names which a
rule would take for its own.
"""

from __future__ import annotations

from itertools import product

import pytest

from attnproof.symbolic.covers import Cover, cover_patterns
from attnproof.symbolic.kernel import Refused
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
    unary,
)
from attnproof.symbolic.terms import Term, free, make, opened
from attnproof.symbolic.well_formedness import formed
from tests.cases import each
from tests.symbolic.interpreter import Undefined, World, close_to
from tests.symbolic.stating import taken
from tests.symbolic.vocabulary import (
    HALF,
    THREE,
    TWO,
    A,
    P,
    X,
    Y,
    Z,
    a,
    b,
    chosen,
    e,
    g,
    holds,
    i,
    inverse,
    j,
    k,
    less_one,
    m,
    minus,
    n,
    outcome,
    q,
    s,
    same,
    space,
    stack,
    table,
    total,
    u,
    under_,
    up_to,
    var,
    z,
)

Arguments = tuple[object, ...]
C, OUT = make("less_equal", (j, i)), add(i, ONE)
M = var("M", n, kind="boolean")
MASK = holds(entry(M, i))
BELOW = chosen(C, a, MINUS_INFINITY)
GAP = unary("abs", add(i, minus(j)))
LOOSE = unary("abs", make("bound", data=0))
BOTH = make("and", (C, C))
LATER, LAST = up_to(i, add(j, k)), up_to(i, j)
T0, ARANGE = var("T0", kind="boolean"), make("arange", (n,), shape=(n,))
TALL, WIDE = var("g", m, n, kind="orthogonal"), var("g", n, m, kind="orthogonal")
D0, CUBE = var("d", kind="nonnegative"), var("cube", m, n, n)
minus_p = make("mul", (make("broadcast", (num(-1),), shape=(n,)), P), shape=(n,))
F = ("F", 0, ("equivariant",))
still = table(j, entry(X, j))
moved = table(j, entry(X, entry(s, j)))
own = index("j0", n)
at = opened(n, "j0")  # sorted as what is opened of a sum
short = var("short", n, kind="permutation", below=m)
z1 = var("z1", space, kind="standard")
zz = make("add", (z, z), shape=z.shape)
flipped = make("permute", (g,), (1, 0), (n, n))


def call(*args: Term, shape: tuple[Term, ...] = (n,)) -> Term:
    return make("call", args, F, shape)


def invariant(*args: Term, shape: tuple[Term, ...] = ()) -> Term:
    return make("call", args, ("G", 0, ("invariant",)), shape)


def floors(x: Term, y: Term) -> Term:
    return make("floor_divide", (x, y), shape=x.shape)


def moved_by(sigma: Term) -> Term:
    return table(j, entry(X, entry(sigma, j)))


REFUSED: list[tuple[str, Term, Arguments, str]] = [
    ("push", add(ONE, chosen(C, a, b)), (True,), "no such argument"),
    ("infinity", add(MINUS_INFINITY, BELOW, a), (), "another part may be infinite"),
    ("infinity", mul(q, MINUS_INFINITY, a), (), "not known positive"),
    ("either", mul(holds(C), MINUS_INFINITY), (holds(C),), "not a finite number"),
    ("either", make("indicator", (M,), shape=(n,)), (holds(C),), "not a finite number"),
    ("either", add(a, MASK), (make("indicator", (M,), shape=(n,)),), "a finite number"),
    ("either", add(a, under_(a, BELOW)), (under_(a, BELOW),), "not a finite number"),
    ("either", unary("exp", under_(a, BELOW)), (under_(a, BELOW),), "a finite number"),
    ("either", add(holds(C), LOOSE), (holds(C),), "not a finite number"),
    ("either", a, (up_to(LOOSE, a),), "a finite number"),
    ("either", a, (a,), "no condition"),
    ("indicator", same(a, entry(M, i)), (), "no connective"),
    ("indicator", same(entry(M, i), a), (), "no connective"),
    ("where", chosen(C, C, C), (), "truth values"),
    ("whole comparison", same(i, j), (i, j), "not a comparison"),
    ("whole comparison", holds(BOTH), (i, j), "not a comparison"),
    ("whole comparison", under_(i, a), (add(i, ONE), a), "not of integers"),
    ("whole comparison", under_(a, i), (add(a, ONE), i), "not of integers"),
    ("whole comparison", up_to(i, j), (i, add(j, ONE)), "not a comparison"),
    ("whole comparison", under_(i, j), (i, j), "do not differ by 1"),
    ("comparison", holds(BOTH), (C, C), "not a comparison"),
    ("decide", holds(BOTH), (), "not a comparison"),
    ("decide", under_(ZERO, D0), (), "not settled by the signs"),
    ("decide", up_to(D0, ZERO), (), "not settled by the signs"),
    ("decide", up_to(BELOW, add(BELOW, q)), (), "not settled by the ranges"),
    (
        "decide",
        make("indicator", (make("less", (minus_p, P), shape=(n,)),), shape=(n,)),
        (),
        "not settled by the ranges",
    ),
    ("entry", A, (), "not a number"),
    ("tabulate", still, (), "not an array to tabulate"),
    ("sin² + cos² = 1", power(unary("sin", BELOW), 2), (), "may be infinite"),
    ("log", unary("log", BELOW), (), "not log(exp x)"),
    ("log", unary("log", unary("exp", BELOW)), (), "x may be infinite"),
    ("tanh", make("tanh", (X,), shape=(n,)), (), "not tanh of a finite number"),
    (
        "turned",
        make("indicator", (make("less", (X, Y), shape=(n,)),), shape=(n,)),
        (),
        "not of finite numbers",
    ),
    (
        "root of a square",
        make("sqrt", (make("power", (X,), 2, (n,)),), shape=(n,)),
        (make("abs", (X,), shape=(n,)),),
        "not x²",
    ),
    ("root of a square", unary("sqrt", power(BELOW, 2)), (unary("abs", BELOW),), "not x²"),
    ("root", power(unary("sqrt", BELOW), 2), (), "not known to be >= 0"),
    ("maximum", a, (a,), "not a maximum"),
    (
        "maximum",
        make("maximum", (MINUS_INFINITY, MINUS_INFINITY)),
        (MINUS_INFINITY,),
        "not a maximum",
    ),
    ("maximum as a choice", make("maximum", (X, Y), shape=(n,)), (), "two finite numbers"),
    ("injective", same(entry(A, i, j), b), (), "not [e(a) = e(b)]"),
    ("injective", same(entry(A, i, j), entry(A, i, k)), (), "not [e(a) = e(b)]"),
    ("injective", same(a, entry(s, i)), (), "not [e(a) = e(b)]"),
    ("injective", same(entry(s, i), j), (), "not [e(a) = e(b)]"),
    ("injective", same(entry(inverse, i), entry(inverse, j)), (), "not [e(a) = e(b)]"),
    ("injective", same(entry(e, k), entry(s, i)), (), "not [e(a) = e(b)]"),
    ("injective", same(entry(ARANGE, i), entry(ARANGE, j)), (), "not [e(a) = e(b)]"),
    ("injective", same(entry(e, k), entry(e, add(k, ONE))), (), "out of range"),
    ("injective", same(entry(e, add(k, ONE)), entry(e, k)), (), "out of range"),
    ("injective", make("not", (same(entry(s, i), j).args[0],)), (), "not a comparison"),
    ("permutation", make("pick", (inverse, entry(s, i)), 0), (), "no word"),
    ("digits", same(add(mul(a, m), k), add(mul(i, m), k)), (m,), "not integers"),
    ("digits", same(add(mul(i, m), k), add(mul(a, m), k)), (m,), "not integers"),
    ("equivariance", entry(call(X), i), (s, X), "not a table of rows"),
    ("equivariance", entry(call(moved), i), (s, X), "not a table of rows"),
    ("equivariance", entry(call(X), i), (s, still), "not a table of rows"),
    (
        "equivariance",
        entry(call(moved), i),
        (s, make("tabulate", (m, still.args[1]), shape=(m,))),
        "not a table of rows",
    ),
    ("equivariance", entry(call(moved_by(ARANGE)), i), (ARANGE, still), "not a table of rows"),
    ("equivariance", entry(call(moved, shape=(m,)), i), (s, still), "not as many rows"),
    ("equivariance", entry(call(moved_by(short)), i), (short, still), "not a table of rows"),
    (
        "equivariance",
        entry(call(table(k, entry(X, entry(e, k)))), k),
        (e, table(k, entry(X, k))),
        "not a table of rows",
    ),
    ("equivariance", entry(call(moved_by(e)), i), (e, still), "not a table of rows"),
    ("equivariance", entry(call(moved), OUT), (s, still), "out of range"),
    (
        "equivariance",
        entry(call(table(j, entry(X, j))), i),
        (s, table(j, entry(X, own))),
        "moved by σ",
    ),
    (
        "equivariance",
        entry(call(still), i),
        (s, table(j, entry(X, entry(inverse, own)))),
        "moved by σ",
    ),
    ("equivariance", entry(call(table(j, entry(X, entry(s, own)))), i), (s, still), "moved by σ"),
    ("invariance", entry(invariant(moved, shape=(n,)), i), (s, still), "not a call"),
    ("invariance", invariant(X), (s, X), "not a table of rows"),
    ("invariance", invariant(moved_by(ARANGE)), (ARANGE, still), "not a table of rows"),
    ("invariance", invariant(moved_by(short)), (short, still), "not a table of rows"),
    (
        "invariance",
        invariant(table(k, entry(X, entry(e, k)))),
        (e, table(k, entry(X, k))),
        "not a table of rows",
    ),
    ("invariance", invariant(moved_by(e)), (e, still), "not a table of rows"),
    ("invariance", invariant(still), (s, table(j, entry(X, entry(inverse, own)))), "moved by σ"),
    ("invariance", invariant(table(j, entry(X, entry(s, own)))), (s, still), "moved by σ"),
    ("remainder", make("remainder", (X, P), shape=(n,)), (), "not a number"),
    ("remainder", make("remainder", (BELOW, q)), (), "not known to be positive"),
    ("floor", floors(X, P), (ZERO, X), "not a floor"),
    ("floor", floors(floors(BELOW, q), m), (ZERO, floors(BELOW, mul(m, q))), "not a floor"),
    ("floor", floors(floors(a, q), m), (ONE, floors(a, mul(m, q))), "x is not a·y + b"),
    ("layer", stack(a, index("t", HALF), b, b), (), "no last layer"),
    ("factor", total(j, mul(a, entry(X, j))), (0,), "not a number of factors"),
    ("exchange", total(j, make("sum", (j, a))), (), "depends on the outer index"),
    ("cut", total(j, chosen(make("less", (j, i)), a, MINUS_INFINITY)), (ONE,), "not two parts"),
    ("unroll", total(index("z", HALF), a), (), "not a natural number"),
    ("unroll", total(j, a), (), "not a literal"),
    ("standard", total(outcome, mul(*[entry(z, outcome, i)] * 3)), (), "not one or two"),
    ("standard", total(outcome, entry(z1, outcome)), (), "not one or two"),
    ("standard", total(outcome, entry(zz, outcome, i)), (), "not over the outcomes of random"),
    ("standard", total(outcome, entry(Z, outcome, i)), (), "not over the outcomes of random"),
    ("standard", total(outcome, entry(z, outcome, outcome)), (), "not entries at the one outcome"),
    (
        "standard",
        total(outcome, mul(entry(z, outcome, i), entry(z, outcome, OUT))),
        (),
        "out of range",
    ),
    (
        "standard",
        total(outcome, mul(entry(z, outcome, OUT), entry(z, outcome, i))),
        (),
        "out of range",
    ),
    ("orthogonal", total(j, mul(entry(X, j), entry(X, j))), (), "two entries of one matrix"),
    (
        "orthogonal",
        total(j, mul(chosen(T0, entry(X, j), a), chosen(T0, entry(X, j), a))),
        (),
        "two entries of one matrix",
    ),
    ("orthogonal", total(k, mul(entry(TALL, k, i), entry(TALL, k, j))), (), "not a square"),
    ("orthogonal", total(j, mul(entry(WIDE, j, k), entry(WIDE, j, k))), (), "not a square"),
    ("orthogonal", total(j, mul(entry(flipped, j, i), entry(flipped, j, i))), (), "not a square"),
    ("orthogonal", total(j, mul(entry(g, j, i), entry(g, j, j))), (), "occurs twice"),
    ("orthogonal", total(j, mul(entry(g, j, j), entry(g, j, i))), (), "occurs twice"),
    ("orthogonal", total(j, mul(entry(g, j, i), entry(g, j, OUT))), (), "out of range"),
    ("orthogonal", total(j, mul(entry(g, j, OUT), entry(g, j, i))), (), "out of range"),
]


@each(REFUSED)
def test_a_condition_is_asked(rule: str, t: Term, arguments: Arguments, words: str) -> None:
    with pytest.raises(Refused) as refused:
        RULES[rule](t, *arguments)
    assert words in str(refused.value)


rows = table(j, make("pick", (A, entry(s, j)), 0, (n,)))
rows_still = table(j, make("pick", (A, j), 0, (n,)))
EXACT: list[tuple[str, Term, Arguments, Term]] = [
    ("push", mul(a, chosen(C, b, q), u), (1,), chosen(C, mul(a, b, u), mul(a, q, u))),
    ("push", add(a, b, chosen(C, b, q)), (2,), chosen(C, add(a, b, b), add(a, b, q))),
    (
        "push",
        make("maximum", (chosen(C, b, q), u)),
        (0,),
        chosen(C, make("maximum", (b, u)), make("maximum", (q, u))),
    ),
    ("push", unary("exp", chosen(C, a, b)), (0,), chosen(C, unary("exp", a), unary("exp", b))),
    ("push", power(chosen(C, a, b), 3), (0,), chosen(C, power(a, 3), power(b, 3))),
    ("where", chosen(C, a, b), (), add(mul(holds(C), a), mul(holds(C), num(-1), b), b)),
    ("decide", under_(ZERO, q), (), ONE),
    ("decide", up_to(ZERO, D0), (), ONE),
    ("decide", under_(D0, ZERO), (), ZERO),
    ("decide", up_to(q, ZERO), (), ZERO),
    ("decide", under_(a, add(a, q)), (), ONE),
    ("decide", up_to(a, add(a, D0)), (), ONE),
    ("decide", up_to(add(a, q), a), (), ZERO),
    ("decide", under_(add(a, D0), a), (), ZERO),
    ("decide", under_(mul(less_one(n), m), mul(i, m)), (), ZERO),
    (
        "indicator",
        make("indicator", (make("where", (M, M, M), shape=(n,)),), shape=(n,)),
        (),
        make("where", (M, *(make("indicator", (M,), shape=(n,)),) * 2), shape=(n,)),
    ),
    (
        "either",
        mul(a, holds(C)),
        (holds(C),),
        add(mul(holds(C), a, ONE), mul(add(ONE, minus(holds(C))), a, ZERO)),
    ),
    ("whole comparison", under_(i, j), (add(i, ONE), j), up_to(add(i, ONE), j)),
    ("turned", up_to(a, b), (), add(ONE, minus(under_(b, a)))),
    ("turned", under_(a, b), (), add(ONE, minus(up_to(b, a)))),
    ("turned", same(a, b), (), add(up_to(a, b), up_to(b, a), num(-1))),
    (
        "tanh",
        unary("tanh", a),
        (),
        add(ONE, mul(num(-2), power(add(unary("exp", mul(TWO, a)), ONE), -1))),
    ),
    ("equals for equals", mul(a, same(i, j), entry(X, i)), (i, j), mul(same(i, j), a, entry(X, j))),
    ("equals for equals", mul(same(i, j), entry(X, j)), (j, i), mul(same(i, j), entry(X, i))),
    *(
        ("known angle", unary(op, mul(turns, make("pi"))), (), value)
        for turns, values in ((ZERO, (ONE, ZERO)), (HALF, (ZERO, ONE)), (ONE, (num(-1), ZERO)))
        for op, value in zip(("cos", "sin"), values, strict=True)
    ),
    ("log", unary("log", unary("exp", a)), (), a),
    ("exp of log", unary("exp", unary("log", q)), (), q),
    ("root", power(unary("sqrt", q), 2), (), q),
    (
        "absolute value as a choice",
        unary("abs", a),
        (),
        chosen(make("less_equal", (ZERO, a)), a, minus(a)),
    ),
    (
        "entry",
        entry(make("matmul", (CUBE, X), shape=(m, n)), k, i),
        (),
        total(j, mul(entry(CUBE, k, i, j), entry(X, j))),
    ),
    ("maximum as a choice", make("maximum", (a, b)), (), chosen(make("less_equal", (b, a)), a, b)),
    ("injective", same(entry(e, k), entry(e, index("k2", m))), (), same(k, index("k2", m))),
    ("image", holds(make("is in", (i, e))), (), total(k, same(entry(e, k), i))),
    (
        "digits",
        same(add(mul(i, m), k), add(mul(j, m), index("k2", m))),
        (m,),
        mul(same(i, j), same(k, index("k2", m))),
    ),
    (
        "equivariance",
        entry(call(rows, shape=(n, n)), i, j),
        (s, rows_still),
        entry(call(rows_still, shape=(n, n)), entry(s, i), j),
    ),
    ("equivariance", entry(call(moved, b), i), (s, still), entry(call(still, b), entry(s, i))),
    ("invariance", invariant(moved, b), (s, still), invariant(still, b)),
    ("invariance", invariant(moved, shape=(n,)), (s, still), invariant(still, shape=(n,))),
    ("standard", total(outcome, mul(entry(z, outcome, i), entry(z, outcome, j))), (), same(i, j)),
    ("orthogonal", total(j, mul(entry(g, j, i), entry(g, j, own))), (), same(i, own)),
    (
        "cut",
        total(j, entry(X, j)),
        (n,),
        add(total(j, entry(X, j)), total(index("c", ZERO), entry(X, add(n, index("c", ZERO))))),
    ),
    ("maximum", make("maximum", (MINUS_INFINITY, a)), (a,), a),
]


@each(EXACT)
def test_a_rule_gives_what_is_written(
    rule: str, t: Term, arguments: Arguments, after: Term
) -> None:
    found, _ = taken(rule, formed(t), arguments)
    if rule == "cut":  # the sum in which no index is left
        assert found.args[0] is after.args[0]
        assert found.args[1].args[0] is ZERO
        return
    assert found is after


def named(count: int, length: Term) -> list[Term]:
    """Indices with the names that a rule takes first."""
    return [index(f"j{c}", length) for c in range(count)]


n0, n1 = named(2, n)
m0, m1 = named(2, m)
square, pairs = index("p", mul(n, n)), index("p", mul(m, n))
W, V = var("W", mul(n, n)), var("V", mul(m, n))
one0, rest0 = index("j0", ONE), index("j0", less_one(n))
whole = mul(entry(X, n0), add(entry(X, n1), ONE))
NAMES: list[tuple[str, Term, Arguments]] = [
    ("image", holds(make("is in", (m0, e))), ()),
    ("distribute", total(j, add(entry(X, j), entry(X, n0))), ()),
    ("factor", total(j, mul(entry(X, n0), entry(X, j))), (1,)),
    ("exchange", total(j, total(index("p", n), mul(entry(A, j, index("p", n)), whole))), ()),
    ("exchange", total(j, total(k, mul(entry(X, j), k, entry(X, n0), m0, add(m1, ONE)))), ()),
    ("cut", total(j, mul(entry(X, j), add(one0, ONE))), (ONE,)),
    ("cut", total(j, mul(entry(X, j), add(rest0, ONE))), (ONE,)),
    ("cut", total(j, mul(entry(X, j), add(n0, ONE))), (n,)),
    ("cut", total(j, mul(entry(X, j), add(n0, ONE))), (ZERO,)),
    ("layer", stack(X, index("t", add(u, ONE)), Y, make("mul", (Y, X), shape=(n,))), ()),
    ("delta", total(j, mul(same(j, n0), entry(X, j), entry(X, n0))), ()),
    (
        "tabulate",
        make("mul", (make("broadcast", (index("t0_0", n),), shape=(n,)), X), shape=(n,)),
        (),
    ),
]


@each(NAMES)
def test_a_rule_takes_names_that_nothing_bears(rule: str, t: Term, arguments: Arguments) -> None:
    after, _ = RULES[rule](formed(t), *arguments)
    assert {v.data for v in free(after)} >= {v.data for v in free(t) if v.op == "index"}
    tried = 0
    for world in (World(seed, largest=3) for seed in range(30)):
        try:
            sides = world(t), world(formed(after))
        except Undefined:
            continue
        tried += 1
        assert close_to(*sides)
    assert tried >= 5


# covers

WHOLE: Cover = ("whole",)  # type: ignore[assignment]
COVERS = [
    (n, WHOLE),
    (THREE, ("each",)),
    (ZERO, ("each",)),
    (mul(m, n), ("digits", m, n, WHOLE, WHOLE)),
    (mul(TWO, n), ("digits", TWO, n, ("each",), WHOLE)),
    (mul(TWO, n), ("digits", n, TWO, WHOLE, ("each",))),
    (mul(TWO, m, n), ("digits", m, mul(TWO, n), WHOLE, ("digits", n, TWO, WHOLE, ("each",)))),
    (mul(TWO, m, n), ("digits", mul(TWO, n), m, ("digits", n, TWO, WHOLE, ("each",)), WHOLE)),
    (mul(n, n, n), ("digits", mul(n, n), n, ("digits", n, n, WHOLE, WHOLE), WHOLE)),
    (mul(n, n, n), ("digits", n, mul(n, n), WHOLE, ("digits", n, n, WHOLE, WHOLE))),
    (n, ("cut", ONE, ("each",), WHOLE)),
    (add(n, m), ("cut", n, WHOLE, WHOLE)),
    (n, ("cut", n, WHOLE, ("each",))),
    (n, ("cut", ZERO, ("each",), WHOLE)),
    (add(n, TWO), ("cut", n, ("cut", ONE, ("each",), WHOLE), ("each",))),
    (add(n, m, THREE), ("cut", n, WHOLE, ("cut", m, WHOLE, ("each",)))),
]


def places(pattern: Term, sizes: dict[str, int]) -> set[int]:
    """The indices that a pattern reaches."""
    indices = sorted((v for v in free(pattern) if v.op == "index"), key=lambda v: v.key)
    found = set()
    for values in product(range(9), repeat=len(indices)):
        world = World(0, **sizes)
        if all(x < world(v.args[0]) for v, x in zip(indices, values, strict=True)):
            world.drawn |= dict(zip(indices, values, strict=True))
            found.add(int(world(pattern)))
    return found


@each(COVERS)
def test_a_cover_reaches_every_index_and_no_other(length: Term, cover: Cover) -> None:
    patterns = cover_patterns(length, cover, "i")
    for x, y in product((1, 2), (1, 3)):
        sizes = {"n": x, "m": y}
        reached = [places(pattern, sizes) for pattern in patterns]
        count = int(World(0, **sizes)(length))
        assert set().union(*reached) == set(range(count))
        assert sum(map(len, reached)) == count
    for pattern in patterns:
        assert integer(pattern) is pattern
        assert len({v.data for v in free(pattern)}) == len(free(pattern))


NO_COVERS: list[tuple[Term, tuple[object, ...], str]] = [
    (n, ("each",), "not a literal length"),
    (HALF, ("each",), "not a literal length"),
    (n, ("all",), "unknown cover"),
    (i, ("cut", i, WHOLE, WHOLE), "not a length"),
    (n, ("cut", TWO, WHOLE, WHOLE), "not two parts"),
    (n, ("cut", num(-1), WHOLE, WHOLE), "not two parts"),
    (n, ("cut", add(n, ONE), WHOLE, WHOLE), "not two parts"),
    (mul(n, m), ("digits", n, n, WHOLE, WHOLE), "lengths differ"),
    (n, ("digits", i, n, WHOLE, WHOLE), "not two lengths"),
    (n, ("digits", n, i, WHOLE, WHOLE), "not two lengths"),
    (n, ("digits", minus(n), num(-1), WHOLE, WHOLE), "at least 1"),
    (ZERO, ("digits", n, ZERO, WHOLE, WHOLE), "at least 1"),
    (ZERO, ("digits", ZERO, n, WHOLE, WHOLE), "at least 1"),
]


@each(NO_COVERS)
def test_what_is_no_cover_is_refused(length: Term, cover: tuple[object, ...], words: str) -> None:
    with pytest.raises(Refused, match=words):
        cover_patterns(length, cover, "i")
