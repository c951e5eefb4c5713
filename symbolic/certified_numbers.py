"""Certified numbers: exact rationals where possible, balls (Arb) elsewhere.

A number here is one of

* ``fmpq``: an exact rational;
* :class:`~attnproof.symbolic.certified_numbers.PiMultiple`: an exact rational multiple of π;
* ``arb``: a ball that certainly contains the true value, at the current working precision;
* :data:`MINUS_INFINITY`: exactly minus infinity, with exp(-inf) = 0 and -inf + finite = -inf;
* :data:`UNDEFINED`: no value, or none that this precision determines (1/0, division by a ball
  that contains 0, log or sqrt of a number that may be negative, 0·(-inf)).  It propagates through
  arithmetic.

A comparison is answered only if it is certain; otherwise :class:`Unclear` is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np
from flint import arb, fmpq

from .evaluate import Evaluator
from .terms import Term

# Exact multiples of π, and the angles whose cosine is rational

# Niven's theorem: for rational q with 0 <= q < 2, cos(q·π) is rational only at these q.
_COSINES = {
    Fraction(0): fmpq(1),
    Fraction(1, 3): fmpq(1, 2),
    Fraction(1, 2): fmpq(0),
    Fraction(2, 3): fmpq(-1, 2),
    Fraction(1): fmpq(-1),
    Fraction(4, 3): fmpq(-1, 2),
    Fraction(3, 2): fmpq(0),
    Fraction(5, 3): fmpq(1, 2),
}


def times_pi(q: fmpq) -> Any:
    """Return q·π, exactly; for q = 0 the rational number 0."""
    return PiMultiple(q) if q != 0 else fmpq(0)


def ball(x: Any) -> Any:
    """Return a multiple of π as a ball; any other number unchanged."""
    return arb.pi() * x.half if isinstance(x, PiMultiple) else x


class PiMultiple:
    """q·π for a rational q other than 0; exact under sums and rational multiples."""

    __slots__ = ("half",)

    def __init__(self, half: fmpq) -> None:
        self.half = half

    def __add__(self, other: Any) -> Any:
        if isinstance(other, PiMultiple):
            return times_pi(self.half + other.half)
        if isinstance(other, fmpq | int) and other == 0:
            return self
        return ball(self) + other

    __radd__ = __add__

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, fmpq | int):
            return times_pi(self.half * other)
        return ball(self) * ball(other)

    __rmul__ = __mul__

    def __sub__(self, other: Any) -> Any:
        return self + other * -1

    def __rsub__(self, other: Any) -> Any:
        return self * -1 + other

    def __neg__(self) -> Any:
        return self * -1

    def __abs__(self) -> Any:
        return PiMultiple(abs(self.half))

    def cos(self) -> Any:
        """The cosine, as a rational number if it is one."""
        return _cosine(self.half)

    def sin(self) -> Any:
        """The sine, cos(π/2 − qπ)."""
        return _cosine(fmpq(1, 2) - self.half)

    def __repr__(self) -> str:
        return f"{self.half}·π"


def _cosine(q: fmpq) -> Any:
    angle = Fraction(int(q.p), int(q.q)) % 2
    if angle in _COSINES:
        return _COSINES[angle]
    return arb.cos_pi_fmpq(fmpq(angle.numerator, angle.denominator))


# Certified numbers: exact rationals where possible, balls (Arb) elsewhere

UNDEFINED = arb("nan")


class Unclear(ArithmeticError):
    """Raised for a comparison that balls cannot decide, or of a number without a value."""


class NotANumber(TypeError):
    """Raised for a value that is not a certified number where one is needed."""


class MinusInfinity:
    """Minus infinity as a number; only sums and positive multiples of it have a value."""

    __slots__ = ()

    def __add__(self, other: Any) -> Any:
        return self if other is self or finite(number(other)) else UNDEFINED

    __radd__ = __add__

    def __mul__(self, other: Any) -> Any:
        other = ball(number(other))
        return self if finite(other) and bool(other > 0) else UNDEFINED

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return "-inf"


MINUS_INFINITY = MinusInfinity()


def number(x: Any) -> Any:
    """Return x as a certified number.

    Raises :class:`NotANumber` for floats, since a rounded number would invalidate certificates.
    """
    if isinstance(x, fmpq | arb | PiMultiple | MinusInfinity):
        return x
    if isinstance(x, int | np.integer) and not isinstance(x, bool):
        return fmpq(int(x))
    if isinstance(x, Fraction):
        return fmpq(x.numerator, x.denominator)
    raise NotANumber(
        f"expected an exact rational or a ball, got {type(x).__name__}: {x!r}; "
        "give inputs as int or Fraction"
    )


def finite(x: Any) -> bool:
    """Whether x certainly is a finite number."""
    return isinstance(x, fmpq | PiMultiple) or (isinstance(x, arb) and bool(x.is_finite()))


def fraction(x: Any) -> Fraction | None:
    """Return the value of x if it is an exact rational, else None."""
    return Fraction(int(x.p), int(x.q)) if isinstance(x, fmpq) else None


def _pair(x: Any, y: Any) -> tuple[Any, Any]:
    x, y = number(x), number(y)
    for value in (x, y):
        if value is not MINUS_INFINITY and not finite(value):
            raise Unclear(f"a comparison with {value!r}, which is undefined at this precision")
    return x, y


def less(x: Any, y: Any) -> bool:
    """Whether x < y; raises :class:`Unclear` if that is not certain."""
    x, y = _pair(x, y)
    if x is MINUS_INFINITY or y is MINUS_INFINITY:
        return y is not MINUS_INFINITY
    gap = ball(y - x)
    if gap > 0:
        return True
    if gap <= 0:
        return False
    raise Unclear(f"{x!r} < {y!r}")


def same(x: Any, y: Any) -> bool:
    """Whether x = y; raises :class:`Unclear` if that is not certain."""
    if isinstance(x, bool | np.bool_) and isinstance(y, bool | np.bool_):
        return bool(x == y)
    x, y = _pair(x, y)
    if x is MINUS_INFINITY or y is MINUS_INFINITY:
        return x is y
    gap = ball(x - y)
    if gap > 0 or gap < 0:
        return False
    if gap == 0:
        return True
    raise Unclear(f"{x!r} = {y!r}")


LARGEST_EXPONENT = 1 << 14  # of 2, of a ball that is written as a fraction


def certified_gap(x: Any, y: Any) -> Fraction:
    """Return a lower bound of |x - y|; 0 if the balls overlap or are undefined.

    It is 0 for a gap such as exp(−10⁹), which has a billion binary digits as a fraction.
    """
    if not (finite(x) and finite(y)):
        return Fraction(0)
    gap = ball(x - y)
    exact = fraction(gap)
    if exact is not None:
        return abs(exact)
    mantissa, exponent = gap.abs_lower().man_exp() if gap.is_finite() else (0, 0)
    if exponent < -LARGEST_EXPONENT:
        return Fraction(0)
    size = Fraction(2) ** min(int(exponent), LARGEST_EXPONENT)
    return max(Fraction(0), Fraction(int(mantissa)) * size)


def _reciprocal(x: Any) -> Any:
    if not finite(x) or x == 0 or (isinstance(x, arb) and x.contains(0)):
        return UNDEFINED
    return 1 / x


def power(x: Any, exponent: int) -> Any:
    """Return x to an integer exponent."""
    x = ball(number(x))
    if not finite(x):
        return UNDEFINED
    result = x ** abs(exponent)
    return _reciprocal(result) if exponent < 0 else result


def _exp(x: Any) -> Any:
    if x is MINUS_INFINITY:
        return fmpq(0)
    return fmpq(1) if isinstance(x, fmpq) and x == 0 else arb(ball(x)).exp()


def _log(x: Any) -> Any:
    x = ball(x)
    if not finite(x) or not x > 0:
        return UNDEFINED
    return fmpq(0) if isinstance(x, fmpq) and x == 1 else arb(x).log()


def _sqrt(x: Any) -> Any:
    x = ball(x)
    if not finite(x) or not x >= 0:
        return UNDEFINED
    exact = fraction(x)
    if exact is not None:
        top, bottom = isqrt(exact.numerator), isqrt(exact.denominator)
        if Fraction(top * top, bottom * bottom) == exact:
            return fmpq(top, bottom)
    return arb(x).sqrt()


def _through(name: str, at_zero: int) -> Callable[[Any], Any]:
    """Return a function of finite numbers whose value at 0 is exact."""

    def of(x: Any) -> Any:
        if not finite(x):
            return UNDEFINED
        if isinstance(x, PiMultiple) and hasattr(x, name):
            return getattr(x, name)()
        x = ball(x)
        return fmpq(at_zero) if isinstance(x, fmpq) and x == 0 else getattr(arb(x), name)()

    return of


def maximum(x: Any, y: Any) -> Any:
    """Return the larger number; minus infinity is below everything."""
    x, y = ball(number(x)), ball(number(y))
    if x is MINUS_INFINITY or y is MINUS_INFINITY:
        return x if y is MINUS_INFINITY else y
    if not (finite(x) and finite(y)):
        return UNDEFINED
    if isinstance(x, fmpq) and isinstance(y, fmpq):
        return max(x, y)
    return arb(x).max(arb(y))


def floor_divide(x: Any, y: Any) -> Any:
    """Return ⌊x/y⌋ of rational numbers; undefined for others."""
    x, y = number(x), number(y)
    if not (isinstance(x, fmpq) and isinstance(y, fmpq)) or y == 0:
        return UNDEFINED
    quotient = x / y
    return fmpq(quotient.p // quotient.q)


def remainder(x: Any, y: Any) -> Any:
    """Return x − y·⌊x/y⌋ of rational numbers; undefined for others."""
    whole = floor_divide(x, y)
    return number(x) - number(y) * whole if isinstance(whole, fmpq) else UNDEFINED


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "exp": _exp,
    "log": _log,
    "sqrt": _sqrt,
    "cos": _through("cos", 1),
    "sin": _through("sin", 0),
    "tanh": _through("tanh", 0),
    "abs": lambda x: abs(x) if finite(x) else UNDEFINED,
}


class ReadsOutside(Unclear):
    """Raised if a term reads outside of an axis at these sizes, so that it has no value."""


def _entrywise(function: Callable[..., Any], *args: Any) -> Any:
    """Apply a function to every entry; the result is an object array, or a number."""
    return np.frompyfunc(function, len(args), 1)(*args)


_BINARY = {"maximum": maximum, "floor_divide": floor_divide, "remainder": remainder}
_COMPARISONS = {"equal": same, "less": less, "less_equal": lambda x, y: not less(y, x)}
_CONNECTIVES = {"and": np.logical_and, "or": np.logical_or, "not": np.logical_not}


class Balls(Evaluator):
    """Evaluates terms in certified numbers, at the current working precision.

    ``values`` are exact: object arrays of Fraction, integers for indices and natural numbers,
    integer arrays for index maps, arrays of truth values, functions on arrays of certified
    numbers.

    >>> from attnproof.symbolic.array import as_array
    >>> Balls({}, {})((as_array(1) / 3).term)
    1/3
    """

    def __init__(self, sizes: Mapping[str, int], values: Mapping[str, Any]) -> None:
        super().__init__(np, sizes, {name: _certified(value) for name, value in values.items()})

    def constant(self, value: Any) -> Any:
        return number(value)

    def integer(self, term: Term) -> int:
        value = number(self(term))
        if not isinstance(value, fmpq) or value.q != 1:
            raise Unclear(f"{term!r} is a count, and its value is {value!r}")
        return int(value)

    def op_index(self, t: Term) -> Any:
        return number(super().op_index(t))

    def constant_range(self, n: int) -> Any:
        return _entrywise(number, np.arange(n))

    def op_pi(self, t: Term) -> Any:  # noqa: ARG002
        return times_pi(fmpq(1))

    def op_minus_infinity(self, t: Term) -> Any:  # noqa: ARG002
        return MINUS_INFINITY

    def inside(self, t: Term, axis: int, places: Any) -> None:
        """Refuse an index outside of an axis; NumPy would count from its end, or raise."""
        length = self.length(t.args[0].shape[axis])
        for at in np.ravel(places):
            if not 0 <= at < length:
                raise ReadsOutside(f"{t!r} reads position {at} of an axis of length {length}")

    def op_eye(self, t: Term) -> Any:
        return _entrywise(number, np.eye(self.length(t.args[0]), dtype=int))

    def elementwise(self, op: str, data: Any, *args: Any) -> Any:
        if op in _COMPARISONS:
            return np.asarray(_entrywise(_COMPARISONS[op], *args), dtype=bool)[()]
        if op in _CONNECTIVES:
            return _CONNECTIVES[op](*args)
        if op in _BINARY:
            return _entrywise(_BINARY[op], *args)
        if op == "power":
            return _entrywise(lambda x: power(x, data), *args)
        if op == "where":
            return np.where(*args)[()]
        if op in FUNCTIONS:
            return _entrywise(lambda x: FUNCTIONS[op](number(x)), *args)
        return super().elementwise(op, data, *args)

    def op_call(self, t: Term) -> Any:
        """Call a function of real numbers, which has no value at minus infinity."""
        for arg in t.args:
            if any(x is MINUS_INFINITY for x in np.asarray(self(arg), dtype=object).ravel()):
                raise Unclear(f"an argument of a function is minus infinity: {arg!r}")
        return super().op_call(t)

    def op_isin(self, t: Term) -> Any:
        x, values = (self(arg) for arg in t.args)
        return np.asarray(_entrywise(lambda i: any(same(i, j) for j in values), x), dtype=bool)[()]


def _certified(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype == object:
        return _entrywise(lambda x: number(x) if isinstance(x, Fraction | int) else x, value)
    if isinstance(value, np.ndarray) and not value.shape:
        return value[()]
    return number(value) if type(value) is int else value
