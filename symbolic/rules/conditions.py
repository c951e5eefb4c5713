"""Rules for conditions as indicators, for choices (``where``), and for minus infinity."""

from __future__ import annotations

from typing import Any

from ..scalars import (
    MINUS_INFINITY,
    ONE,
    ZERO,
    add,
    always_less,
    indicator,
    integer,
    is_integer,
    is_truth,
    mul,
    num,
    subtract,
    unary,
)
from ..terms import Term, free, make, substitute
from .base import NOTHING, Refused, Result, argument, compared, need
from .polynomials import same_polynomial
from .signs import BY_FORM, Signs

ORDERS = ("less", "less_equal")


def where(t: Term) -> Result:
    """where(c, a, b) = [c]·a + (1 − [c])·b for finite a and b."""
    need(t.op == "where" and t.finite, "a branch may be infinite", t)
    need(not is_truth(t), "its branches are truth values", t)
    c, a, b = t.args
    gate = unary("indicator", c)
    return add(mul(gate, a), mul(gate, num(-1), b), b), NOTHING


def push(t: Term, place: Any) -> Result:
    """f(.., where(c, a, b), ..) = where(c, f(.., a, ..), f(.., b, ..)) for an arithmetic f."""
    need(t.op in ("add", "mul", "exp", "maximum", "power"), "not an arithmetic term", t)
    choice = argument(t, place)
    need(choice.op == "where", "no choice at that place", t)
    c, *branches = choice.args
    both = (make(t.op, (*t.args[:place], b, *t.args[place + 1 :]), t.data) for b in branches)
    return make("where", (c, *both)), NOTHING


def infinity(t: Term, *, signs: Signs = BY_FORM) -> Result:
    """−inf + finite = −inf;  −inf · positive = −inf."""
    need(t.op in ("add", "mul") and MINUS_INFINITY in t.args, "no −inf in it", t)
    others = [arg for arg in t.args if arg is not MINUS_INFINITY]
    if t.op == "add":
        need(all(x.finite for x in others), "another part may be infinite", t)
        return MINUS_INFINITY, NOTHING
    need(len(others) == len(t.args) - 1, "−inf twice in a product", t)
    found = [signs.sign(x) for x in others]
    need(all(s == 2 for s, _ in found), "a factor is not known positive", t)
    return MINUS_INFINITY, NOTHING.union(*(a for _, a in found))


def connective(t: Term) -> Result:
    """[not c] = 1 − [c];  [a and b] = [a][b];  [a or b] = [a] + [b] − [a][b].

    For truth values also [a = b] = [a][b] + (1 − [a])(1 − [b]), and
    [where(c, a, b)] = where(c, [a], [b]).
    """
    need(t.op == "indicator", "not an indicator", t)
    c = t.args[0]
    if c.op == "where":
        branches = (unary("indicator", branch) for branch in c.args[1:])
        return make("where", (c.args[0], *branches), shape=t.shape), NOTHING
    need(c.op in ("not", "and", "or", "equal") and all(map(is_truth, c.args)), "no connective", t)
    gates = [unary("indicator", arg) for arg in c.args]
    if c.op == "not":
        return subtract(ONE, gates[0]), NOTHING
    if c.op == "and":
        return mul(*gates), NOTHING
    if c.op == "or":
        return add(*gates, mul(num(-1), *gates)), NOTHING
    return add(mul(*gates), mul(*(subtract(ONE, gate) for gate in gates))), NOTHING


def either(t: Term, gate: Term) -> Result:
    """f([c]) = [c]·f(1) + (1 − [c])·f(0) for a finite number f([c])."""
    for x in (t, gate):
        need(x.finite and not x.shape and not x.loose, "not a finite number", x)
    need(gate.op == "indicator", "no condition", gate)
    holds, fails = (substitute(t, gate, value) for value in (ONE, ZERO))
    return add(mul(gate, holds), mul(subtract(ONE, gate), fails)), NOTHING


