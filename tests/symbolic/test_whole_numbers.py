"""Which entries are whole numbers, and which truth values, by their form."""

from __future__ import annotations

from attnproof.symbolic.scalars import (
    ALWAYS_WHOLE,
    CARRIES,
    KEEPS_WHOLE,
    MINUS_INFINITY,
    ONE,
    TRUTHS,
    ZERO,
    add,
    entry,
    index,
    is_integer,
    is_truth,
    is_whole,
    mul,
    power,
)
from attnproof.symbolic.terms import Term, bind, make
from tests.symbolic.test_scalars import (
    ARANGE,
    EYE,
    INTEGERS,
    MM,
    SPACE,
    M,
    T,
    W,
    digit,
)
from tests.symbolic.vocabulary import (
    HALF,
    TWO,
    A,
    L,
    X,
    a,
    b,
    e,
    f,
    g,
    i,
    inverse,
    j,
    less_one,
    m,
    minus,
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
)

MT = make("permute", (MM,), (1, 0), (m, n))
TRUE = [
    T,
    M,
    entry(M, i),
    make("pick", (M, i), 0),
    MT,
    *(make(op, (a, b)) for op in TRUTHS),
    table(j, entry(M, j)),
    make("where", (T, M, M)),
    make("where", (T, T, T)),
    *(make(op, (M,), shape=(n,)) for op in CARRIES),
    table(j, make("less", (j, i))),
    make("where", (a, T, b)),
]
NOT_TRUE = [
    a,
    X,
    i,
    make("indicator", (T,)),
    make("where", (T, a, b)),
    make("where", (T, a, T)),
    ARANGE,
    table(j, entry(X, j)),
    entry(X, i),
    make("slice", (X, ZERO), (0, 1), (n,)),
    add(a, b),
    make("reduce", (MM,), 0, (m,)),
    make("iterate", (n, T, T)),
    make("maximum", (T, T)),
    make("sum", (n, T)),
    var("boolean"),
    make("size", data=("boolean", "boolean")),
    *(make(op, (X, M), shape=(n,)) for op in CARRIES),
    make("tabulate", (T, a)),
]


def test_what_is_a_truth_value() -> None:
    for t in TRUE:
        assert is_truth(t), t
    for t in NOT_TRUE:
        assert not is_truth(t), t
    assert {"equal", "less", "less_equal", "and", "or", "not", "isin", "is in"} == TRUTHS


def cut(x: Term, start: Term, *shape: Term) -> Term:
    return make("slice", (x, start), (0, 1), shape)


FLOOR = make("floor_divide", (X, ARANGE), shape=(n,))
WHOLE = [
    *INTEGERS,
    s,
    e,
    f,
    inverse,
    ARANGE,
    EYE,
    FLOOR,
    W,
    make("indicator", (M,), shape=(n,)),
    digit("floor_divide", a, b),
    make("floor_divide", (a, HALF)),
    make("concat", (s, ARANGE), 0, (add(n, n),)),
    make("stack", (s, ARANGE), 0, (TWO, n)),
    *(make(op, (n, s), shape=(n,)) for op in KEEPS_WHOLE),
    make("where", (M, s, ARANGE)),
    make("where", (make("less", (a, b)), ONE, i)),
    power(i, 2),
    power(i, 0),
    power(ARANGE, 3),
    make("reduce", (EYE,), 0, (n,)),
    make("reduce", (EYE,), 1, (n,)),
    entry(ARANGE, i),
    make("row", (EYE, i), shape=(n,)),
    entry(EYE, i, j),
    cut(ARANGE, ONE, less_one(n)),
    make("gather", (ARANGE, e), 0, (m,)),
    spread(ONE, n),
    make("named", (s, s), ("x",), (n,)),
    entry(make("where", (M, s, ARANGE), shape=(n,)), i),
    digit("remainder", add(a, minus(a)), m),
]
NOT_WHOLE = [
    a,
    X,
    HALF,
    mul(HALF, n),
    power(i, -1),
    power(a, 2),
    add(s, X),
    make("concat", (s, X)),
    make("concat", (X, s)),
    make("stack", (X, s)),
    make("stack", (s, X)),
    *(make(op, (s, X), shape=(n,)) for op in KEEPS_WHOLE),
    *(make(op, (X, s), shape=(n,)) for op in KEEPS_WHOLE),
    make("where", (M, X, s)),
    make("where", (M, s, X)),
    make("reduce", (A,), 0, (n,)),
    entry(X, i),
    make("exp", (n,)),
    make("reduce", (make("eye", (space,), shape=(space, n)),), 0, (n,)),
    make("sqrt", (n,)),
    entry(ARANGE, n),
    entry(EYE, i, n),
    entry(EYE, n, i),
    entry(ARANGE, a),
    SPACE,
    make("row", (EYE, n), shape=(n,)),
    cut(X, ZERO, n),
    make("gather", (X, e), 0, (m,)),
    outcome,
    space,
    total(j, a),
    table(j, a),
    stack(a, index("t", u), b, b),
    make("matmul", (EYE, EYE)),
    make("reduce", (X,), 0),
    make("cos", (ZERO,)),
    make("call", (s,), ("F", 0, ()), (n,)),
    M,
    T,
    q,
    MINUS_INFINITY,
    spread(a, n),
    make("bound", data=0),
    g,
    make("log", (n,)),
]


def test_what_is_whole() -> None:
    for t in WHOLE:
        assert is_whole(t), t
    for t in NOT_WHOLE:
        assert not is_whole(t), t
    assert {"size", "arange", "eye", "indicator", "inverse", "floor_divide"} == ALWAYS_WHOLE


def test_a_bound_index_is_not_known_whole() -> None:
    assert not is_whole(bind(add(i, ONE), i))
    assert not is_integer(bind(i, i))
    assert not is_whole(L) or is_integer(L)
