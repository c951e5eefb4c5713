"""What is certain of integers, held to every value: naturals, sizes, and ranges that depend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnproof.symbolic.kernel import Refused
from attnproof.symbolic.rules import RULES
from attnproof.symbolic.scalars import (
    ONE,
    ZERO,
    add,
    always_less,
    below,
    entry,
    index,
    integer,
    is_integer,
    mul,
    num,
)
from attnproof.symbolic.terms import Term, free, make
from tests.cases import each
from tests.symbolic.vocabulary import (
    HALF,
    TWO,
    X,
    a,
    e,
    f,
    i,
    inverse,
    j,
    k,
    less_one,
    m,
    minus,
    n,
    outcome,
    space,
    total,
    u,
    under_,
    up_to,
    v,
    var,
)

Values = Mapping[Term, int]
below_i, below_two = index("t", i), index("r", add(i, j))
below_u, below_t = index("s", add(u, ONE)), index("t2", index("t", i))
pair = index("p", mul(n, m))
ATOMS = [i, j, k, below_i, below_u, below_two, below_t, pair, u, v, n, m, ONE, TWO]


def value(t: Term, values: Values) -> Fraction:
    """The value of a polynomial in whole numbers."""
    if t.op == "num":
        return Fraction(t.data)
    parts = [value(arg, values) for arg in t.args] if t.op in ("add", "mul") else []
    if t.op == "add":
        return sum(parts, Fraction())
    product = Fraction(1)
    for part in parts:
        product *= part
    return product if t.op == "mul" else Fraction(values[t])


def every_value(variables: list[Term], known: dict[Term, int]) -> Iterator[dict[Term, int]]:
    """All small values of sizes and naturals, with every value of the indices below them."""
    ready = [v for v in variables if free(v) - {v} <= set(known)]
    if not ready:
        assert not variables
        yield known
        return
    first, rest = ready[0], [v for v in variables if v is not ready[0]]
    if first.op == "index":
        choices = range(int(value(first.args[0], known)))
    else:
        choices = range(1, 4) if first.op == "size" else range(3)
    for x in choices:
        yield from every_value(rest, {**known, first: x})


def values_of(*terms: Term) -> Iterator[Values]:
    """The first of all values that the variables of the terms may have together."""
    variables = frozenset[Term]().union(*map(free, terms))
    return islice(every_value(sorted(variables, key=lambda t: t.key), {}), 500)


def room(t: Term) -> Term:
    """How far an atom is from the end of its range."""
    if t.op == "index":
        return add(t.args[0], num(-1), minus(t))
    return add(t, num(-1)) if t.op == "size" else t


atoms = st.sampled_from(ATOMS)
naturals = atoms | atoms.map(room)
polynomials = st.lists(st.tuples(st.integers(-2, 3), atoms, atoms), max_size=2).map(
    lambda parts: add(*(mul(num(z), x, y) for z, x, y in parts))
)
gaps = st.lists(st.tuples(st.integers(1, 2), naturals, naturals), max_size=3).map(
    lambda parts: add(*(mul(num(z), x, y) for z, x, y in parts))
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(polynomials, gaps, st.integers(-1, 1))
def test_what_is_always_less_is_less_for_every_value(x: Term, gap: Term, more: int) -> None:
    y = add(x, gap, num(more))
    for values in values_of(x, y) if always_less(x, y) else ():
        assert value(x, values) < value(y, values)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(polynomials, st.sampled_from([n, m, add(u, ONE), mul(n, m), add(n, i), i]))
def test_what_is_below_is_in_range_for_every_value(x: Term, bound: Term) -> None:
    for values in values_of(x, bound) if below(x, bound) else ():
        assert 0 <= value(x, values) < value(bound, values)
    for values in values_of(x):
        assert value(integer(x), values) == value(x, values)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(polynomials, polynomials, st.sampled_from([under_, up_to]))
def test_a_comparison_that_is_decided_holds_for_every_value(x: Term, y: Term, op: object) -> None:
    assert op in (under_, up_to)
    t = under_(x, y) if op is under_ else up_to(x, y)
    try:
        after, _ = RULES["decide"](t)
    except Refused:
        return
    for values in values_of(x, y):
        low, high = value(x, values), value(y, values)
        assert (low < high if op is under_ else low <= high) is (after is ONE)


@each(
    [
        (num(-1), u),
        (u, add(u, n)),
        (below_u, add(u, ONE)),
        (below_i, i),
        (below_t, i),
        (below_t, add(n, num(-1))),
        (add(below_i, ONE), n),
        (below_two, add(n, n)),
        (add(i, j, k), add(n, n, m)),
        (mul(below_i, k), mul(n, m)),
        (add(mul(i, m), k), mul(n, m)),
        (entry(e, k), n),
        (entry(e, k), add(n, u)),
        (entry(inverse, i), n),
        (entry(f, i), n),
    ]
)
def test_what_is_certain_of_ranges_is_seen(low: Term, high: Term) -> None:
    assert always_less(low, high)
    assert not always_less(high, low)


@each(
    [
        (ZERO, u),
        (u, v),
        (u, n),
        (u, mul(u, n)),
        (u, mul(u, u)),
        (below_u, u),
        (i, below_i),
        (below_i, less_one(i)),
        (below_two, n),
        (below_i, index("z", i)),
        (ZERO, below_u),
        (minus(u), ZERO),
        (below_i, mul(i, HALF)),
        (u, mul(TWO, u)),
        (num(-2), minus(below_u)),
        (num(-1), outcome),
        (outcome, space),
        (outcome, n),
        (entry(e, i), less_one(n)),
        (a, add(a, u)),
        (entry(e, add(k, ONE)), n),
        (entry(e, u), n),
        (num(-1), entry(e, add(k, ONE))),
        (num(-1), var("w", kind="nonnegative")),
    ]
)
def test_what_may_fail_is_not_certain(low: Term, high: Term) -> None:
    assert not always_less(low, high)


def test_a_natural_is_an_integer_and_half_of_one_is_none() -> None:
    for t in (u, add(mul(u, v), minus(n)), below_i, below_u, entry(f, i), mul(u, minus(i))):
        assert is_integer(t)
    for t in (
        mul(HALF, u),
        a,
        entry(X, i),
        make("floor_divide", (u, TWO)),
        entry(f, n),
        var("w", kind="nonnegative"),
        space,
        outcome,
    ):
        assert not is_integer(t)


def test_a_sum_over_naturals_is_no_sum_over_a_size() -> None:
    """Σ_j [j < u] is u only where u is at most n."""
    for limit, good in ((i, True), (n, True), (below_i, True), (u, False), (add(n, u), False)):
        t = total(j, under_(j, limit))
        if good:
            assert RULES["count"](t)[0] is limit
        else:
            with pytest.raises(Refused, match="m may leave the axis"):
                RULES["count"](t)
