"""Minus infinity never enters the arithmetic of indices."""

from __future__ import annotations

import pytest

from attnproof.symbolic.derivation import Chain, Inside, Reverse, Rewrite
from attnproof.symbolic.kernel import Refused, replay
from attnproof.symbolic.scalars import (
    MINUS_INFINITY,
    ONE,
    ZERO,
    always_less,
    below,
    entry,
    is_integer,
    num,
    unary,
)
from attnproof.symbolic.terms import Term, make

INF = MINUS_INFINITY
LESS = make("add", (INF, ONE))
MINUS = make("mul", (num(-1), INF))
ONE_LIKE = make("add", (LESS, MINUS))
ZERO_LIKE = make("add", (INF, MINUS))
ABSORB = Rewrite("infinity", LESS, (), INF)


def absorbed(whole: Term, result: Term) -> Inside:
    inner = Inside(ONE_LIKE, ((0, ABSORB),), ZERO_LIKE)
    return Inside(whole, ((whole.args.index(ONE_LIKE), inner),), result)


def test_no_range_is_certain() -> None:
    for term in (INF, LESS, ONE_LIKE, ZERO_LIKE):
        assert not below(term, num(5))
        assert not always_less(INF, term)
        assert not always_less(term, num(5))
        assert not is_integer(term)


def test_equal_infinities_do_not_decide_a_comparison() -> None:
    different = unary("indicator", make("equal", (LESS, INF)))
    same = unary("indicator", make("equal", (INF, INF)))
    zero = Rewrite("decide", different, (), ZERO)
    sides = Inside(different.args[0], ((0, ABSORB),), same.args[0])
    moved = Inside(different, ((0, sides),), same)
    one = Rewrite("decide", same, (), ONE)
    with pytest.raises(Refused):
        replay(Chain((Reverse(zero), moved, one)))


def test_a_rest_that_may_be_infinite_is_no_rest() -> None:
    first, second = (make("remainder", (t, num(2))) for t in (ONE_LIKE, ZERO_LIKE))
    whole = Chain(
        (
            Reverse(Rewrite("divide", first, (), ONE)),
            absorbed(first, second),
            Rewrite("divide", second, (), ZERO),
        )
    )
    with pytest.raises(Refused):
        replay(whole)


def test_an_index_that_may_be_infinite_reads_no_entry() -> None:
    X, Y = (make("var", (), (name, "real"), (ONE,)) for name in "XY")
    joined = make("concat", (X, Y), 0, (num(2),))
    first, second = (make("entry", (joined, t)) for t in (ZERO_LIKE, ONE_LIKE))
    whole = Chain(
        (
            Reverse(Rewrite("entry", second, (), entry(Y, ZERO))),
            absorbed(second, first),
            Rewrite("entry", first, (), entry(X, ZERO)),
        )
    )
    with pytest.raises(Refused):
        replay(whole)
