"""Symbolic arrays, with which statements are written as with any array library.

``Array`` implements the part of the Python array API standard that terms can express, and nothing
else: ``+ - * / // % ** @``, comparisons, ``& | ^ ~``, ``.mT``, and indexing with slices, ``None``,
integers and index arrays.  The functions of its namespace are in ``namespace.py``, the refusals in
``refusals.py``.  Axis lengths are terms; two axes that should agree and do not are named in the
error.
"""

from __future__ import annotations

import numbers as python_numbers
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from math import isnan
from types import ModuleType
from typing import Any, NoReturn, Self

from .dtypes import DType, dtype_of
from .refusals import ArrayApiOnly, hint, record_request, record_user_request
from .scalars import (
    MINUS_INFINITY,
    ONE,
    ZERO,
    add,
    always_less,
    boolean,
    integer,
    is_count,
    is_truth,
    mul,
    num,
    number_of,
    power,
    split_integer,
    unary,
)
from .signs import sign
from .terms import Term, make


class AxisMismatch(TypeError):
    """Raised for two axes that must have the same length; the message names both."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        record_request("an operation on symbolic arrays of different lengths")


class WrongIndex(IndexError):
    """Raised for an index or a slice that symbolic arrays do not accept."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        record_request("an index that symbolic arrays do not support")


Operator = Callable[["Array", Any], "Array"]


def _both(combine: Callable[[Any, Any], Array]) -> tuple[Operator, Operator]:
    """Return an operator of two arrays, and its reflected version."""
    return combine, lambda self, other: combine(other, self)


