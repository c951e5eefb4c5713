"""Numbers, lengths and whole numbers: each function by a table, and at all small sizes."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest

from attnproof.symbolic.concrete import length_value
from attnproof.symbolic.scalars import (
    MINUS_INFINITY,
    ONE,
    ZERO,
    add,
    always_less,
    below,
    boolean,
    entry,
    index,
    index_array,
    index_range,
    integer,
    is_count,
    is_integer,
    mul,
    num,
    number_of,
    power,
    size,
    split_integer,
    unary,
)
from attnproof.symbolic.terms import Term, make
from tests.cases import each
from tests.symbolic.test_ranges import value, values_of
from tests.symbolic.vocabulary import (
    HALF,
    THREE,
    TWO,
    A,
    X,
    a,
    b,
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
    p,
    q,
    s,
    space,
    u,
    v,
    var,
)

ENTRY, DEEP = entry(e, k), make("inverse", (inverse,), shape=(n,))
DIGIT, BLOCK = (make(op, (index("d", mul(n, m)), m)) for op in ("remainder", "floor_divide"))
T, M, MM = var("T", kind="boolean"), var("M", n, kind="boolean"), var("M", n, m, kind="boolean")
W = make("mul", (make("arange", (n,), shape=(n,)), make("arange", (n,), shape=(n,))), shape=(n,))
ARANGE, EYE = make("arange", (n,), shape=(n,)), make("eye", (n,), shape=(n, n))
SPACE = var("S", space)


def digit(op: str, x: Term, y: Term) -> Term:
    return make(op, (x, y))


def test_a_number_is_read_back() -> None:
    assert number_of(num(Fraction(1, 3))) == Fraction(1, 3)
    assert num(2) is num(Fraction(2)) is not num(3)
    for t in (n, a, i, MINUS_INFINITY, make("var", data=Fraction(1)), make("num", data="1")):
        assert number_of(t) is None
    assert (ZERO.data, ONE.data) == (0, 1)
    assert size("n").data == ("n", "size")
    assert index("i", n).args == (n,)
    assert index("i", n).data == "i"


def test_sums_and_products_are_flat() -> None:
    for make_, op, neutral in ((add, "add", ZERO), (mul, "mul", ONE)):
        other = mul if make_ is add else add
        assert make_() is neutral
        assert make_(a) is a
        assert make_(a, b) is make(op, (a, b))
        assert make_(make_(a, b), q) is make_(a, make_(b, q)) is make(op, (a, b, q))
        assert make_(other(a, b), q) is make(op, (make("mul" if op == "add" else "add", (a, b)), q))
        assert make_(X, X) is make(op, (X, X), shape=(n,))
    assert power(X, 1) is X
    assert power(X, 2) is make("power", (X,), 2, (n,))
    assert power(a, 0) is make("power", (a,), 0)
    assert unary("exp", X) is make("exp", (X,), shape=(n,))
    assert boolean("less", X, ARANGE) is make("less", (X, ARANGE), shape=(n,))
    for t in (add(X, a), mul(X, a), boolean("less", X, a)):
        assert t.shape == (n,)
    assert entry(a) is a
    assert entry(A, i, j) is make("entry", (A, i, j))
    for at in ((), (i,), (i, j, i)):
        with pytest.raises(ValueError, match="2 axes"):
            entry(A, *at)


ATOMS = [n, m, i, u, a]
MONOMIALS = [
    ZERO,
    ONE,
    num(-2),
    n,
    minus(m),
    mul(n, m),
    mul(TWO, i),
    mul(i, i),
    add(n, minus(i)),
    mul(add(n, i), add(m, num(-1))),
    mul(n, add(a, minus(a))),
]


def test_an_expanded_polynomial_has_the_same_value_and_one_form() -> None:
    for x, y in product(MONOMIALS, MONOMIALS):
        t = integer(add(x, y))
        assert t is integer(add(y, x)) is integer(t)
        assert integer(mul(x, y)) is integer(mul(y, x))
        assert integer(add(t, minus(x))) is integer(y)
        for numbers in product((1, 2), (1, 3), (0, 1), (0, 2), (5,)):
            at = dict(zip(ATOMS, numbers, strict=True))
            assert value(t, at) == value(x, at) + value(y, at)
            assert value(integer(mul(x, y)), at) == value(x, at) * value(y, at)


INFINITE = add(MINUS_INFINITY, a)
EXACT: list[tuple[Term, Term]] = [
    (add(n, n), make("mul", (TWO, n))),
    (add(n, minus(n)), ZERO),
    (mul(ONE, n), n),
    (mul(num(-1), n), make("mul", (num(-1), n))),
    (mul(TWO, HALF), make("mul", (TWO, HALF))),
    (add(ONE, n, ONE), make("add", (TWO, n))),
    (mul(n, ZERO), ZERO),
    (add(mul(n, n), n, ONE), make("add", (ONE, n, make("mul", (n, n))))),
    (power(n, 2), power(n, 2)),
    (INFINITE, INFINITE),
    (mul(ONE, INFINITE), mul(ONE, INFINITE)),
    (mul(add(n, ONE), add(n, ONE)), make("add", (ONE, mul(TWO, n), make("mul", (n, n))))),
]


@each(EXACT)
def test_the_form_of_an_integer(t: Term, form: Term) -> None:
    assert integer(t) is form


SPLIT: list[tuple[Term, Term, Term, Term]] = [
    (add(mul(i, m), k), m, i, k),
    (add(mul(TWO, n), ONE), TWO, n, ONE),
    (add(mul(num(5), n), ONE), TWO, mul(TWO, n), integer(add(n, ONE))),
    (num(7), THREE, TWO, ONE),
    (num(-7), THREE, num(-3), TWO),
    (mul(n, n, m), mul(n, m), n, ZERO),
    (mul(n, n, m), mul(n, n, n), ZERO, integer(mul(n, n, m))),
    (mul(n, n), mul(n, m), ZERO, integer(mul(n, n))),
    (n, ZERO, ZERO, n),
    (ZERO, n, ZERO, ZERO),
    (add(n, m), add(n, m), ONE, ZERO),
    (add(mul(i, n), mul(i, m), k), add(n, m), i, k),
    (add(mul(i, n), mul(i, m), n, k), add(n, m), i, integer(add(n, k))),
    (add(mul(i, n), mul(i, m), m, j), add(n, m), i, integer(add(m, j))),
    (
        add(mul(TWO, n, n), mul(TWO, n)),
        add(mul(TWO, n), TWO),
        integer(add(n, ONE)),
        integer(add(mul(num(-2), n), num(-2))),
    ),
    (add(mul(TWO, n, n), mul(n, m)), add(mul(TWO, n), m), n, ZERO),
    (add(mul(n, n), n), add(mul(n, n), n), ONE, ZERO),
    (add(mul(TWO, mul(n, m)), mul(THREE, n)), n, integer(add(THREE, mul(TWO, m))), ZERO),
    (add(mul(THREE, n), mul(num(4), m)), mul(TWO, n), ONE, integer(add(n, mul(num(4), m)))),
]


@each(SPLIT)
def test_what_an_integer_is_split_into(t: Term, unit: Term, whole: Term, rest: Term) -> None:
    assert split_integer(t, unit) == (whole, rest)


LESS = [
    ZERO,
    ONE,
    num(-1),
    TWO,
    n,
    m,
    i,
    j,
    k,
    u,
    v,
    less_one(n),
    add(i, ONE),
    add(u, ONE),
    mul(TWO, n),
    mul(n, m),
    mul(i, m),
    add(mul(i, m), k),
    minus(i),
    minus(n),
    mul(i, j),
    index("t", i),
    index("t", add(u, ONE)),
    index("r", less_one(n)),
    add(n, minus(i)),
    mul(i, u),
    mul(n, u),
    mul(i, i),
    mul(n, n),
    mul(index("t", i), TWO),
]


def test_what_is_always_less_is_what_is_less_at_small_sizes() -> None:
    """Both ways: polynomials of whole numbers are compared by their form, and few are missed."""
    missed = 0
    for low, high in product(LESS, LESS):
        seen = all(value(low, at) < value(high, at) for at in values_of(low, high))
        if always_less(low, high):
            assert seen, (low, high)
        elif seen:
            missed += 1
        inside = all(0 <= value(low, at) < value(high, at) for at in values_of(low, high))
        assert inside or not below(low, high)
        assert below(low, high) == (always_less(num(-1), low) and always_less(low, high))
    assert missed <= 16


COUNTS = [ZERO, num(-3), n, add(n, ONE), mul(TWO, n, m), add(mul(n, n), minus(m))]
NO_COUNTS = [
    HALF,
    mul(HALF, n),
    i,
    u,
    a,
    add(n, i),
    power(n, 2),
    space,
    X,
    MINUS_INFINITY,
    make("add", (n, n), shape=(n,)),
    make("mul", (n, n), shape=(n,)),
    ENTRY,
]
INTEGERS = [
    *COUNTS,
    i,
    u,
    add(mul(i, u), minus(v)),
    ENTRY,
    entry(s, i),
    entry(inverse, i),
    entry(f, i),
    make("pick", (f, i), 0),
    DIGIT,
    BLOCK,
    mul(DIGIT, BLOCK),
    entry(DEEP, i),
    index("t", i),
    index("half", HALF),
]
NO_INTEGERS = [
    HALF,
    mul(HALF, n),
    a,
    entry(X, i),
    outcome,
    space,
    power(n, 2),
    add(n, a),
    mul(u, a),
    entry(e, add(k, ONE)),
    entry(e, i),
    entry(f, n),
    var("w", n, kind="natural"),
    digit("remainder", a, m),
    digit("remainder", i, u),
    digit("remainder", i, less_one(m)),
    digit("remainder", less_one(i), m),
    digit("floor_divide", i, m),
    digit("floor_divide", u, m),
    digit("floor_divide", add(i, i), TWO),
    MINUS_INFINITY,
    make("pick", (A, i), 0, (n,)),
    make("remainder", (i, m), shape=(n,)),
    make("entry", (f, i, i)),
]


def test_counts_and_integers_by_their_form() -> None:
    for t in COUNTS:
        assert is_count(t), t
    for t in NO_COUNTS:
        assert not is_count(t), t
    for t in INTEGERS:
        assert is_integer(t), t
    for t in NO_INTEGERS:
        assert not is_integer(t), t


RANGES: list[tuple[Term, Term | None]] = [
    (i, n),
    (index("t", i), i),
    (outcome, None),
    (ENTRY, n),
    (entry(e, i), None),
    (u, None),
    (entry(s, i), n),
    (entry(inverse, i), n),
    (entry(X, i), None),
    (make("pick", (f, i), 0), n),
    (entry(f, n), None),
    (entry(f, minus(i)), None),
    (n, None),
    (a, None),
    (DIGIT, m),
    (BLOCK, n),
    (digit("remainder", u, m), m),
    (digit("remainder", u, TWO), TWO),
    (digit("remainder", n, add(n, ONE)), add(n, ONE)),
    (digit("remainder", u, ZERO), None),
    (digit("remainder", u, less_one(n)), None),
    (digit("remainder", u, i), None),
    (digit("remainder", u, add(i, ONE)), None),
    (digit("remainder", num(-1), m), None),
    (digit("remainder", less_one(u), m), None),
    (digit("remainder", HALF, m), None),
    (digit("remainder", a, m), None),
    (digit("floor_divide", index("d", mul(n, m)), n), m),
    (digit("floor_divide", index("d", add(mul(n, m), ONE)), m), None),
    (digit("floor_divide", i, m), None),
    (digit("floor_divide", u, m), None),
    (digit("floor_divide", i, n), ONE),
    (digit("floor_divide", i, ZERO), None),
    (make("remainder", (index("d", mul(n, m)), m), shape=(n,)), None),
    (make("remainder", (index("d", mul(n, m)), m), shape=()), m),
    (make("row", (f, i)), None),
    (make("slice", (f, ZERO), (0, 1), (n,)), None),
]


@each(RANGES)
def test_the_range_of_an_index_atom(atom: Term, length: Term | None) -> None:
    assert index_range(atom) is length


def test_a_product_with_what_may_be_negative_is_not_certain() -> None:
    for x in (a, entry(X, j), less_one(minus(u)), HALF):
        assert not always_less(num(-1), mul(x, i))
    assert below(outcome, space)
    assert not below(outcome, n)


def test_digits_stay_below_what_is_said() -> None:
    for width, blocks, x in product(range(1, 4), range(1, 4), range(9)):
        if x < width * blocks:
            assert 0 <= x // width < blocks
            assert 0 <= x % width < width


def test_the_array_of_an_index() -> None:
    for t, array in (
        (entry(s, i), s),
        (entry(inverse, i), s),
        (entry(DEEP, i), s),
        (make("pick", (f, i), 0), f),
        (entry(X, i), None),
        (entry(A, i, j), None),
        (make("entry", (f, i, i)), None),
        (make("pick", (f,), 0), None),
        (make("row", (f, i)), None),
        (i, None),
        (f, None),
        (a, None),
        (entry(make("named", (f, f), shape=(n,)), i), None),
        (entry(ARANGE, i), None),
    ):
        assert index_array(t) is array, t


def test_the_value_of_a_length() -> None:
    for x, y in product(range(1, 4), range(1, 4)):
        at = {"n": x, "m": y}
        assert length_value(add(mul(TWO, n, n), minus(m), THREE), at) == 2 * x * x - y + 3
        assert length_value(mul(n, m), at) == x * y
        assert length_value(add(u, ZERO), {"u": x}) == x
        assert length_value(add(i, n), {"i": x, "n": y}) == x + y
    assert length_value(index("at", n), {"at": 2}) == 2
    assert length_value(ZERO, {}) == 0
    with pytest.raises(KeyError, match="p"):
        length_value(mul(n, p), {"n": 1})
