"""Random numbers of the vocabulary, as terms, for tests of claims about every term."""

from __future__ import annotations

from hypothesis import strategies as st

from attnproof.symbolic.rules.base import Assumption
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
from attnproof.symbolic.terms import Term, make, postorder
from tests.symbolic.interpreter import Undefined, World
from tests.symbolic.vocabulary import (
    HALF,
    PI,
    TWO,
    D,
    P,
    R,
    X,
    Y,
    a,
    b,
    chosen,
    i,
    j,
    m,
    minus,
    n,
    outcome,
    q,
    spread,
    stack,
    total,
    u,
    up_to,
    v,
    var,
)

Numbers = st.SearchStrategy[Term]
fresh_index, inside, y0 = index("j0", n), index("t", i), var("y0", kind="positive")
leaves = st.sampled_from(
    [
        a,
        b,
        q,
        y0,
        u,
        v,
        n,
        m,
        i,
        j,
        fresh_index,
        inside,
        PI,
        ZERO,
        ONE,
        TWO,
        HALF,
        num(-1),
        minus(i),
        entry(P, i),
        entry(D, j),
        entry(D, fresh_index),
        entry(X, i),
        minus(a),
        add(a, minus(b)),
        add(n, minus(i)),
        chosen(make("less_equal", (j, i)), a, MINUS_INFINITY),
        up_to(i, j),
        make("floor_divide", (u, TWO)),
        make("remainder", (i, TWO)),
    ]
)


def larger(inner: Numbers) -> Numbers:
    """Sums, products, functions, choices, sums over an axis, expectations and stacks of numbers."""
    several = st.lists(inner, min_size=2, max_size=3)
    functions = st.sampled_from(["exp", "abs", "sqrt", "cos", "sin", "tanh", "log"])
    pairs = st.tuples(inner, inner)
    return st.one_of(
        several.map(lambda x: add(*x)),
        several.map(lambda x: mul(*x)),
        st.tuples(functions, inner).map(lambda x: unary(*x)),
        st.tuples(inner, st.integers(-2, 4)).map(lambda x: power(*x)),
        pairs.map(lambda x: make("maximum", x)),
        pairs.map(lambda x: chosen(make("less_equal", (i, j)), *x)),
        inner.map(lambda x: total(fresh_index, mul(x, entry(Y, fresh_index)))),
        inner.map(lambda x: total(fresh_index, x)),
        inner.map(lambda x: entry(spread(x, n), i)),
        inner.map(lambda x: total(outcome, x)),
        inner.map(lambda x: total(outcome, power(add(x, entry(R, outcome)), 2))),
        pairs.map(lambda x: stack(x[0], index("s", u), y0, add(y0, x[1]))),
        inner.map(lambda x: stack(ONE, index("s", u), y0, mul(y0, x))),
    )


numbers = st.recursive(leaves, larger, max_leaves=5)


def fact(kind: str, t: Term) -> Assumption:
    """What is said of a number, or of every entry of the array that it is an entry of."""
    return kind, t.args[0] if t.op == "entry" and kind != "nonzero" else t


def holds_in(world: World, told: Assumption) -> bool:
    """Whether a fact holds in a world; whether one that speaks of a function or a map does."""
    kind, t = told
    if kind not in ("positive", "nonnegative", "nonzero"):
        return True
    try:
        value = world(t)
    except Undefined:
        return False
    entries = value.ravel() if t.shape else [value]
    return all(
        x > 0 if kind == "positive" else x >= 0 if kind == "nonnegative" else x != 0
        for x in entries
    )


def rounds(t: Term) -> bool:
    """Whether a value of the term may be rounded to 0 though it is not."""
    return any(part.op in ("exp", "cos", "sin", "tanh", "power") for part in postorder(t))
