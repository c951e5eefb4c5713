"""Stacks of any natural depth, and division with rest."""

from __future__ import annotations

from ..scalars import ZERO, add, always_less, integer, is_integer, mul, num, subtract
from ..terms import Term, instantiate, make
from .base import NOTHING, Result, need
from .polynomials import same_polynomial
from .signs import BY_FORM, Signs


def layer(t: Term) -> Result:
    """A stack of no layers is its start;  one of m + 1 layers is layer m on a stack of m."""
    need(t.op == "iterate", "not a stack of layers", t)
    depth, start, body = t.args
    if integer(depth) is ZERO:
        return start, NOTHING
    m = integer(add(depth, num(-1)))
    need(always_less(num(-1), m), "it may have no last layer", depth)
    return instantiate(body, m, make("iterate", (m, start, body), shape=t.shape)), NOTHING


def remainder(t: Term, *, signs: Signs = BY_FORM) -> Result:
    """x mod y = x − y·⌊x/y⌋ for y > 0."""
    need(t.op == "remainder" and not t.shape, "not a number mod another", t)
    x, y = t.args
    certain, used = signs.sign(y)
    need(certain == 2 and t.finite, "the divisor is not known to be positive", y)
    return subtract(x, mul(y, make("floor_divide", (x, y)))), used


def floor(t: Term, whole: Term, rest: Term, *, signs: Signs = BY_FORM) -> Result:
    """⌊x/y⌋ = a + ⌊b/y⌋ when x = a·y + b, a an integer and y > 0;  ⌊⌊b/c⌋/y⌋ = ⌊b/(c·y)⌋.

    The second is asked for with ``whole`` = 0 and ``rest`` = ⌊b/(c·y)⌋: c > 0, and y a positive
    integer.
    """
    need(t.op == "floor_divide" and t.finite and not t.shape, "not a floor", t)
    x, y = t.args
    certain, used = signs.sign(y)
    need(certain == 2, "the divisor is not known to be positive", y)
    if x.op == "floor_divide" and rest.op == "floor_divide" and whole is ZERO:
        b, c = x.args
        inner, more = signs.sign(c)
        need(inner == 2 and is_integer(y), "not positive, or y is no integer", c, y)
        joined = rest.args[0] is b and same_polynomial(rest.args[1], mul(c, y))
        need(joined, "not the floor of b/(c·y)", rest)
        return rest, used | more
    need(is_integer(whole), "not an integer", whole)
    need(same_polynomial(x, add(mul(whole, y), rest)), "x is not a·y + b", x)
    return add(whole, make("floor_divide", (rest, y))), used
