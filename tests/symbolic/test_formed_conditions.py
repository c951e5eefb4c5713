"""Whatever is near a term with a meaning has one as well, in numbers, or is refused.

One argument, the data or the shape of a term stands in the place of another.  If the kernel still
takes it, it must have a value of that shape in every world, of truth values or of numbers as the
checker says, and no infinite one if the checker calls it finite.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from attnproof.symbolic.kernel import Refused
from attnproof.symbolic.scalars import (
    MINUS_INFINITY,
    ONE,
    ZERO,
    add,
    entry,
    index,
    is_truth,
    mul,
    num,
    power,
)
from attnproof.symbolic.terms import Term, bind, make
from attnproof.symbolic.well_formedness import _FORMS, formed
from tests.cases import each
from tests.symbolic.interpreter import Undefined, World
from tests.symbolic.stating import means_something
from tests.symbolic.vocabulary import (
    HALF,
    PI,
    THREE,
    TWO,
    A,
    R,
    X,
    Y,
    a,
    b,
    chosen,
    e,
    f,
    holds,
    i,
    inverse,
    j,
    k,
    m,
    n,
    outcome,
    q,
    s,
    space,
    spread,
    stack,
    table,
    total,
    u,
    var,
    z,
)

T = make("equal", (a, b))
M = var("M", n, kind="boolean")
XX = make("equal", (X, Y), shape=(n,))
C = var("C", n, m)
V = var("V", THREE)
MASKED = chosen(T, a, MINUS_INFINITY)
SAMPLES: list[Term] = [
    HALF,
    n,
    space,
    PI,
    MINUS_INFINITY,
    i,
    outcome,
    a,
    A,
    s,
    e,
    M,
    z,
    u,
    *(make(op, (a,)) for op in ("exp", "log", "cos", "sin", "tanh", "sqrt", "abs")),
    *(make(op, (X,), shape=(n,)) for op in ("exp", "abs")),
    make("exp", (MASKED,)),
    holds(T),
    make("indicator", (M,), shape=(n,)),
    make("not", (T,)),
    make("not", (M,), shape=(n,)),
    power(a, 2),
    power(X, -1),
    *(make(op, (a, b)) for op in ("maximum", "equal", "less", "less_equal")),
    *(make(op, (a, q)) for op in ("floor_divide", "remainder")),
    *(make(op, (T, T)) for op in ("and", "or", "equal")),
    make("or", (M, XX), shape=(n,)),
    make("maximum", (MASKED, MINUS_INFINITY)),
    make("where", (T, a, MINUS_INFINITY)),
    make("where", (M, X, Y), shape=(n,)),
    make("where", (T, T, T)),
    add(a, b),
    add(a, MASKED),
    mul(a, b, q),
    mul(q, MASKED),
    make("add", (X, Y, X), shape=(n,)),
    total(j, a),
    total(outcome, a),
    total(j, MASKED),
    table(j, a),
    table(k, X),
    table(j, T),
    stack(a, index("t", u), b, mul(a, b)),
    stack(X, index("t", n), Y, Y),
    make("entry", (X, i)),
    make("entry", (A, i, j)),
    make("entry", (M, i)),
    make("entry", (e, k)),
    make("named", (X, a), ("a name",), (n,)),
    spread(a, n),
    spread(X, m, n),
    make("broadcast", (var("O", ONE),), shape=(n,)),
    make("permute", (C,), (1, 0), (m, n)),
    make("new axis", (X,), 1, (n, ONE)),
    make("new axis", (X,), 0, (ONE, n)),
    make("pick", (C, i), 0, (m,)),
    make("pick", (C, k), 1, (n,)),
    make("slice", (V, ONE), (0, 1), (TWO,)),
    make("gather", (C, s), 0, (n, m)),
    make("gather", (X, e), 0, (m,)),
    make("concat", (X, Y), 0, (mul(TWO, n),)),
    make("stack", (X, Y, X), 0, (THREE, n)),
    make("stack", (X, Y), 1, (n, TWO)),
    make("reduce", (C,), 0, (m,)),
    make("reduce", (C,), 1, (n,)),
    make("matmul", (A, C), shape=(n, m)),
    make("matmul", (A, X), shape=(n,)),
    make("matmul", (X, Y)),
    make("matmul", (X, A), shape=(n,)),
    make("matmul", (var("S", m, n, n), var("T", m, n, n)), shape=(m, n, n)),
    make("reshape", (C,), (((0, 1), (0,)),), (mul(n, m),)),
    make("reshape", (var("w", mul(TWO, n)),), (((0,), (0, 1)),), (n, TWO)),
    make("reshape", (C,), (((0,), (0,)), ((1,), (1,))), (n, m)),
    make("call", (X, a), ("F", 0, ()), (n,)),
    make("call", (C,), ("F", 1, ()), (n,)),
    make("row", (C, i), shape=(m,)),
    make("is in", (i, e)),
    make("isin", (X, e), shape=(n,)),
    inverse,
    make("eye", (n,), shape=(n, n)),
    make("arange", (n,), shape=(n,)),
]
POOL = [
    a,
    q,
    X,
    A,
    C,
    M,
    T,
    XX,
    MASKED,
    MINUS_INFINITY,
    n,
    m,
    ZERO,
    ONE,
    TWO,
    HALF,
    num(-1),
    i,
    k,
    u,
    s,
    e,
    f,
    space,
    outcome,
    R,
    make("bound", data=0),
    power(n, -1),
    bind(add(j, a), j),
]
SHAPES: list[tuple[Term, ...]] = [
    (),
    (n,),
    (m,),
    (n, n),
    (n, m),
    (m, n),
    (ONE,),
    (TWO,),
    (THREE,),
    (mul(TWO, n),),
    (mul(n, m),),
    (HALF,),
    (i,),
    (a,),
    (space,),
    (u,),
    (X,),
    (n, ONE),
    (ONE, n),
    (n, TWO),
]
DATA: list[Any] = [
    None,
    -1,
    0,
    1,
    2,
    3,
    True,
    2.0,
    "w",
    Fraction(1, 2),
    (0, 1),
    (1, 0),
    (1, 1),
    (0, 0),
    (0, -1),
    (0, 2),
    (-1, 1),
    (0,),
    (2, 0, 1),
    ("x", "real"),
    ("x", "natural"),
    ("x", "boolean"),
    ("x", "permutation"),
    ("x",),
    ("x", 1),
    ("x", "y", "z"),
    ("F", 0, ()),
    ("F", 1, ()),
    ("F", -1, ()),
    ("F", 2, ()),
    ("F", True, ()),
    (1, 0, ()),
    ("F", 0, []),
    (((0, 1), (0,)),),
    (((1, 0), (0,)),),
    (((0,), (0,)),),
    (((0,), (0, 1)),),
    (((0,), (1, 0)),),
    (((0,), (0,)), ((1,), (1,))),
    (((0,), (1,)), ((1,), (0,))),
    (((0,), ()), ((1,), (0,))),
]


def near(t: Term) -> Iterator[Term | None]:
    """The term with one argument, its data or its shape in the place of another."""
    for place in range(len(t.args)):
        for part in POOL:
            yield made(t, args=(*t.args[:place], part, *t.args[place + 1 :]))
        yield made(t, args=(*t.args[:place], *t.args[place + 1 :]))
        for shape in SHAPES:
            for part in (a, X, C, A):
                yield made(t, args=(*t.args[:place], part, *t.args[place + 1 :]), shape=shape)
    yield made(t, args=t.args[::-1])
    for part in POOL:
        yield made(t, args=(*t.args, part))
    for data in DATA:
        yield made(t, data=data)
        for shape in SHAPES:
            yield made(t, data=data, shape=shape)
    for shape in SHAPES:
        yield made(t, shape=shape)


def made(t: Term, **changed: Any) -> Term | None:
    whole = {"op": t.op, "args": t.args, "data": t.data, "shape": t.shape} | changed
    try:
        return make(**whole)
    except (IndexError, TypeError):  # no binder without a body, no list as data
        return None


def assert_it_has_a_value(t: Term) -> None:
    for world in (World(seed, largest=3) for seed in range(3)):
        try:
            value, shape = np.asarray(world(t)), world.shape(t)
        except (Undefined, OverflowError, RuntimeWarning):  # an index out of range or infinite
            continue
        if value.dtype.kind == "f" and np.isnan(value).any():
            continue
        assert value.shape == shape, t
        assert (value.dtype.kind == "b") == is_truth(t), t
        if t.finite and value.dtype.kind == "f" and t.op != "log":
            assert np.isfinite(value).all(), t


def test_every_operation_has_a_sample() -> None:
    assert {t.op for t in SAMPLES} | {"size", "bound"} == set(_FORMS)
    for t in SAMPLES:
        assert formed(t) is t


@each(SAMPLES)
def test_what_is_near_has_a_value_or_is_refused(t: Term) -> None:
    for other in {x: None for x in near(t) if x is not None}:
        if (
            means_something(other)
            and not other.loose
            and (other.op != "var" or other.data[1] == "real")
        ):
            assert_it_has_a_value(other)


UNARY = ("exp", "log", "cos", "sin", "tanh", "sqrt", "abs", "indicator", "not", "power")
BINARY = ("maximum", "equal", "less", "less_equal", "and", "or", "floor_divide", "remainder")
V3 = var("V3", m, n, n)
LOW = chosen(make("less", (a, b)), a, MINUS_INFINITY)
TRUE_LOW = make("less", (a, LOW))
b0 = make("bound", data=0)
REFUSED: list[Term] = [
    *(make(op, (x, x), 2 if op == "power" else None) for op in UNARY for x in (a, T)),
    *(make(op, (x,)) for op in BINARY for x in (a, T)),
    *(make(op, (x, x, x)) for op in BINARY for x in (a, T)),
    make("where", (T, a)),
    make("where", (T, a, b, a)),
    make("add", ()),
    make("mul", ()),
    make("where", (a, a, b)),
    make("where", (T, a, T)),
    make("where", (T, T, a)),
    make("where", (a, T, T)),
    make("equal", (a, T)),
    make("equal", (T, a)),
    *(make(op, (a, b)) for op in ("and", "or")),
    make("and", (T, a)),
    make("or", (a, T)),
    make("indicator", (a,)),
    make("not", (a,)),
    make("exp", (T,)),
    make("add", (T, T)),
    make("add", (a, T)),
    make("less", (T, T)),
    make("less", (a, T)),
    make("maximum", (T, a)),
    *(make(op, (LOW,)) for op in ("log", "cos", "sin", "tanh", "sqrt", "abs")),
    make("power", (LOW,), 2),
    make("floor_divide", (LOW, q)),
    make("remainder", (LOW, q)),
    mul(LOW, LOW, q),
    mul(a, LOW),
    mul(q, a, LOW),
    mul(D0 := var("d0", kind="nonnegative"), LOW),
    mul(LOW, ZERO),
    *(make(op, (a, b), "data") for op in ("add", "mul", "maximum")),
    make("pi", data="data"),
    make("exp", (a,), 1),
    make("eye", (n,), 0, (n, n)),
    make("matmul", (A, X), 0, (n,)),
    make("size", data="xy"),
    make("size", data=("x",)),
    make("space", data="xy"),
    make("size", data=("x", 1)),
    make("size", data=(1, "size")),
    make("var", data="xy"),
    make("var", data=("x", "real", "z")),
    make("var", data=("x", 1)),
    make("var", data=(1, "real")),
    make("bound", data=-1),
    make("bound", (a,), 0),
    make("index", (b0,), "t"),
    make("index", (n,), 1),
    make("index", (a,), "t"),
    make("index", (n,), "t", (n,)),
    make("index", (n, n), "t"),
    make("index", (HALF,), "t"),
    make("var", (), ("x", "natural"), (n,)),
    make("var", (n,), ("x", "real")),
    make("var", (), ("x", "permutation"), (n,)),
    make("var", (a,), ("x", "permutation"), (n,)),
    make("permute", (C,), frozenset((0, 1)), (n, m)),
    make("permute", (C,), (0, 0), (n, n)),
    make("slice", (V, ZERO), (0, Fraction(1, 2)), (n,)),
    make("slice", (V, ZERO), (0, 0), (n,)),
    make("slice", (V, ZERO), (-1, 1), (THREE, THREE)),
    make("slice", (C, ZERO), (-2, 1), (TWO, m)),
    make("slice", (V, ZERO), (0, -1), (n,)),
    make("slice", (V, i), (0, 1), (n,)),
    make("slice", (V, ZERO), (1, 1), (n,)),
    make("slice", (C, ZERO), (0, 1), (n,)),
    make("slice", (R, ZERO), (0, 1), (n,)),
    make("slice", (V, ZERO), (0, 1), (space,)),
    make("matmul", (V3, make("broadcast", (A,), shape=(n, n, n))), shape=(m, n, n)),
    make("matmul", (V3, A), shape=(m, n, n)),
    make("matmul", (A, V3), shape=(n, n)),
    make("matmul", (X, V3), shape=(n,)),
    make("matmul", (A, C), shape=(n, n)),
    make("matmul", (C, C), shape=(n, m)),
    make("matmul", (a, X), shape=()),
    make("matmul", (X, M)),
    make("matmul", (M, X)),
    make("matmul", (X, spread(LOW, n))),
    make("matmul", (spread(LOW, n), X)),
    make("matmul", (A, X), shape=(m,)),
    make("concat", (X, M), 0, (mul(TWO, n),)),
    make("concat", (X, a), 0, (n,)),
    make("concat", (), 0, (ZERO,)),
    make("concat", (X, Y), 0, (n,)),
    make("concat", (R, R), 0, (mul(TWO, n),)),
    make("concat", (R,), 0, (space,)),
    make("concat", (R, var("E", ZERO)), 0, (space,)),
    make("concat", (C, C), -2, (mul(TWO, n), m)),
    make("stack", (X, Y), -2, (TWO, n)),
    make("stack", (X, M), 0, (TWO, n)),
    make("stack", (X, Y), 0, (THREE, n)),
    make("stack", (), 0, (ZERO, n)),
    make("reduce", (M,), 0),
    make("reduce", (X,), 1),
    make("reduce", (X,), 0, (n,)),
    make("reshape", (C,), (((0, 1), (0,)),), (mul(m, m),)),
    make("reshape", (C,), (((1, 0), (0,)),), (mul(n, m),)),
    make("reshape", (var("R1", space, ONE),), (((0, 1), (0,)),), (space,)),
    make("reshape", (C,), (((0,), (1,)), ((1,), (0,))), (m, n)),
    make("reshape", (C,), (((0,), (0,)),), (n,)),
    make("reshape", (X,), (), (n,)),
    make("call", (C,), ("F", -1, ()), (n,)),
    make("call", (C,), ("F", 2, ()), (n,)),
    make("call", (X,), ("F", -1, ()), (m,)),
    make("call", (X,), ("F", 2, ()), (n,)),
    make("call", (C,), ("F", 1, ()), (m,)),
    make("call", (X,), (1, 0, ()), ()),
    make("call", (X,), ("F", 0, "x"), ()),
    make("is in", (X, e), shape=(n,)),
    make("is in", (i, A)),
    make("isin", (X, e)),
    make("row", (C, X), shape=(m,)),
    make("row", (C, i), shape=(n,)),
    make("row", (X, i, i)),
    make("row", (C, i, X)),
    make("inverse", (A,), shape=(n, n)),
    *(make("inverse", (x,), shape=x.shape) for x in (e, X, a, make("arange", (n,), shape=(n,)))),
    make("inverse", (make("size", data=("x", "permutation")),)),
    make("inverse", (var("f", n, kind="index map", below=m),), shape=(n,)),
    *(
        make("var", (n,), ("x", kind), shape)
        for kind in ("permutation", "injection", "index map")
        for shape in ((), (n, m))
    ),
    make("inverse", (s,), shape=(m,)),
    make("eye", (n,), shape=(n, m)),
    make("arange", (u,), shape=(u,)),
    make("arange", (n, n), shape=(n, n)),
    make("eye", (n, n), shape=(n, n, n, n)),
    make("iterate", (a, a, bind(a, i, b))),
    make("iterate", (n, T, bind(T, i, b))),
    make("iterate", (n, a, bind(T, i, b))),
    make("iterate", (n, T, bind(b, i, b))),
    make("iterate", (n, X, bind(a, i, b))),
    make("iterate", (n, a, bind(X, i, b))),
    make("iterate", (make("bound", (), 0, (n,)), a, bind(a, i, b))),
    make("iterate", (add(u, a), a, bind(a, i, b))),
    make("iterate", (mul(u, a), a, bind(a, i, b))),
    make("iterate", (add(a, u), a, bind(a, i, b))),
    make("iterate", (HALF, a, bind(a, i, b))),
    make("sum", (u, a)),
    make("sum", (n, X)),
    make("sum", (n, a, a)),
    make("sum", (n, X), shape=(n,)),
    make("tabulate", (n, a), shape=(m,)),
    make("tabulate", (u, a), shape=(u,)),
    make("entry", (X,)),
    make("entry", (X, X)),
    make("entry", (X, space)),
    make("entry", (A, i)),
    make("entry", (X, i), shape=(n,)),
    make("named", (X, a), ("x",), (m,)),
    make("broadcast", (X,), shape=(m,)),
    make("broadcast", (C,), shape=(n,)),
    make("new axis", (X,), 0, (TWO, n)),
    make("new axis", (X,), 2, (n, ONE)),
    make("new axis", (C,), -2, (n, ONE, m)),
    make("pick", (C, X), 0, (m,)),
    make("pick", (C, i), 0, (n,)),
    make("pick", (C, i), 2, (n,)),
    make("gather", (C, A), 0, (n, n, m)),
    make("gather", (C, e), 0, (n, m)),
    make("num", data="1"),
    make("num", (a,), Fraction(7, 3)),
    make("size", (a,), ("x", "size")),
    make("pi", (a,)),
    make("pi", shape=(n,)),
    make("no such operation"),
    make("power", (a,), "2"),
    make("power", (a,)),
]
TAKES = [
    make("add", (a,)),
    make("mul", (a,)),
    make("row", (X, i)),
    make("matmul", (V3, var("V4", m, n, TWO)), shape=(m, n, TWO)),
    *(make(op, (LOW, a)) for op in ("add", "maximum", "equal", "less", "less_equal")),
    make("exp", (LOW,)),
    make("where", (T, LOW, a)),
    make("where", (TRUE_LOW, a, b)),
    make("indicator", (TRUE_LOW,)),
    make("not", (TRUE_LOW,)),
    make("and", (TRUE_LOW, T)),
    make("or", (T, TRUE_LOW)),
    mul(q, LOW),
    mul(LOW, q, n),
    total(j, stack(a, index("t", j), b, b)),
    total(j, stack(a, index("t", add(j, ONE)), b, b)),
    stack(a, index("t", entry(s, i)), b, b),
    total(j, stack(a, index("t", mul(j, TWO)), b, b)),
    total(j, stack(a, index("t", entry(s, j)), b, b)),
    make("reshape", (var("one", ONE),), (((0,), ()),)),
    make("reshape", (a,), (((), (0,)),), (ONE,)),
    make("reshape", (a,), ()),
    make("inverse", (inverse,), shape=(n,)),
    make("inverse", (f,), shape=(n,)),
    make("reshape", (z,), (((0,), (0,)), ((1,), (1,))), (space, n)),
]


@each(REFUSED)
def test_what_does_not_fit_is_refused(t: Term) -> None:
    with pytest.raises(Refused, match="term"):
        formed(t)


def test_what_is_no_term_is_refused() -> None:
    for x in (1, "a", None, (a,)):
        with pytest.raises(Refused, match="is not a term"):
            formed(x)


def test_an_operation_that_there_is_not_is_named() -> None:
    with pytest.raises(Refused, match="there is no operation 'no such operation'"):
        formed(make("no such operation"))


@each(TAKES)
def test_what_fits_is_passed(t: Term) -> None:
    assert formed(t) is t
