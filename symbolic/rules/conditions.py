"""Conditions as indicators, choices, and minus infinity."""

from __future__ import annotations

from typing import Any

from ..scalars import (
    MINUS_INFINITY,
    ONE,
    ZERO,
    add,
    always_less,
    integer,
    is_integer,
    is_truth,
    mul,
    num,
    unary,
)
from ..terms import Term, free, make, substitute
from .base import NOTHING, Result, need
from .polynomials import same_polynomial
from .signs import BY_FORM, Signs


def where(t: Term) -> Result:
    """where(c, a, b) = [c]·a + (1 − [c])·b for finite a and b."""
    need(t.op == "where" and t.finite, "a branch may be infinite", t)
    need(not is_truth(t), "its branches are truth values", t)
    c, a, b = t.args
    gate = unary("indicator", c)
    return add(mul(gate, a), mul(gate, num(-1), b), b), NOTHING


def push(t: Term, place: Any) -> Result:
    """f(.., where(c, a, b), ..) = where(c, f(.., a, ..), f(.., b, ..))."""
    need(t.op in ("add", "mul", "exp", "maximum", "power"), "not an arithmetic term", t)
    need(type(place) is int and 0 <= place < len(t.args), "no such argument", t)
    choice = t.args[place]
    need(choice.op == "where", "no choice at that place", t)
    c, *branches = choice.args
    both = tuple(make(t.op, (*t.args[:place], b, *t.args[place + 1 :]), t.data) for b in branches)
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

    Of truth values, [a = b] = [a][b] + (1 − [a])(1 − [b]), and [where(c, a, b)] as of numbers.
    """
    need(t.op == "indicator", "not an indicator", t)
    c = t.args[0]
    if c.op == "where":
        return make(
            "where", (c.args[0], *(unary("indicator", a) for a in c.args[1:])), shape=t.shape
        ), NOTHING
    same = c.op == "equal" and all(map(is_truth, c.args))
    gates = [unary("indicator", arg) for arg in c.args if same or c.op in ("not", "and", "or")]
    need(gates, "no connective", t)
    if same:
        return add(mul(*gates), mul(*(add(ONE, mul(num(-1), gate)) for gate in gates))), NOTHING
    if c.op == "not":
        return add(ONE, mul(num(-1), gates[0])), NOTHING
    if c.op == "and":
        return mul(*gates), NOTHING
    return add(*gates, mul(num(-1), *gates)), NOTHING


def idempotent(t: Term) -> Result:
    """[c]^k = [c] for k >= 1."""
    good = t.op == "power" and t.data >= 1 and t.args[0].op == "indicator"
    need(good, "not [c]^k", t)
    return t.args[0], NOTHING


def either(t: Term, gate: Term) -> Result:
    """f([c]) = [c]·f(1) + (1 − [c])·f(0) for a finite number f([c])."""
    need(t.finite and not t.shape and not t.loose, "not a finite number", t)
    need(
        gate.op == "indicator" and gate.finite and not gate.shape and not gate.loose,
        "no condition on finite numbers",
        gate,
    )
    need(
        all(substitute(v, gate, ONE) is v for v in free(t)),
        "a variable has it in its range or shape",
        t,
        gate,
    )
    holds, fails = (substitute(t, gate, value) for value in (ONE, ZERO))
    return add(mul(gate, holds), mul(add(ONE, mul(num(-1), gate)), fails)), NOTHING


def comparison(t: Term, a: Term, b: Term) -> Result:
    """[x = y] = [a = b] and [x <= y] = [a <= b] when x − y = a − b (or b − a for =)."""
    need(
        t.op == "indicator" and t.args[0].op in ("equal", "less_equal", "less"),
        "not a comparison",
        t,
    )
    x, y = t.args[0].args
    ok = same_polynomial(add(x, mul(num(-1), y)), add(a, mul(num(-1), b)))
    if t.args[0].op == "equal" and not ok:
        ok = same_polynomial(add(x, mul(num(-1), y)), add(b, mul(num(-1), a)))
    need(ok, "the differences differ", t, a, b)
    return unary("indicator", make(t.args[0].op, (a, b))), NOTHING


def whole(t: Term, a: Term, b: Term) -> Result:
    """[x < y] = [a <= b] when b − a = y − x − 1, [x <= y] = [a < b] when b − a = y − x + 1.

    Of integers x and y.
    """
    need(t.op == "indicator" and t.args[0].op in ("less", "less_equal"), "not a comparison", t)
    x, y = t.args[0].args
    need(is_integer(x) and is_integer(y), "not of integers", x, y)
    other, step = ("less_equal", -1) if t.args[0].op == "less" else ("less", 1)
    ok = same_polynomial(add(y, mul(num(-1), x), num(step)), add(b, mul(num(-1), a)))
    need(ok, "the differences differ by something else than 1", t, a, b)
    return unary("indicator", make(other, (a, b))), NOTHING


def decide(t: Term, *, signs: Signs = BY_FORM) -> Result:
    """A comparison that ranges settle, of integers, or the sign of the difference, of any."""
    need(
        t.op == "indicator" and t.args[0].op in ("equal", "less", "less_equal"),
        "not a comparison",
        t,
    )
    x, y = (integer(side) for side in t.args[0].args)
    op = t.args[0].op
    if op == "equal":
        if x is y:
            return ONE, NOTHING
        need(always_less(x, y) or always_less(y, x), "not settled by the ranges", t)
        return ZERO, NOTHING
    strictly = op == "less"
    if always_less(x, y if strictly else add(y, ONE)):
        return ONE, NOTHING
    if always_less(y, add(x, ONE) if strictly else x):
        return ZERO, NOTHING
    need(t.finite and not t.shape, "not settled by the ranges", t)
    certain, used = signs.sign(add(y, mul(num(-1), x)))
    if certain >= (2 if strictly else 1):
        return ONE, used
    certain, used = signs.sign(add(x, mul(num(-1), y)))
    need(certain >= (1 if strictly else 2), "not settled by the signs", t)
    return ZERO, used


def implied(t: Term, first: Any, second: Any, slack: Term, *, signs: Signs = BY_FORM) -> Result:
    """[a <= b]·[c <= d]·f = [a <= b]·f when (d − c) − (b − a) = slack >= 0; < for both as well."""
    need(
        t.op == "mul"
        and t.finite
        and type(first) is int
        and type(second) is int
        and 0 <= first < len(t.args)
        and 0 <= second < len(t.args)
        and first != second,
        "not two places of a finite product",
        t,
    )
    given, told = t.args[first], t.args[second]
    need(given.op == told.op == "indicator", "not two conditions", given, told)
    strict = given.args[0].op == "less"
    allowed = ("less_equal", "less") if strict else ("less_equal",)
    need(
        given.args[0].op in ("less", "less_equal") and told.args[0].op in allowed,
        "not two comparisons of one kind",
        given,
        told,
    )
    (a, b), (c, d) = given.args[0].args, told.args[0].args
    gap = add(d, mul(num(-1), c), a, mul(num(-1), b))
    need(same_polynomial(gap, slack), "not the slack between them", slack)
    certain, used = signs.sign(slack)
    need(certain, "the slack is not known to be >= 0", slack)
    return mul(*(f for place, f in enumerate(t.args) if place != second)), used


def turned(t: Term) -> Result:
    """[a <= b] = 1 − [b < a], [a < b] = 1 − [b <= a]; [a = b] = [a <= b] + [b <= a] − 1.

    For finite numbers.
    """
    need(
        t.op == "indicator"
        and t.args[0].op in ("less", "less_equal", "equal")
        and t.finite
        and not t.shape,
        "not a comparison of finite numbers",
        t,
    )
    a, b = t.args[0].args
    if t.args[0].op == "equal":
        need(not (is_truth(a) or is_truth(b)), "truth values have no order", t)
        both = (unary("indicator", make("less_equal", pair)) for pair in ((a, b), (b, a)))
        return add(*both, num(-1)), NOTHING
    other = "less" if t.args[0].op == "less_equal" else "less_equal"
    return add(ONE, mul(num(-1), unary("indicator", make(other, (b, a))))), NOTHING


def equal_swap(t: Term, a: Term, b: Term) -> Result:
    """[a = b]·f = [a = b]·f with a replaced by b."""
    gate = unary("indicator", make("equal", (a, b)))
    need(t.finite, "a factor may be infinite", t)
    need(
        t.op == "mul" and (gate in t.args or unary("indicator", make("equal", (b, a))) in t.args),
        "no such equation in the product",
        t,
    )
    keep = gate if gate in t.args else unary("indicator", make("equal", (b, a)))
    need(
        all(substitute(v, a, b) is v for v in free(t) - {a}),
        "a variable has it in its range or shape",
        t,
        a,
    )
    place = t.args.index(keep)
    rest = [substitute(x, a, b) for i, x in enumerate(t.args) if i != place]
    return mul(keep, *rest), NOTHING
