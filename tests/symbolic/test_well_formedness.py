"""A term that means nothing is refused wherever it turns up, and so is what is not a term."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from attnproof.symbolic.derivation import Cases, Chain, Derivation, Inside, Reflexive, Rewrite
from attnproof.symbolic.kernel import Refused, replay
from attnproof.symbolic.normal_form.derived import condition_power
from attnproof.symbolic.normal_form.equations import chain, inside, reverse, rewrite, under
from attnproof.symbolic.scalars import (
    MINUS_INFINITY,
    ONE,
    ZERO,
    add,
    entry,
    index,
    mul,
    power,
    unary,
)
from attnproof.symbolic.terms import Term, bind, make
from attnproof.symbolic.well_formedness import formed
from tests.cases import each
from tests.symbolic.vocabulary import (
    HALF,
    THREE,
    TWO,
    A,
    L,
    R,
    X,
    Y,
    a,
    b,
    chosen,
    holds,
    i,
    j,
    m,
    minus,
    n,
    outcome,
    s,
    same,
    space,
    spread,
    stack,
    table,
    total,
    u,
    under_,
    var,
)

TRUE = make("equal", (a, a))
TRUTHS = var("M", n, kind="boolean")
MASK = entry(TRUTHS, i)
GATE = holds(TRUE)
MASKED = chosen(MASK, a, MINUS_INFINITY)  # minus infinity, or a number
MALFORMED: list[Term] = [
    make("add", (X, a), shape=(n,)),
    make("add", (), shape=()),
    make("mul", (X, var("Z", m)), shape=(n,)),
    make("or", (same(a, b), same(a, b), same(b, a))),
    make("or", (same(a, b),)),
    make("not", (a, b)),
    make("where", (same(a, b), a)),
    make("exp", (a, b)),
    make("exp", (X,)),
    make("maximum", (a, b, a)),
    make("power", (a,), HALF.data),
    make("power", (a,), 2.5),
    make("power", (a, b), 3),
    make("num", data=7.5),
    make("num", data="0"),
    make("num", (a,), data=Fraction(9)),
    make("size", data="n"),
    make("index", (n,), 0),
    make("index", (X,), "x"),
    make("index", (a,), "x"),
    make("index", (HALF,), "x"),
    make("index", (MINUS_INFINITY,), "x"),
    make("index", (make("bound", data=0),), "x"),
    make("index", (power(n, -1),), "x"),
    *(make("index", (length,), "x") for length in (GATE, add(n, mul(ZERO, GATE)))),
    make("index", (make("maximum", (n, m)),), "x"),
    make("var", (n,), ("X", "real"), (n,)),
    make("var", (n, n), ("X", "permutation"), (n,)),
    make("var", (), ("X", "permutation"), (n,)),
    make("var", (), ("X",), (n,)),
    make("var", (), ("X", "real"), (i,)),
    make("var", (), ("X", "real"), (unary("abs", n),)),
    make("var", (), ("u", "natural"), (n,)),
    make("var", (), ("X", "real"), (u,)),
    make("var", (u,), ("s", "permutation"), (n,)),
    make("sum", (u, a)),
    make("sum", (i, a)),
    make("tabulate", (u, a), shape=(u,)),
    make("iterate", (a, X, X), shape=(n,)),
    make("iterate", (HALF, X, X), shape=(n,)),
    make("iterate", (space, X, X), shape=(n,)),
    make("add", (space, ONE)),
    make("maximum", (space, space)),
    make("equal", (space, ONE)),
    make("exp", (space,)),
    make("power", (space,), 2),
    make("entry", (X, space)),
    make("space", data="Ω"),
    make("space", (n,), ("Ω", "space")),
    make("slice", (R, ZERO), (0, 1), (n,)),
    make("slice", (X, ZERO), (0, 1), (space,)),
    make("concat", (R, R), 0, (space,)),
    make("reshape", (R,), (((0,), (0, 1)),), (ONE, space)),
    make("arange", (space,), shape=(space,)),
    make("iterate", (outcome, a, b)),
    make("add", (TRUE, ONE)),
    make("exp", (TRUE,)),
    make("less", (TRUE, a)),
    make("where", (TRUE, TRUE, a)),
    add(MASK, MASK),
    mul(TWO, MASK),
    power(MASK, 2),
    unary("exp", MASK),
    make("maximum", (MASK, ZERO)),
    chosen(TRUE, MASK, ONE),
    add(chosen(MASK, MASK, MASK), ONE),
    add(make("less_equal", (a, b)), a),
    make("iterate", (L, MASK, a)),
    make("iterate", (L, a, MASK)),
    make("reduce", (TRUTHS,), 0),
    make("matmul", (TRUTHS, X)),
    make("matmul", (X, TRUTHS)),
    minus(MASKED),
    mul(a, MASKED),
    mul(ZERO, MASKED),
    mul(holds(MASK), MASKED),
    mul(MASKED, MASKED),
    power(MASKED, 2),
    power(MASKED, -1),
    unary("abs", MASKED),
    make("remainder", (MASKED, TWO)),
    make("matmul", (spread(MASKED, n), X)),
    make("entry", (A, i)),
    make("entry", (X, i, j)),
    make("entry", (X, spread(i, n))),
    make("entry", (a,)),
    make("sum", (n, X)),
    make("sum", (n, a), shape=(n,)),
    make("sum", (a, a)),
    make("tabulate", (ONE, make("bound", data=0)), shape=(TWO,)),
    make("tabulate", (n, X), shape=(n, m)),
    make("tabulate", (n, n, a), shape=(n,)),
    make("slice", (X, ZERO), 0, (n,)),
    make("reshape", (A,), 3, (n, n)),
    make("iterate", (L, X, a), shape=(n,)),
    make("iterate", (L, X, X), shape=(m,)),
    make("broadcast", (X,), shape=(m,)),
    make("broadcast", (A,), shape=(n,)),
    make("permute", (A,), (0, 0), (n, n)),
    make("permute", (var("R", n, m),), (1, 0), (n, m)),
    make("new axis", (X,), 0, (n, n)),
    make("pick", (A, i), 2, (n,)),
    make("pick", (A, X), 0, (n,)),
    make("pick", (A, i), 0, (m,)),
    make("slice", (X, ZERO), (0, 0), (n,)),
    make("slice", (A, ZERO), (0, 1), (m, m)),
    make("gather", (X, s), 0, (m,)),
    make("gather", (X, A), 0, (n, n)),
    make("concat", (X, Y), 0, (n,)),
    make("concat", (A, var("R", n, m)), 0, (mul(TWO, n), n)),
    make("stack", (X, Y), 0, (THREE, n)),
    make("stack", (X, var("Z", m)), 0, (TWO, n)),
    make("reduce", (X,), 1, ()),
    make("reduce", (A,), 0, (n, n)),
    make("matmul", (A, var("Z", m)), shape=(n,)),
    make("matmul", (A, X), shape=(n, n)),
    make("matmul", (a, X)),
    make("reshape", (A,), (((0,), (0,)),), (n,)),
    make("reshape", (A,), (((0, 1), (0,)),), (n,)),
    make("reshape", (A,), (((1, 0), (0,)),), (mul(n, n),)),
    make("eye", (n,), shape=(n, m)),
    make("arange", (n,), shape=(m,)),
    make("call", (A,), ("F", 1, ()), (m,)),
    make("call", (A,), ("F", -1, ()), (n,)),
    make("row", (A, i), shape=(m,)),
    make("is in", (i, a)),
    make("inverse", (A,), shape=(n,)),
    make("inverse of", (a,)),
    make("assumed equal", (a, b)),
    make("plus", (a, b)),
    make("concat", (TRUTHS, X), 0, (mul(TWO, n),)),
    make("concat", (X, TRUTHS), 0, (mul(TWO, n),)),
    make("stack", (TRUTHS, X), 0, (TWO, n)),
    make("stack", (), 0, (ZERO, n)),
    make("reshape", (X,), (((0, 1), (0,)),), (n,)),
]


# A term that means nothing is refused wherever it turns up, and so is what is not a term.


@each(MALFORMED)
def test_a_term_without_a_meaning_is_refused(t: Term) -> None:
    for whole in (t, make("named", (t,), ("f",), t.shape)):
        with pytest.raises(Refused, match="term"):
            formed(whole)
        with pytest.raises(Refused, match="term"):
            replay(Reflexive(whole))
    with pytest.raises(Refused, match="term"):
        replay(Rewrite("ring", ZERO, (mul(ZERO, t),), mul(ZERO, t)))


def test_a_table_of_fewer_rows_than_it_says_does_not_join_0_and_1() -> None:
    """Two rows [i < 1] and 1 agree at the one index of a table of length 1."""
    z = index("z", ONE)

    def two_rows(body: Term) -> Term:
        return make("tabulate", (ONE, bind(body, z)), shape=(TWO,))

    first = two_rows(under_(z, ONE))
    agree = under(first, (z,), rewrite("decide", under_(z, ONE)))
    second = entry(first, ONE)
    zero = chain(rewrite("entry", second), rewrite("decide", under_(ONE, ONE)))
    moved = inside(second, [(0, agree)])
    one = chain(moved, rewrite("entry", moved.right))
    assert (zero.right, one.right) == (ZERO, ONE)
    with pytest.raises(Refused, match="tabulate"):
        replay(chain(reverse(zero), one))


def test_three_conditions_under_one_or_do_not_join_4_and_2() -> None:
    conditions = [make("equal", pair) for pair in ((a, a), (b, b), (ZERO, ONE))]
    t = holds(make("or", tuple(conditions)))
    step = condition_power(power(t, 2))
    with pytest.raises(Refused, match="'or'"):
        replay(step)


class Pretender:
    """Says that it is any term, and changes its mind."""

    def __init__(self, t: Term) -> None:
        self.t = t

    def __getattr__(self, name: str) -> Any:
        return getattr(self.t, name)

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash(self.t)


def test_what_is_no_term_is_refused() -> None:
    fake: Any = Pretender(a)
    first = Rewrite("ring", a, (fake,), fake)
    with pytest.raises(Refused, match="make"):
        replay(first)
    with pytest.raises(Refused, match="make"):
        replay(Chain((first, Reflexive(fake))))


def test_a_term_that_was_forged_or_changed_by_force_is_refused() -> None:
    forged = object.__new__(Term)
    changed = make("var", (), ("to be changed", "real"))
    for name in ("op", "args", "data", "shape", "key", "loose", "finite"):
        object.__setattr__(forged, name, getattr(a, name))
    object.__setattr__(changed, "data", ("changed", "real"))
    for t in (forged, changed):
        with pytest.raises(Refused, match="make"):
            formed(t)
        with pytest.raises(Refused, match="make"):
            replay(Inside(add(t, b), (), add(t, b)))


def test_what_is_no_derivation_is_refused() -> None:
    class Sure(Reflexive):
        """A derivation of whatever it is asked for."""

    false: list[Any] = [Sure(a), None, "a = b", (a, b), Cases]
    for thing in false:
        with pytest.raises(Refused, match="not a derivation"):
            replay(thing)
    parts: tuple[Derivation, ...] = (Reflexive(a),)
    with pytest.raises(Refused):
        replay(Chain((*parts, false[0])))


STACK = stack(X, index("t", L), var("y", n), make("add", (var("y", n), X), shape=(n,)))
FORMED = [
    STACK,
    stack(a, index("t", add(u, i)), b, mul(b, index("t", add(u, i)))),
    index("t", i),
    index("t", add(u, ONE)),
    total(outcome, entry(R, outcome)),
    table(outcome, entry(R, outcome)),
    make("reduce", (R,), 0),
    make("where", (TRUE, TRUE, TRUE)),
    add(holds(TRUE), ONE),
]


@pytest.mark.parametrize("t", FORMED)
def test_a_term_with_a_meaning_is_passed(t: Term) -> None:
    assert formed(t) is t
    assert replay(Reflexive(t)).left is t
