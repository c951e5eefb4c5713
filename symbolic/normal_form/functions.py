"""Functions of a number in the normal form: exponentials, logarithms, roots, maxima."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from typing import TYPE_CHECKING

from ..derivation import Derivation
from ..rules import Refused, sign
from ..scalars import (
    MINUS_INFINITY,
    ONE,
    ZERO,
    add,
    index_range,
    is_integer,
    mul,
    num,
    number_of,
    power,
    split_integer,
    unary,
)  # fmt: skip
from ..terms import Term, make
from . import conditions
from .equations import chain, inside, rewrite
from .polynomial import expand, monomial_term, positive

if TYPE_CHECKING:
    from .normaliser import Normaliser

__all__ = [
    "absolute", "division", "exponential", "hyperbolic", "logarithm", "maximum", "root",
]  # fmt: skip


def exponential(norm: Normaliser, t: Term) -> Derivation:
    """exp of a sum as a product of exponentials of single terms."""
    if not t.args[0].finite:
        return conditions.exponential(norm, t)
    first = inside(t, [(0, norm(t.args[0]))])
    u = first.right
    exponent = expand(u.args[0])
    if not exponent:
        return chain(first, rewrite("exp", u, ONE))
    if u.args[0].op == "log" and positive(u.args[0].args[0]):
        return norm.then(chain(first, rewrite("exp of log", u)))
    factors = []
    for monomial, c in exponent.items():
        unit = unary("exp", monomial_term(monomial, Fraction(1, c.denominator)))
        factors.append(power(unit, c.numerator))
    target = mul(*factors)
    if any(len(m) == 1 and m[0][0].op == "log" for m in exponent) and target is not u:
        return chain(first, norm.at("exp", u, target))
    return chain(first, norm.settled("exp", u, target))


def logarithm(norm: Normaliser, t: Term) -> Derivation:
    """log of an exponential, or of a product of positive numbers."""
    first = norm.arguments(t)
    u = first.right
    x = u.args[0]
    if x.op == "exp" and x.args[0].finite:
        return norm.then(chain(first, rewrite("log", u, x.args[0])))
    if x is ONE:
        return chain(first, rewrite("log", u, ZERO))
    if x.op not in ("mul", "power"):
        return first
    parts = []
    for factor in x.args if x.op == "mul" else (x,):
        base, k = (factor.args[0], factor.data) if factor.op == "power" else (factor, 1)
        parts.append(mul(num(k), unary("log", base)))
    try:
        return norm.then(chain(first, rewrite("log", u, add(*parts))))
    except Refused:
        return first


def hyperbolic(norm: Normaliser, t: Term) -> Derivation:
    """tanh 0 = 0."""
    first = norm.arguments(t)
    u = first.right
    return chain(first, rewrite("tanh", u)) if u.args[0] is ZERO else first


def root(norm: Normaliser, t: Term) -> Derivation:
    """√(x²) = |x|."""
    first = norm.arguments(t)
    u = first.right
    x = u.args[0]
    value = number_of(x)
    if value is not None and value >= 0:
        exact = Fraction(isqrt(value.numerator), isqrt(value.denominator))
        if exact * exact == value:
            step = rewrite("root of a square", u, unary("abs", num(exact)))
            return norm.then(chain(first, step))
    if x.op == "power" and x.data == 2 and u.finite:
        return norm.then(chain(first, rewrite("root of a square", u, unary("abs", x.args[0]))))
    return first


def absolute(norm: Normaliser, t: Term) -> Derivation:
    """|x| as x where its sign is known, else the one of |x| and |−x| with the smaller key."""
    first = inside(t, [(0, norm(t.args[0]))])
    u = first.right
    x = u.args[0]
    if sign(x)[0]:
        return chain(first, rewrite("absolute value", u, x))
    opposite = norm(mul(num(-1), x)).right
    if opposite.key < x.key:
        first = chain(first, rewrite("absolute value", u, unary("abs", opposite)))
    return first


def maximum(norm: Normaliser, t: Term) -> Derivation:
    """A maximum as that of its different numbers in order, or opened as a choice."""
    first = norm.arguments(t)
    u = first.right

    def leaves(x: Term) -> list[Term]:
        return [y for arg in x.args for y in leaves(arg)] if x.op == "maximum" else [x]

    if norm.choices and all(x.finite for x in u.args) and not u.shape:
        return norm.then(chain(first, rewrite("maximum as a choice", u)))
    different = sorted(set(leaves(u)) - {MINUS_INFINITY}, key=lambda x: x.key)
    target = different[0]
    for x in different[1:]:
        target = make("maximum", (target, x))
    return first if target is u else chain(first, rewrite("maximum", u, target))


def division(norm: Normaliser, t: Term) -> Derivation:
    """Quotient and rest of integers; a rest as a difference, whole parts taken out of a floor."""
    first = norm.arguments(t)
    u = first.right
    try:
        return chain(first, norm.at("divide", u))
    except Refused:
        pass
    x, y = u.args
    if not u.finite or not positive(y) or any(a.op == "index" for m in expand(x) for a, _ in m):
        return first
    if u.op == "remainder":
        if any(index_range(a) is not None for m in expand(x) for a, _ in m):
            return first  # a digit of an index is one that certainly stays below y
        return chain(first, norm.at("remainder", u))
    if x.op == "floor_divide" and positive(x.args[1]) and is_integer(y):
        flat_ = make("floor_divide", (x.args[0], norm(mul(x.args[1], y)).right))
        return chain(first, norm.at("floor", u, ZERO, flat_))
    whole, rest = split_integer(x, y)
    if whole is not ZERO and is_integer(whole):
        return chain(first, norm.at("floor", u, whole, rest))
    return first
