"""The functions of symbolic arrays, with the names and signatures of the array API standard.

A definition gets this module from its argument (``array_api_compat.array_namespace``), so that the
same code runs on symbolic, NumPy and torch arrays.  An argument has the meaning of the standard or
is refused.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from . import array, scalars
from .array import (
    Array,
    AxisMismatch,
    WrongIndex,
    as_array,
    axis_at,
    broadcast_shapes,
    permuted,
    require_numbers,
    require_truth_values,
)
from .array import matmul as matmul  # noqa: PLC0414 (one of the standard's names)
from .axes import (
    axes_at,
    axis_length,
    axis_lengths,
    integer_number,
    regrouped,
    with_inferred_length,
)
from .dtypes import DTYPES, cast
from .refusals import REPLACEMENTS, record_user_request
from .scalars import (
    ONE,
    integer,
    is_truth,
    num,
    number_of,
    split_integer,
    unary,
)
from .terms import make

inf = float("inf")
newaxis = None
pi = Array(make("pi"))
e = Array(unary("exp", ONE))


def __getattr__(name: str) -> Any:
    if name in DTYPES:
        return DTYPES[name]
    if name.startswith("__"):
        raise AttributeError(name)
    record_user_request(f"the function {name!r} of symbolic arrays, which have none")
    told = (
        f"write {REPLACEMENTS[name]}" if name in REPLACEMENTS else f"they have {', '.join(NAMES)}"
    )
    raise AttributeError(f"symbolic arrays have no function {name!r}; {told}")


def _elementwise(op: str, says: str) -> Callable[[Any], Array]:
    def function(x: Any, /) -> Array:
        a = as_array(x)
        require_numbers(a)
        return Array(unary(op, a.term))

    function.__name__, function.__doc__ = op, says
    return function


exp = _elementwise("exp", "The exponential; exp(-inf) is 0.")
log = _elementwise("log", "The natural logarithm.")
cos = _elementwise("cos", "The cosine of an angle in radians.")
sin = _elementwise("sin", "The sine of an angle in radians.")
tanh = _elementwise("tanh", "The hyperbolic tangent.")
sqrt = _elementwise("sqrt", "The square root of a number >= 0.")
abs = _elementwise("abs", "The absolute value.")


def log1p(x: Any, /) -> Array:
    """log(1 + x)."""
    return log(1 + as_array(x))


def expm1(x: Any, /) -> Array:
    """exp(x) − 1."""
    return exp(x) - 1


def square(x: Any, /) -> Array:
    """x²."""
    return as_array(x) ** 2


def tan(x: Any, /) -> Array:
    """The tangent, sin/cos."""
    return sin(x) / cos(x)


def cosh(x: Any, /) -> Array:
    """The hyperbolic cosine."""
    return (exp(x) + exp(-as_array(x))) / 2


def sinh(x: Any, /) -> Array:
    """The hyperbolic sine."""
    return (exp(x) - exp(-as_array(x))) / 2


def _operator(rule: Callable[[Any, Any], Any], says: str) -> Callable[[Any, Any], Array]:
    def function(x1: Any, x2: Any, /) -> Array:
        return as_array(rule(as_array(x1), as_array(x2)))

    function.__doc__ = says
    return function


def _connective(rule: Callable[[Any, Any], Any], says: str) -> Callable[[Any, Any], Array]:
    def function(x1: Any, x2: Any, /) -> Array:
        require_truth_values(as_array(x1), as_array(x2))
        return as_array(rule(x1, x2))

    function.__doc__ = says
    return function


add = _operator(operator.add, "x + y.")
subtract = _operator(operator.sub, "x − y.")
multiply = _operator(operator.mul, "x·y.")
divide = _operator(operator.truediv, "x/y.")
floor_divide = _operator(operator.floordiv, "⌊x/y⌋.")
remainder = _operator(operator.mod, "x − y·⌊x/y⌋.")
pow = _operator(operator.pow, "x to the power y; exp(y·log x) for an x positive by its form.")
equal = _operator(operator.eq, "x = y.")
not_equal = _operator(operator.ne, "x ≠ y.")
less = _operator(operator.lt, "x < y.")
less_equal = _operator(operator.le, "x <= y.")
greater = _operator(operator.gt, "x > y.")
greater_equal = _operator(operator.ge, "x >= y.")
logical_and = _connective(operator.and_, "Whether both hold.")
logical_or = _connective(operator.or_, "Whether one holds.")
logical_xor = _connective(operator.xor, "Whether one of the two holds and the other does not.")


def logical_not(x: Any, /) -> Array:
    """Whether x does not hold."""
    return ~as_array(x)


def negative(x: Any, /) -> Array:
    """−x."""
    return -as_array(x)


def positive(x: Any, /) -> Array:
    """x."""
    return +as_array(x)


def _broadcast_op(op: str, *arrays: Array) -> Array:
    shape = broadcast_shapes(*(a.axes for a in arrays))
    return Array(make(op, tuple(array.broadcast_to(a, shape).term for a in arrays), shape=shape))


def maximum(x1: Any, x2: Any, /) -> Array:
    """The larger of two numbers, entry by entry."""
    x, y = as_array(x1), as_array(x2)
    require_numbers(x, y)
    return _broadcast_op("maximum", x, y)


def minimum(x1: Any, x2: Any, /) -> Array:
    """The smaller of two numbers, −max(−x, −y)."""
    return -maximum(-as_array(x1), -as_array(x2))


def clip(x: Any, /, min: Any = None, max: Any = None) -> Array:  # noqa: A002 (its own names)
    """x limited to [min, max]: the smaller of ``max`` and the larger of ``min`` and x."""
    above = +as_array(x) if min is None else maximum(x, min)
    return above if max is None else minimum(above, max)


def sign(x: Any, /) -> Array:
    """1 where x > 0, −1 where x < 0, and 0 at 0."""
    a = as_array(x)
    return astype(a > 0, DTYPES["int64"]) - astype(a < 0, DTYPES["int64"])


def floor(x: Any, /) -> Array:
    """The largest integer that is at most x."""
    return as_array(x) // 1


def ceil(x: Any, /) -> Array:
    """The smallest integer that is at least x."""
    return -(-as_array(x) // 1)


def where(condition: Any, x1: Any, x2: Any, /) -> Array:
    """x1 where the condition holds, x2 elsewhere; both are numbers or both truth values."""
    c, x, y = (as_array(v) for v in (condition, x1, x2))
    require_truth_values(c)
    if is_truth(x.term) != is_truth(y.term):
        raise TypeError(
            f"where wants two arrays of numbers or two of truth values; got {x!r} and {y!r}"
        )
    return _broadcast_op("where", c, x, y)


def _refuse_device(device: Any) -> None:
    if device is not None:
        raise TypeError(f"a symbolic array has no device (x.device is None); got {device!r}")


def _as_dtype(dtype: Any, a: Array) -> Array:
    return a if dtype is None else Array(cast(a.term, dtype))


def astype(x: Array, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Array:
    """Convert truth values to the numbers 1 and 0, or numbers to truth values (whether x ≠ 0).

    Raises ``TypeError`` for a conversion to integers of numbers that are not integers by their
    form.
    """
    del copy  # a term is never changed
    _refuse_device(device)
    return Array(cast(as_array(x).term, dtype))


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: Any = None) -> Array:
    """An array, a number, or a (nested) list of them, as an array."""
    del copy
    _refuse_device(device)
    if isinstance(obj, list | tuple):
        return _as_dtype(dtype, stack([asarray(one) for one in obj]))
    return _as_dtype(dtype, as_array(obj))


def matrix_transpose(x: Array, /) -> Array:
    """The array with its last two axes exchanged."""
    return as_array(x).mT


def expand_dims(x: Array, /, *, axis: int = 0) -> Array:
    """The array with a new axis of length 1."""
    return x[(slice(None),) * axis_at(axis, x.ndim + 1) + (None,)]


def squeeze(x: Array, /, axis: int | tuple[int, ...]) -> Array:
    """The array without some axes of length 1."""
    places = axes_at(axis if isinstance(axis, tuple | list) else (axis,), x.ndim)
    for place in places:
        if x.axes[place] is not ONE:
            raise AxisMismatch(f"axis {place} of {x!r} has length {x.axes[place]!r}, not 1")
    return x[tuple(0 if k in places else slice(None) for k in range(x.ndim))]


def permute_dims(x: Array, /, axes: Sequence[int]) -> Array:
    """The array with its axes in another order."""
    order = axes_at(tuple(axes), x.ndim)
    if len(order) != x.ndim:
        raise ValueError(f"permute_dims wants each of the {x.ndim} axes once; got {axes}")
    return Array(permuted(x.term, order))


def moveaxis(x: Array, source: Any, destination: Any, /) -> Array:
    """The array with some axes moved and the others kept in order."""
    there, here = axes_at(destination, x.ndim), axes_at(source, x.ndim)
    if len(there) != len(here) or source is None or destination is None:
        raise ValueError(f"moveaxis wants as many places as axes: {source!r} to {destination!r}")
    order = [axis for axis in range(x.ndim) if axis not in here]
    for place, axis in sorted(zip(there, here, strict=True)):
        order.insert(place, axis)
    return permute_dims(x, order)


def _reduced(x: Array, axis: int) -> Array:
    require_numbers(x)
    shape = (*x.axes[:axis], *x.axes[axis + 1 :])
    return Array(make("reduce", (x.term,), axis, shape))


def _reduce_axes(x: Any, axis: Any, keepdims: Any, rule: Callable[[Array, int], Array]) -> Array:
    """Apply a reduction over some axes, one after the other."""
    a = as_array(x)
    if keepdims not in (True, False) or isinstance(keepdims, Array):
        raise TypeError(f"keepdims wants True or False; got {keepdims!r}")
    places = sorted(axes_at(axis, a.ndim))
    require_numbers(a)
    found = a
    for gone, place in enumerate(places):
        found = rule(found, place - gone)
    if not keepdims:
        return found
    return found[tuple(None if k in places else slice(None) for k in range(a.ndim))]


def sum(
    x: Array,
    /,
    *,
    axis: int | tuple[int, ...] | None = None,
    dtype: Any = None,
    keepdims: bool = False,
) -> Array:
    """The sum over one axis, several, or all."""
    return _as_dtype(dtype, _reduce_axes(x, axis, keepdims, _reduced))


def mean(
    x: Array, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False
) -> Array:
    """The mean over axes; for the outcomes of a probability space, write their sum."""
    return _reduce_axes(x, axis, keepdims, _mean)


def _mean(x: Array, axis: int) -> Array:
    length = x.axes[axis]
    if length.op == "space":
        raise TypeError(
            f"the outcomes of {length!r} have no number to divide by: their expectation is "
            "xp.sum(x, axis=..)"
        )
    return _reduced(x, axis) / as_array(length)


def broadcast_to(x: Any, /, shape: Any) -> Array:
    """The array repeated along new axes, and along axes of length 1."""
    return array.broadcast_to(as_array(x), axis_lengths(shape))


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """An array filled with one number."""
    _refuse_device(device)
    return _as_dtype(dtype, broadcast_to(as_array(fill_value), shape))


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """Zeros."""
    return full(shape, 0, dtype=dtype, device=device)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """Ones."""
    return full(shape, 1, dtype=dtype, device=device)


def full_like(x: Array, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """An array of the shape of x filled with one number; of dtype bool if x is, by default."""
    kept = x.dtype if is_truth(x.term) and dtype is None else dtype
    return full(x.axes, fill_value, dtype=kept, device=device)


def zeros_like(x: Array, /, *, dtype: Any = None, device: Any = None) -> Array:
    """Zeros in the shape of x."""
    return full_like(x, 0, dtype=dtype, device=device)


def ones_like(x: Array, /, *, dtype: Any = None, device: Any = None) -> Array:
    """Ones in the shape of x."""
    return full_like(x, 1, dtype=dtype, device=device)


def eye(
    n_rows: Any, n_cols: Any = None, /, *, k: Any = 0, dtype: Any = None, device: Any = None
) -> Array:
    """Ones where the column is the row plus k, zeros elsewhere; for k = 0 the identity matrix."""
    _refuse_device(device)
    rows, columns = axis_length(n_rows), axis_length(n_rows if n_cols is None else n_cols)
    shift = integer_number(k, "k")
    if rows is columns and number_of(shift.term) == 0:
        return _as_dtype(dtype, Array(make("eye", (rows,), shape=(rows, rows))))
    here = arange(rows)[:, None] + shift == arange(columns)[None, :]
    return astype(here, DTYPES["float64"] if dtype is None else dtype)


def arange(
    start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None
) -> Array:
    """start, start + step, .. up to but excluding stop; 0, 1, .., n − 1 for a single number n."""
    _refuse_device(device)
    first, last = (0, start) if stop is None else (start, stop)
    stride = number_of(integer_number(step, "step").term)
    if not stride:
        raise ValueError(f"arange wants an integer step other than 0; got {step!r}")
    away = integer_number(last, "stop") - integer_number(first, "start")
    span = integer((away if stride > 0 else -away).term)
    width = builtins.abs(int(stride))
    count, rest = split_integer(integer(scalars.add(span, num(width - 1))), num(width))
    if number_of(rest) is None:
        raise WrongIndex(
            f"the count of numbers from {first!r} to {last!r} in steps of {step!r} is not known; "
            "write start + step * xp.arange(n)"
        )
    length = axis_length(Array(count))
    found = Array(make("arange", (length,), shape=(length,)))
    found = found if stride == 1 else found * int(stride)
    begin = as_array(first)
    return _as_dtype(dtype, found if number_of(begin.term) == 0 else found + begin)


def _triangle(x: Array, keep: Callable[[Array, Array], Array]) -> Array:
    if x.ndim < 2:
        raise AxisMismatch(f"a triangle needs two axes; {x!r} has {x.ndim}")
    rows, columns = x.shape[-2:]
    kept = keep(arange(rows)[:, None], arange(columns)[None, :])
    return where(kept, x, zeros_like(x))


def tril(x: Array, /, *, k: Any = 0) -> Array:
    """x where the column is at most the row plus k, 0 elsewhere."""
    return _triangle(x, lambda i, j: j <= i + integer_number(k, "k"))


def triu(x: Array, /, *, k: Any = 0) -> Array:
    """x where the column is at least the row plus k, 0 elsewhere."""
    return _triangle(x, lambda i, j: j >= i + integer_number(k, "k"))


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Array:
    """Whether each number is among the entries of a vector."""
    x, values = as_array(x1), as_array(x2)
    require_numbers(x, values)
    if values.ndim != 1:
        raise AxisMismatch(f"isin wants a vector of values; {values!r} has {values.ndim} axes")
    found = Array(make("isin", (x.term, values.term), shape=x.axes))
    return ~found if invert else found


def _arrays_of_one_kind(arrays: Any, name: str) -> list[Array]:
    if isinstance(arrays, Array) or not isinstance(arrays, Sequence):
        raise TypeError(f"{name} wants a tuple or a list of arrays; got {arrays!r}")
    found = [as_array(a) for a in arrays]
    if not found:
        raise ValueError(f"{name} wants at least one array")
    if len({is_truth(a.term) for a in found}) > 1:
        raise TypeError(f"{name} wants numbers only or truth values only; write xp.astype(.., ..)")
    return found


def concat(arrays: Sequence[Array], /, *, axis: int | None = 0) -> Array:
    """The arrays joined along an axis; for None, all their entries in one axis."""
    parts = _arrays_of_one_kind(arrays, "concat")
    if axis is None:
        parts, axis = [reshape(a, (a.size,)) for a in parts], 0
    first = parts[0]
    place = axis_at(axis, first.ndim)
    for other in parts[1:]:
        ours, theirs = (list(a.axes) for a in (first, other))
        del ours[place], theirs[place : place + 1]
        if ours != theirs or first.ndim != other.ndim:
            raise AxisMismatch(
                f"concat along axis {axis} needs equal other axes; shapes are {first.axes} "
                f"and {other.axes}"
            )
    if len(parts) == 1:
        return first
    total = integer(scalars.add(*(a.axes[place] for a in parts)))
    shape = (*first.axes[:place], total, *first.axes[place + 1 :])
    return Array(make("concat", tuple(a.term for a in parts), place, shape))


def stack(arrays: Sequence[Array], /, *, axis: int = 0) -> Array:
    """Arrays of equal shape joined along a new axis."""
    parts = _arrays_of_one_kind(arrays, "stack")
    shape = parts[0].axes
    for other in parts[1:]:
        if other.axes != shape:
            raise AxisMismatch(
                f"stack wants arrays of one shape; got {shape} and {other.axes}: write "
                "xp.broadcast_to(.., ..)"
            )
    place = axis_at(axis, len(shape) + 1)
    told = (*shape[:place], num(len(parts)), *shape[place:])
    return Array(make("stack", tuple(a.term for a in parts), place, told))


def reshape(x: Array, /, shape: Any, *, copy: Any = None) -> Array:
    """The same entries in row-major order, with groups of axes merged or split.

    One length may be -1.  Raises :class:`AxisMismatch` if the products cannot be matched.
    """
    del copy
    target = axis_lengths(with_inferred_length(x, shape))
    groups = regrouped(x.axes, target)
    if target == x.axes:
        return x
    return Array(make("reshape", (x.term,), groups, target))


NAMES = sorted(
    name
    for name, thing in globals().items()
    if name in ("e", "inf", "matmul", "newaxis", "pi")
    or (isinstance(thing, FunctionType) and thing.__module__ == __name__ and name[0] != "_")
)
"""The names of the standard that symbolic arrays provide."""