class Array(ArrayApiOnly):
    """An array-valued term with the operators of the array API.

    >>> from attnproof.symbolic.givens import real, sizes
    >>> n, d = sizes("n d")
    >>> X = real(n, d).named("X")
    >>> (X @ X.mT).shape
    (n, n)
    """

    __slots__ = ("term",)
    term: Term

    device = None

    def __init__(self, term: Term) -> None:
        object.__setattr__(self, "term", term)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(
            f"a symbolic array cannot be changed (tried to set {name!r}); make another with xp"
        )

    def __reduce__(self) -> tuple[type[Self], tuple[Term]]:
        return type(self), (self.term,)

    def __repr__(self) -> str:
        record_user_request("the text of a symbolic array (str, repr, format, print)")
        return repr(self.term)

    def __hash__(self) -> NoReturn:
        record_request("the hash of a symbolic array, which dicts and sets use")
        raise TypeError(
            f"a symbolic array such as {self!r} cannot be a key of a dict or an element of a set: "
            "no number there would equal it.  Write xp.where(n == 3, a, b) for {3: a}.get(n, b), "
            "and x == a for x in {a}; remove functools.cache from functions that take it"
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        record_user_request(f"{name!r}, which symbolic arrays do not have")
        raise AttributeError(f"a symbolic array has no method {name!r}; {hint(name)}")

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        from . import namespace

        return namespace

    @property
    def axes(self) -> tuple[Term, ...]:
        """The axis lengths, as integer terms."""
        return self.term.shape

    @property
    def shape(self) -> tuple[Array, ...]:
        """The axis lengths, as symbolic numbers to compute with."""
        return tuple(Array(length) for length in self.term.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.term.ndim

    @property
    def size(self) -> Array:
        """The number of entries."""
        return Array(integer(mul(ONE, *self.term.shape)))

    @property
    def dtype(self) -> DType:
        """The dtype by the form of the term: float64 (real numbers), int64 (integers) or bool."""
        return dtype_of(self.term)

    @property
    def mT(self) -> Array:
        """The array with its last two axes exchanged."""
        if self.ndim < 2:
            raise AxisMismatch(f".mT needs two axes; {self!r} has {self.ndim}")
        order = (*range(self.ndim - 2), self.ndim - 1, self.ndim - 2)
        return Array(permuted(self.term, order))

    @property
    def T(self) -> Array:
        """The transpose of a matrix."""
        if self.ndim != 2:
            raise AxisMismatch(
                f".T is for two axes; {self!r} has {self.ndim}: write .mT for the last two "
                "exchanged, or xp.permute_dims(x, axes)"
            )
        return self.mT

    def reshape(self, *shape: Any) -> Array:
        """Return the same entries, in row-major order, in another shape."""
        from .namespace import reshape

        together = len(shape) == 1 and isinstance(shape[0], tuple | list)
        return reshape(self, shape[0] if together else shape)

    def __abs__(self) -> Array:
        require_numbers(self)
        return Array(unary("abs", self.term))

    def __pos__(self) -> Array:
        require_numbers(self)
        return self

    def __neg__(self) -> Array:
        if self.term is MINUS_INFINITY:
            raise TypeError(
                "+inf is not supported; to exclude an entry from a maximum, use -xp.inf"
            )
        return self * -1

    def __add__(self, other: Any) -> Array:
        return _pairwise(add, self, other)

    __radd__ = __add__
    __sub__, __rsub__ = _both(lambda x, y: as_array(x) + -as_array(y))
    __mul__, __rmul__ = _both(lambda x, y: _pairwise(mul, x, y))
    __truediv__, __rtruediv__ = _both(lambda x, y: as_array(x) * as_array(y) ** -1)
    __floordiv__, __rfloordiv__ = _both(lambda x, y: _divided("floor_divide", x, y))
    __mod__, __rmod__ = _both(lambda x, y: _divided("remainder", x, y))
    __matmul__, __rmatmul__ = _both(lambda x, y: matmul(as_array(x), as_array(y)))
    __lt__, __gt__ = _both(lambda x, y: _pairwise(partial(boolean, "less"), x, y))
    __le__, __ge__ = _both(lambda x, y: _pairwise(partial(boolean, "less_equal"), x, y))

    def __and__(self, other: Any) -> Array:
        return _connected("and", self, other)

    def __or__(self, other: Any) -> Array:
        return _connected("or", self, other)

    __rand__, __ror__ = __and__, __or__

    def __pow__(self, exponent: Any) -> Array:
        require_numbers(self)
        to = as_array(exponent)
        times = number_of(to.term)
        if times is None or not _by_roots(self.term, times):
            return _exponential(self, to)
        if times.denominator != 1:
            root: Array = Array(unary("sqrt", self.term)) ** (times * 2)
            return root
        if not times:
            return broadcast_to(as_array(1), self.axes)
        value = number_of(self.term)
        if value is not None and (value or times > 0):
            return Array(num(value ** int(times)))
        return Array(power(self.term, int(times)))

    def __rpow__(self, base: Any) -> Array:
        return as_array(base) ** self

    def __eq__(self, other: object) -> Array:  # type: ignore[override]
        x, y = self, as_array(other)
        if is_truth(x.term) != is_truth(y.term):
            raise TypeError(
                f"{x!r} == {y!r} compares truth values with numbers; write xp.astype(.., ..)"
            )
        return _together(partial(boolean, "equal"), x, y)

    def __ne__(self, other: object) -> Array:  # type: ignore[override]
        return ~(self == other)

    def __xor__(self, other: Any) -> Array:
        both = as_array(other)
        return (self & ~both) | (both & ~self)

    __rxor__ = __xor__

    def __invert__(self) -> Array:
        require_truth_values(self)
        return Array(boolean("not", self.term))

    def __getitem__(self, key: Any) -> Array:
        from .indexing import indexed

        return indexed(self.term, key)


HALF = Fraction(1, 2)


def _by_roots(base: Term, times: Fraction) -> bool:
    """Whether a power is written with square roots and not as an exponential.

    It is for integers and ±1/2; for other multiples of 1/4 if the base is a length, or is not
    positive by its form (a positive base gives an exponential).
    """
    if times.denominator == 1 or times in (HALF, -HALF):
        return True
    is_length = is_count(base) and number_of(base) is None
    return times.denominator in (2, 4) and (is_length or sign(base)[0] != 2)


def _exponential(base: Array, exponent: Array) -> Array:
    """Return base^exponent as exp(exponent·log base)."""
    if sign(base.term)[0] != 2:
        raise TypeError(
            "an exponent that is not a multiple of 1/4 needs a base that is positive by "
            f"its form, such as 2 or exp(x); the base is {base!r}, the exponent {exponent!r}"
        )
    return Array(unary("exp", (exponent * Array(unary("log", base.term))).term))


def as_array(value: Any) -> Array:
    """Return an array, a term or a number as an array; a float stands for its exact value.

    Raises ``TypeError`` for anything else: a Python bool, NaN, +inf, a list.
    """
    if isinstance(value, Array):
        return value
    if isinstance(value, Term):
        return Array(value)
    if why := getattr(type(value), "NO_ARRAY", ""):
        raise TypeError(why)
    if isinstance(value, bool):
        raise TypeError(f"{value} is not a number; write {int(value)}, or a comparison of arrays")
    if isinstance(value, python_numbers.Integral):
        return Array(num(int(value)))
    if isinstance(value, Fraction):
        return Array(num(value))
    if not isinstance(value, python_numbers.Real) or float(value) != value:
        if isinstance(value, python_numbers.Real) and isnan(value):
            raise TypeError("NaN is not a number: state the line where it has a value")
        raise TypeError(
            f"expected an array or a number, got {type(value).__name__}: {value!r}"
            + ("; write xp.stack(..), or rows(n, lambda i: ..)" if _is_many(value) else "")
        )
    if float(value) == float("inf"):
        raise TypeError("+inf is not supported; to exclude an entry from a maximum, use -xp.inf")
    if float(value) == float("-inf"):
        return Array(MINUS_INFINITY)
    return Array(num(Fraction(float(value))))


def _is_many(value: object) -> bool:
    return isinstance(value, list | tuple | range) or type(value).__module__ in ("numpy", "torch")


def axis_at(axis: Any, ndim: int) -> int:
    """Return an axis counted from the front; raise if it is not an integer or does not exist.

    >>> axis_at(-1, 3)
    2
    """
    if isinstance(axis, bool | Array) or not isinstance(axis, python_numbers.Integral):
        raise TypeError(f"an axis is an integer, not {type(axis).__name__}: {axis!r}")
    place = int(axis)
    if not -ndim <= place < ndim:
        raise WrongIndex(
            f"there is no axis {axis} of {ndim}; axes are numbered from {-ndim} to {ndim - 1}"
        )
    return place % ndim


def permuted(term: Term, order: tuple[int, ...]) -> Term:
    """Return the term with its axes in another order."""
    shape = tuple(term.shape[axis] for axis in order)
    if term.op == "permute":
        inner: Any = term.data
        order = tuple(inner[axis] for axis in order)
        term = term.args[0]
        if order == tuple(range(len(order))):
            return term
    return make("permute", (term,), order, shape)


def broadcast_shapes(*shapes: tuple[Term, ...]) -> tuple[Term, ...]:
    """Return the common shape under broadcasting; raise :class:`AxisMismatch` if there is none."""
    result: list[Term] = []
    for back in range(1, max(map(len, shapes), default=0) + 1):
        lengths = [shape[-back] for shape in shapes if len(shape) >= back]
        wanted = next((n for n in lengths if n is not ONE), ONE)
        for n in lengths:
            if n is not wanted and n is not ONE:
                listed = " and ".join(str(shape) for shape in shapes)
                raise AxisMismatch(
                    f"axis -{back} has length {wanted!r} in one array and {n!r} in another "
                    f"(shapes {listed}); axes that meet must be the same size or 1"
                )
        result.insert(0, wanted)
    return tuple(result)


def broadcast_to(x: Array, shape: tuple[Term, ...]) -> Array:
    """Return x repeated along new axes or axes of length 1."""
    if x.axes == shape:
        return x
    if broadcast_shapes(x.axes, shape) != shape:
        raise AxisMismatch(f"an array of shape {x.axes} cannot be broadcast to {shape}")
    return Array(make("broadcast", (x.term,), shape=shape))


def require_numbers(*arrays: Array) -> None:
    """Refuse arrays of truth values where numbers are needed."""
    for a in arrays:
        if is_truth(a.term):
            raise TypeError(f"{a!r} holds truth values; write xp.astype(.., ..) to count with them")


def require_truth_values(*arrays: Array) -> None:
    """Refuse arrays of numbers where truth values are needed."""
    for a in arrays:
        if not is_truth(a.term):
            raise TypeError(f"{a!r} holds numbers, not truth values; compare it, such as x > 0")


Build = Callable[[Term, Term], Term]


def _together(build: Build, x: Array, y: Array) -> Array:
    shape = broadcast_shapes(x.axes, y.axes)
    return Array(build(broadcast_to(x, shape).term, broadcast_to(y, shape).term))


def _pairwise(build: Build, a: Any, b: Any) -> Array:
    x, y = as_array(a), as_array(b)
    require_numbers(x, y)
    return _together(build, x, y)


def _connected(op: str, a: Any, b: Any) -> Array:
    x, y = as_array(a), as_array(b)
    require_truth_values(x, y)
    return _together(partial(boolean, op), x, y)


def _divided(op: str, a: Any, b: Any) -> Array:
    """Return ⌊a/b⌋ or the remainder; for lengths, such as 2·B by 2, computed if possible."""
    x, y = as_array(a), as_array(b)
    if is_count(x.term) and is_count(y.term) and always_less(ZERO, y.term):
        quotient, rest = split_integer(x.term, y.term)
        left = number_of(rest)
        if left is not None and left >= 0 and always_less(rest, y.term):
            return Array(quotient if op == "floor_divide" else rest)
    return _pairwise(partial(boolean, op), x, y)


def matmul(x: Array, y: Array) -> Array:
    """Return the matrix product; leading axes are broadcast, and a vector has none."""
    require_numbers(x, y)
    if not (x.ndim and y.ndim):
        raise AxisMismatch(f"@ needs arrays with axes; shapes {x.axes} and {y.axes}")
    inner, other = x.axes[-1], y.axes[-2 if y.ndim > 1 else 0]
    if inner is not other:
        raise AxisMismatch(
            f"@ sums the last axis of {x!r}, of length {inner!r}, with an axis of {y!r} "
            f"of length {other!r}; they must be the same size (a transpose missing?)"
        )
    if x.ndim > 2 or y.ndim > 2:
        if x.ndim == 1:
            return matmul(x[None, :], y)[..., 0, :]
        if y.ndim == 1:
            return matmul(x, y[:, None])[..., 0]
        batch = broadcast_shapes(x.axes[:-2], y.axes[:-2])
        x, y = (broadcast_to(a, (*batch, *a.axes[-2:])) for a in (x, y))
    shape = (*x.axes[:-1], *y.axes[y.ndim - 1 :]) if y.ndim > 1 else x.axes[:-1]
    return Array(make("matmul", (x.term, y.term), shape=shape))
