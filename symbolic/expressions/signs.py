"""Signs of SymPy expressions that follow from their form, and certified values as balls.

The form is examined as its author wrote it, not multiplied out: a sum of weights times gaps is at
least 0 because each of its factors is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

import sympy as sp
from flint import ctx, fmpq
from sympy.core.function import AppliedUndef

from ..certified_numbers import FUNCTIONS, Unclear, ball, finite, less, maximum, power, times_pi
from .fractions import Undefined
from .generators import Generators, Unreadable, nonnegative, positive

ABOVE, AT_LEAST, UNKNOWN = 2, 1, 0
Known = Callable[[Any], int]


def certain_sign(e: sp.Expr, generators: Generators, known: Known = lambda _: UNKNOWN) -> int:
    """Return 2 if the expression is certainly > 0, 1 if >= 0, −2 if < 0, −1 if <= 0, else 0.

    ``known`` returns the sign of an expression by the hypotheses.

    >>> x = sp.Symbol("x", real=True)
    >>> certain_sign(sp.exp(x) * (x**2 + 1), Generators())
    2
    """
    if e.is_number:
        return _of_number(e)
    if given := known(e) or -known(-e):
        return int(given)
    if e.is_Symbol:
        return ABOVE if e.is_positive else AT_LEAST if e.is_nonnegative else UNKNOWN
    return _of_form(e, generators, known) or _of_polynomial(e, generators)


def _of_number(e: sp.Expr) -> int:
    if e.is_zero:
        return AT_LEAST
    try:
        value = ball(certified_value(e, {}))
    except (Unclear, Unreadable):
        return UNKNOWN
    if not finite(value):
        return UNKNOWN
    return ABOVE if value > 0 else -ABOVE if value < 0 else UNKNOWN


def _of_form(e: sp.Expr, generators: Generators, known: Known) -> int:
    if isinstance(e, sp.exp):
        return ABOVE
    if isinstance(e, sp.Abs):
        return AT_LEAST
    if isinstance(e, sp.Piecewise):
        parts = [certain_sign(value, generators, known) for value, _ in e.args]
        return _weakest(parts) if e.args[-1][1] == sp.true else UNKNOWN
    if e.is_Add or e.is_Mul or isinstance(e, sp.Max | sp.Min):
        parts = [certain_sign(arg, generators, known) for arg in e.args]
        if e.is_Mul:
            sign = -1 if sum(part < 0 for part in parts) % 2 else 1
            return sign * min(map(abs, parts))
        if isinstance(e, sp.Max) and max(parts) > 0:
            return max(parts)
        if isinstance(e, sp.Min) and min(parts) < 0:
            return min(parts)
        sign = _weakest(parts)
        strict = any(abs(part) == ABOVE for part in parts)
        return ABOVE * (sign > 0) - ABOVE * (sign < 0) if e.is_Add and strict else sign
    if e.is_Pow:
        inner = certain_sign(e.base, generators, known)
        if e.exp.is_Integer and e.exp % 2 == 0:
            return ABOVE if abs(inner) == ABOVE else AT_LEAST
        if e.exp.is_Integer:
            return inner
        if inner != ABOVE and not (2 * e.exp).is_Integer:
            return UNKNOWN
        return inner if inner == ABOVE else AT_LEAST
    return UNKNOWN


def _weakest(signs: list[int]) -> int:
    """Return the weakest of signs that agree in direction; 0 if they do not."""
    if min(signs) > 0:
        return min(signs)
    return max(signs) if max(signs) < 0 else UNKNOWN


def _of_polynomial(e: sp.Expr, generators: Generators) -> int:
    try:
        low = generators.lower(e)
        polynomials = generators.polynomials(low)
        fraction = polynomials.fraction(low)
    except (Undefined, Unreadable):
        return UNKNOWN
    p = fraction.numerator
    for factor, k in fraction.factors.items():
        if k % 2 and not positive(factor):
            p = polynomials.reduced(p * factor)
    for sign in (1, -1):
        if positive(sign * p):
            return sign * ABOVE
        if nonnegative(sign * p):
            return sign * AT_LEAST
    return UNKNOWN


def defined_with(e: sp.Expr, others: Iterable[sp.Expr], generators: Generators) -> bool:
    """Whether an expression has a value wherever the others have one.

    Each divisor, root and logarithm in it must be admissible by its form, or occur in the others.

    >>> x = sp.Symbol("x", real=True)
    >>> defined_with(1 / (1 + x**2), [x], Generators()), defined_with(1 / x, [x], Generators())
    (True, False)
    """
    known = {part for other in others for part in _requirements(other)}
    return all(
        certain_sign(base, generators) >= least
        or (least == NOT_ZERO and certainly_not_zero(base, generators))
        for base, least in _requirements(e) - known
    )


NOT_ZERO = 3


def _requirements(e: sp.Expr) -> set[tuple[sp.Expr, int]]:
    """Return the parts that need a sign, or must not be 0, for the expression to have a value."""
    found: set[tuple[sp.Expr, int]] = set()
    for part in sp.preorder_traversal(e):
        if isinstance(part, sp.log):
            found.add((part.args[0], ABOVE))
        elif isinstance(part, sp.tan):
            found.add((sp.cos(part.args[0]), NOT_ZERO))
        elif isinstance(part, sp.Pow) and not part.exp.is_Integer:
            root = (2 * part.exp).is_Integer and part.exp.is_positive
            found.add((part.base, AT_LEAST if root else ABOVE))
        elif isinstance(part, sp.Pow) and part.exp.is_negative:
            found.add((part.base, NOT_ZERO))
    return found


def certainly_not_zero(e: sp.Expr, generators: Generators) -> bool:
    """Whether an expression is certainly not 0, by its form or as a number."""
    return abs(certain_sign(e, generators)) == ABOVE


_PRECISION = 200


def certified_value(e: Any, values: dict[Any, Any]) -> Any:
    """Return the value of an expression as an exact number or a ball that contains it.

    ``values`` maps the symbols to fractions or balls; the values of all parts are added to it, as
    entries of one array share most of their parts.  Raises ``Unclear`` for a case that the balls
    do not decide, and :class:`Unreadable` for unknown functions.
    """
    kept, ctx.prec = ctx.prec, _PRECISION
    try:
        return _value(e, values)
    finally:
        ctx.prec = kept


_NO_NUMBERS = (sp.oo, sp.S.NegativeInfinity, sp.zoo, sp.nan, sp.I)


def _value(e: Any, values: dict[Any, Any]) -> Any:
    if e not in values:
        values[e] = _computed(e, values)
    return values[e]


def _computed(e: Any, values: dict[Any, Any]) -> Any:
    if e.is_Rational:
        return fmpq(int(e.p), int(e.q))
    if e is sp.pi or e is sp.E:
        return times_pi(fmpq(1)) if e is sp.pi else FUNCTIONS["exp"](fmpq(1))
    if e.is_Symbol or isinstance(e, AppliedUndef) or any(e is x for x in _NO_NUMBERS):
        raise Unreadable(f"{e} has no value")
    args = [] if isinstance(e, sp.Piecewise) else [_value(arg, values) for arg in e.args]
    if e.is_Add:
        return reduce(lambda x, y: x + y, args)
    if e.is_Mul:
        return reduce(lambda x, y: x * y, args)
    if e.is_Pow and e.exp.is_Integer:
        return power(args[0], int(e.exp))
    if e.is_Pow and (2 * e.exp).is_Integer:
        return power(FUNCTIONS["sqrt"](args[0]), int(2 * e.exp))
    if isinstance(e, sp.Max | sp.Min):
        sign = 1 if isinstance(e, sp.Max) else -1
        return sign * reduce(maximum, (sign * x for x in args))
    if isinstance(e, sp.Piecewise):
        return next(_value(x, values) for x, condition in e.args if _holds(condition, values))
    return _function(type(e).__name__)(args[0])


def _function(name: str) -> Callable[[Any], Any]:
    if name.lower() not in FUNCTIONS:
        raise Unreadable(f"{name}(..) is not supported")
    return FUNCTIONS[name.lower()]


def _holds(condition: Any, values: dict[Any, Any]) -> bool:
    if condition in (sp.true, sp.false):
        return bool(condition)
    match type(condition).__name__:
        case "And":
            return all(_holds(part, values) for part in condition.args)
        case "Or":
            return any(_holds(part, values) for part in condition.args)
        case "Not":
            return not _holds(condition.args[0], values)
    x, y = (_value(side, values) for side in condition.args)
    match type(condition).__name__:
        case "StrictGreaterThan":
            return less(y, x)
        case "GreaterThan":
            return not less(x, y)
        case "StrictLessThan":
            return less(x, y)
        case "LessThan":
            return not less(y, x)
    raise Unreadable(f"the condition {condition} is not supported")