def comparison(t: Term, a: Term, b: Term, *factors: Term, signs: Signs = BY_FORM) -> Result:
    """[x = y] = [a = b] if x − y = ±c·(a − b) for a product c of ``factors`` > 0, by default 1.

    For < and <= only if x − y = c·(a − b).
    """
    op, x, y = compared(t, "equal", *ORDERS)
    found = [signs.sign(factor) for factor in factors]
    need(all(certain == 2 for certain, _ in found), "a factor is not known to be > 0", *factors)
    bases = (f.args[0] if f.op == "power" and f.data else f for f in factors)  # x⁰ > 0 for x = 0
    nonzero = tuple(dict.fromkeys(bases))
    gap, apart = subtract(x, y), mul(ONE, *factors, subtract(a, b))
    turned = op == "equal" and same_polynomial(gap, mul(num(-1), apart), nonzero)
    need(turned or same_polynomial(gap, apart, nonzero), "the differences differ", t, a, b)
    return indicator(op, a, b), NOTHING.union(*(used for _, used in found))


def whole(t: Term, a: Term, b: Term) -> Result:
    """[x < y] = [a <= b] if b − a = y − x − 1 and x and y are integers."""
    _, x, y = compared(t, "less")
    need(is_integer(x) and is_integer(y), "not of integers", x, y)
    apart = same_polynomial(add(subtract(y, x), num(-1)), subtract(b, a))
    need(apart, "the differences do not differ by 1", t, a, b)
    return indicator("less_equal", a, b), NOTHING


def decide(t: Term, *, signs: Signs = BY_FORM) -> Result:
    """Replace a comparison by 0 or 1, decided by integer ranges or the sign of the difference."""
    op, *sides = compared(t, "equal", *ORDERS)
    x, y = map(integer, sides)
    if op == "equal":
        if x is y:
            return ONE, NOTHING
        need(always_less(x, y) or always_less(y, x), "not settled by the ranges", t)
        return ZERO, NOTHING
    ways = ((x, y, op == "less", ONE), (y, x, op == "less_equal", ZERO))
    for low, high, strictly, value in ways:
        if always_less(low, high if strictly else add(high, ONE)):
            return value, NOTHING
    need(t.finite and not t.shape, "not settled by the ranges", t)
    for low, high, strictly, value in ways:
        certain, used = signs.sign(subtract(high, low))
        if certain > strictly:
            return value, used
    raise Refused("not settled by the signs", t)


def turned(t: Term) -> Result:
    """[a <= b] = 1 − [b < a], [a < b] = 1 − [b <= a]; [a = b] = [a <= b] + [b <= a] − 1.

    Here a and b are finite numbers.
    """
    op, a, b = compared(t, "equal", *ORDERS)
    need(t.finite and not t.shape, "not of finite numbers", t)
    if op == "equal":
        need(not (is_truth(a) or is_truth(b)), "truth values have no order", t)
        both = indicator("less_equal", a, b), indicator("less_equal", b, a)
        return add(*both, num(-1)), NOTHING
    other = "less" if op == "less_equal" else "less_equal"
    return subtract(ONE, indicator(other, b, a)), NOTHING


def equal_swap(t: Term, a: Term, b: Term) -> Result:
    """[a = b]·f = [a = b]·f with a replaced by b."""
    need(t.op == "mul" and t.finite, "not a finite product", t)
    gates = [x for x in (indicator("equal", a, b), indicator("equal", b, a)) if x in t.args]
    need(gates, "no such equation in the product", t)
    unmoved = all(substitute(v, a, b) is v for v in free(t) - {a})
    need(unmoved, "a variable has it in its range or shape", t, a)
    place = t.args.index(gates[0])
    rest = [substitute(x, a, b) for i, x in enumerate(t.args) if i != place]
    return mul(gates[0], *rest), NOTHING
