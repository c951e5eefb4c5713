"""The functions of the array API for arrays of SymPy expressions.

Signatures are those of the standard; an unknown argument raises ``TypeError``.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
import sympy as sp
from sympy.logic.boolalg import Boolean

from .array import Expressions, Length, as_expressions, each, number_array

inf = float("inf")
pi = Expressions(sp.pi)
float32 = float64 = int32 = int64 = sp.Expr
length = Length  # the type of axis lengths in the code of a statement
bool = Boolean


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    own = {n for n, f in globals().items() if getattr(f, "__module__", "") == __name__}
    listed = ", ".join(sorted(n for n in own if n[0] != "_"))
    raise AttributeError(f"arrays of expressions have no function {name!r}; they have {listed}")


def _numbers(function: Any, *arrays: Any) -> Expressions:
    return each(function, *map(number_array, arrays))


@lru_cache(1 << 10)
def _exp(x: Any) -> Any:
    if isinstance(x, sp.Piecewise):
        return sp.Piecewise(*((_exp(value), condition) for value, condition in x.args))
    return sp.exp(x, evaluate=False) if _stays(x) else sp.exp(x)


def _stays(x: Any) -> Any:
    """Whether SymPy would leave exp(x) unevaluated, decided faster than SymPy does."""
    if x.is_Add or x.is_Mul:
        return all(arg.is_Rational or _stays(arg) for arg in x.args)
    if x.is_Pow and x.exp.is_Rational:
        return _stays(x.base) or (x.base.is_Rational and x.base.is_positive)
    return x.is_Symbol or isinstance(x, sp.cos | sp.sin)


def _entrywise(name: str, function: Any, says: str, *, binary: Any = False) -> Any:
    """Return a function of the array API that applies a SymPy function to each entry."""
    known = lru_cache(1 << 12, typed=True)(function)

    def one(x: Any, /) -> Expressions:
        return _numbers(known, x)

    def two(x: Any, y: Any, /) -> Expressions:
        return _numbers(known, x, y)

    found: Any = two if binary else one
    found.__name__, found.__doc__ = name, says
    return found


exp = _entrywise("exp", _exp, "The exponential; exp(-inf) is 0.")
log = _entrywise("log", sp.log, "The natural logarithm.")
cos = _entrywise("cos", sp.cos, "The cosine of an angle in radians.")
sin = _entrywise("sin", sp.sin, "The sine of an angle in radians.")
tanh = _entrywise("tanh", sp.tanh, "The hyperbolic tangent.")
sqrt = _entrywise("sqrt", sp.sqrt, "The square root of a number >= 0.")
abs = _entrywise("abs", sp.Abs, "The absolute value.")
maximum = _entrywise("maximum", sp.Max, "The larger of two numbers, entry by entry.", binary=True)
minimum = _entrywise("minimum", sp.Min, "The smaller of two numbers, entry by entry.", binary=True)
floor = _entrywise("floor", sp.floor, "The largest integer that is at most x.")
ceil = _entrywise("ceil", sp.ceiling, "The smallest integer that is at least x.")
log1p = _entrywise("log1p", lambda x: sp.log(1 + x), "log(1 + x).")
expm1 = _entrywise("expm1", lambda x: _exp(x) - 1, "exp(x) − 1.")
square = _entrywise("square", lambda x: x**2, "x².")
pow = _entrywise("pow", lambda x, y: x**y, "x to the power y.", binary=True)
tan = _entrywise("tan", lambda x: sp.sin(x) / sp.cos(x), "The tangent, sin/cos.")
cosh = _entrywise("cosh", lambda x: (_exp(x) + _exp(-x)) / 2, "The hyperbolic cosine.")
sinh = _entrywise("sinh", lambda x: (_exp(x) - _exp(-x)) / 2, "The hyperbolic sine.")
floor_divide = _entrywise("floor_divide", lambda x, y: sp.floor(x / y), "⌊x/y⌋.", binary=True)
remainder = _entrywise(
    "remainder", lambda x, y: x - y * sp.floor(x / y), "x − y·⌊x/y⌋.", binary=True
)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Expressions:  # noqa: A002 (its names)
    """x limited to [min, max]: the smaller of ``max`` and the larger of ``min`` and x."""
    above = as_expressions(x) if min is None else maximum(x, min)
    return above if max is None else minimum(above, max)


def sign(x: Any, /) -> Expressions:
    """1 where x > 0, −1 where x < 0, and 0 at 0."""
    a = as_expressions(x)
    result: Expressions = astype(a > 0, float64) - astype(a < 0, float64)
    return result


def where(condition: Any, x: Any, y: Any, /) -> Expressions:
    """x where the condition holds, y elsewhere."""
    truth = as_expressions(condition)
    if truth.entries.size and truth.dtype is not Boolean:
        raise TypeError(f"where wants a condition first, and was given numbers: {truth!r}")
    return each(_chosen, truth, x, y)


def _chosen(condition: Any, x: Any, y: Any) -> Any:
    if condition in (sp.true, sp.false):
        return x if condition == sp.true else y
    return sp.Piecewise((x, condition), (y, True))


def astype(x: Expressions, dtype: Any, /, *, copy: Any = True, device: Any = None) -> Expressions:  # noqa: ARG001
    """Truth values converted to the numbers 1 and 0; other arrays are returned unchanged.

    A conversion of numbers to truth values raises ``TypeError``.
    """
    if dtype is Boolean and x.dtype is not Boolean:
        raise TypeError("numbers are not truth values; write x != 0")
    if dtype is Boolean or x.dtype is not Boolean:
        return x
    return where(x, 1, 0)


def matmul(x: Any, y: Any, /) -> Expressions:
    """The matrix product; leading axes are broadcast."""
    product: Expressions = as_expressions(x) @ as_expressions(y)
    return product


def matrix_transpose(x: Expressions, /) -> Expressions:
    """The array with its last two axes exchanged."""
    return x.mT


def expand_dims(x: Expressions, /, *, axis: int = 0) -> Expressions:
    """The array with a new axis of length 1."""
    return Expressions(np.expand_dims(x.entries, axis))


def squeeze(x: Expressions, /, axis: Any) -> Expressions:
    """The array without an axis of length 1."""
    return Expressions(np.squeeze(x.entries, axis))


def permute_dims(x: Expressions, /, axes: Sequence[int]) -> Expressions:
    """The array with its axes in another order."""
    return Expressions(np.transpose(x.entries, axes))


def moveaxis(x: Expressions, source: Any, destination: Any, /) -> Expressions:
    """The array with some axes moved and the others kept in order."""
    return Expressions(np.moveaxis(x.entries, source, destination))


def _reduced(function: Any, x: Expressions, axis: Any, keepdims: Any) -> Expressions:
    return Expressions(function(number_array(x).entries, axis=axis, keepdims=keepdims))


def sum(
    x: Expressions, /, *, axis: Any = None, dtype: Any = None, keepdims: Any = False
) -> Expressions:
    """The sum over some axes, or over all."""
    del dtype
    return _reduced(partial(np.sum, initial=sp.S.Zero), x, axis, keepdims)  # of nothing too


def prod(
    x: Expressions, /, *, axis: Any = None, dtype: Any = None, keepdims: Any = False
) -> Expressions:
    """The product over some axes, or over all."""
    del dtype
    return _reduced(partial(np.prod, initial=sp.S.One), x, axis, keepdims)


def mean(x: Expressions, /, *, axis: Any = None, keepdims: Any = False) -> Expressions:
    """The mean over some axes, or over all."""
    total = sum(x, axis=axis, keepdims=keepdims)
    count = x.entries.size // builtins.max(total.entries.size, 1)
    average: Expressions = total / count
    return average


def max(x: Expressions, /, *, axis: Any = None, keepdims: Any = False) -> Expressions:
    """The largest number along some axes, or of all."""
    return _reduced(np.frompyfunc(sp.Max, 2, 1).reduce, x, axis, keepdims)


def min(x: Expressions, /, *, axis: Any = None, keepdims: Any = False) -> Expressions:
    """The smallest number along some axes, or of all."""
    return _reduced(np.frompyfunc(sp.Min, 2, 1).reduce, x, axis, keepdims)


def argsort(
    x: Expressions, /, *, axis: int = -1, descending: Any = False, stable: Any = True
) -> Expressions:
    """The indices that sort integers in ascending order."""
    del stable
    if descending or not all(isinstance(e, sp.Integer) for e in x.entries.flat):
        raise TypeError("argsort puts whole numbers in ascending order")
    return as_expressions(np.argsort(x.entries.astype(int), axis=axis, kind="stable"))


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: Any = None) -> Expressions:
    """Numbers, or a (nested) list of them, as an array."""
    del dtype, device, copy
    if isinstance(obj, list | tuple):
        return stack([asarray(part) for part in obj]) if obj else Expressions([])
    return as_expressions(obj)


def _shape(shape: Any) -> tuple[int, ...]:
    lengths = shape if isinstance(shape, tuple | list) else (shape,)
    return tuple(int(as_expressions(n)) for n in lengths)


def broadcast_to(x: Any, /, shape: Any) -> Expressions:
    """The array repeated along new axes, and along axes of length 1."""
    return Expressions(np.broadcast_to(as_expressions(x).entries, _shape(shape)))


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Expressions:
    """Zeros."""
    del dtype, device
    return broadcast_to(0, shape)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Expressions:
    """Ones."""
    del dtype, device
    return broadcast_to(1, shape)


def eye(
    n_rows: Any, n_cols: Any = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> Expressions:
    """The identity matrix."""
    del dtype, device
    columns = None if n_cols is None else int(n_cols)
    return as_expressions(np.eye(int(n_rows), columns, k, dtype=int))


def arange(
    start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None
) -> Expressions:
    """0, 1, ..., n - 1 for one argument, or the integers from ``start`` up to below ``stop``."""
    del dtype, device
    first, last = (0, start) if stop is None else (start, stop)
    ends = (int(as_expressions(v)) for v in (first, last, step))
    return as_expressions(np.arange(*ends))


def isin(x1: Expressions, x2: Expressions, /, *, invert: Any = False) -> Expressions:
    """Whether each number is one of the values."""
    found = each(lambda e: sp.Or(*(sp.Eq(e, v) for v in as_expressions(x2).entries.flat)), x1)
    absent: Expressions = ~found
    return absent if invert else found


def concat(arrays: Sequence[Any], /, *, axis: Any = 0) -> Expressions:
    """The arrays joined along an axis."""
    return Expressions(np.concatenate([as_expressions(a).entries for a in arrays], axis=axis))


def stack(arrays: Sequence[Any], /, *, axis: int = 0) -> Expressions:
    """Arrays of equal shape joined along a new axis."""
    return Expressions(np.stack([as_expressions(a).entries for a in arrays], axis=axis))


def reshape(x: Expressions, /, shape: Any, *, copy: Any = None) -> Expressions:
    """The same entries in row-major order; one length may be -1."""
    del copy
    return Expressions(np.reshape(x.entries, _shape(shape)))
