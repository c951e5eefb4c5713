"""Operations that move entries without computing: views, permutations, broadcasts, copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import torch

from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array, AxisMismatch, as_array
from attnproof.symbolic.scalars import ONE, integer, is_truth, mul, number_of, split_integer

from .reading import NARROW, Pair, Unread, assume, constant, moves, notes, numeric, opaque, sized


def each_part(x: Any, rule: Callable[[Array], Array]) -> Any:
    """Apply a rule to an array, or to both parts of complex numbers."""
    return Pair(rule(x.real), rule(x.imaginary)) if isinstance(x, Pair) else rule(constant(x))


def by_parts(*names: str) -> Callable[[Callable[..., Array]], Callable[..., Any]]:
    """Register a reading that moves entries, applied to both parts of complex numbers."""

    def wrap(rule: Callable[..., Array]) -> Callable[..., Any]:
        @wraps(rule)
        def reading(x: Any, *args: Any, **keywords: Any) -> Any:
            return each_part(x, lambda a: rule(a, *args, **keywords))

        return moves(*names)(reading)

    return wrap


@moves(
    "aten.clone.default",
    "aten.alias.default",
    "aten.detach.default",
    "aten.contiguous.default",
    "aten.lift_fresh_copy.default",
    "aten.lift_fresh.default",
    "aten.dropout.default",
    "aten.resolve_conj.default",
    "aten.detach_.default",  # detaches in place: no number changes
)
def same(x: Any, p: Any = 0.0, train: Any = False, **_: Any) -> Any:
    """The array itself; also dropout in evaluation."""
    if train is True and p:
        raise Unread(f"dropout with p = {p} in training")
    return x


@moves("aten.native_dropout.default")
def same_and_kept(x: Any, p: float, train: Any) -> list[Any]:
    """Dropout in evaluation; its mask of kept entries has no reading."""
    if train is not False and p:
        raise Unread(f"dropout with p = {p} in training")
    return [x, None]


@moves("aten._to_copy.default", "aten.to.dtype", "aten.to.device", "aten.to.dtype_layout")
def to(x: Any, dtype: Any = None, *_: Any, source: torch.dtype | None = None, **__: Any) -> Any:
    """The same numbers in another dtype; ``source`` is their former dtype."""
    if not isinstance(dtype, torch.dtype) or isinstance(x, Pair) or dtype == source:
        return x
    a = constant(x)
    if dtype == torch.bool:
        return a if is_truth(a.term) else ~(a == as_array(0))
    if not dtype.is_floating_point and source is not None and source.is_floating_point:
        return opaque(_truncation(dtype), numeric(a))
    if dtype in NARROW and source != torch.bool:
        raise Unread(f"integers of {dtype}, which wrap around")
    told = str(dtype).removeprefix("torch.")
    short = dtype.is_floating_point and dtype.itemsize < 4
    if short and source not in (torch.bool, dtype):
        assume(f"a conversion to {told} is read without its rounding")
    return numeric(a)


def _truncation(dtype: torch.dtype) -> str:
    """Return the name of truncation to an integer dtype, which changes numbers out of its range.

    Of two programs, one may truncate in another dtype, or without one.
    """
    told = str(dtype).removeprefix("torch.")
    if not notes().recognises:
        return f"trunc_{told}"
    assume(f"numbers that are converted to {told} fit in it", "if")
    return "trunc"


@by_parts("aten.view.default", "aten.reshape.default", "aten._unsafe_view.default")
def reshaped(a: Array, shape: Sequence[Any]) -> Array:
    """The same entries, in row-major order, with other axis lengths."""
    lengths = [sized(n) for n in shape]
    if any(isinstance(n, int) and n == -1 for n in lengths):
        lengths = _with_rest(a, lengths)
    try:
        return xp.reshape(a, tuple(lengths))
    except AxisMismatch as error:
        raise Unread(f"a view: {error}") from None


@by_parts("aten.unflatten.int")
def unflattened(a: Array, axis: int, sizes: Sequence[Any]) -> Any:
    """One axis split into several adjacent ones."""
    k = axis % a.ndim
    return reshaped(a, [*a.axes[:k], *sizes, *a.axes[k + 1 :]])


@by_parts("aten.flatten.using_ints")
def flatten(a: Array, start: int = 0, end: int = -1) -> Any:
    """Adjacent axes merged into one."""
    first, last = start % a.ndim, end % a.ndim
    total: Any = 1
    for n in a.axes[first : last + 1]:
        total = total * as_array(n)
    return reshaped(a, [*a.axes[:first], total, *a.axes[last + 1 :]])


def _with_rest(a: Array, lengths: list[Any]) -> list[Any]:
    """Fill in the length given as −1, which is what the other lengths leave."""
    left = [integer(as_array(n).term) for n in a.axes]
    told = [n for n in lengths if not (isinstance(n, int) and n == -1)]
    known = [integer(as_array(n).term) for n in told]
    for n in list(known):
        if n in left:
            left.remove(n)
            known.remove(n)
    total, rest = integer(mul(*left)), integer(mul(*known))
    quotient, over = split_integer(total, rest)
    if number_of(over) != 0:
        raise Unread(f"a view of {a.axes} as {lengths}")
    return [Array(quotient) if isinstance(n, int) and n == -1 else n for n in lengths]


def viewed(a: Array, order: Sequence[int | None]) -> Array:
    """Return the array with its axes in this order, and a new one for each None.

    Views of a table are noted, so that their first rows are read as those of the table.
    """
    kept = [k for k in order if k is not None]
    found = a if kept == [*range(a.ndim)] else xp.permute_dims(a, kept)
    for axis, k in enumerate(order):
        found = xp.expand_dims(found, axis=axis) if k is None else found
    told = notes()
    if a.term in told.stored or a.term in told.patterns or a.term in told.views:
        told.views[found.term] = a, tuple(order)
    return found


@by_parts("aten.permute.default")
def permute(a: Array, order: Sequence[int]) -> Array:
    """The axes in another order."""
    return viewed(a, [k % a.ndim for k in order])


@by_parts("aten.transpose.int", "aten.swapaxes.default", "aten.swapdims.default")
def transpose(a: Array, first: int, second: int) -> Array:
    """Two axes exchanged."""
    order = list(range(a.ndim))
    i, j = first % a.ndim, second % a.ndim
    order[i], order[j] = j, i
    return viewed(a, order)


@by_parts("aten.unsqueeze.default")
def unsqueeze(a: Array, axis: int) -> Array:
    """A new axis of length 1."""
    order: list[int | None] = [*range(a.ndim)]
    order.insert(axis % (a.ndim + 1), None)
    return viewed(a, order)


@by_parts("aten.squeeze.dim", "aten.squeeze.dims", "aten.squeeze.default")
def squeeze(a: Array, axes: Any = None) -> Array:
    """The array without these axes, or any axes, if they have length 1."""
    told = range(a.ndim) if axes is None else [axes] if isinstance(axes, int) else axes
    wanted = {k % a.ndim for k in told}
    key = tuple(0 if k in wanted and n is ONE else slice(None) for k, n in enumerate(a.axes))
    return a[key] if a.ndim else a


@by_parts("aten.expand.default", "aten.broadcast_to.default")
def expanded(a: Array, shape: Sequence[Any], **_: Any) -> Array:
    """The array repeated along new axes and axes of length 1; −1 keeps a length."""
    offset = len(shape) - a.ndim
    kept = [
        a.axes[k - offset] if isinstance(n, int) and n == -1 else n
        for k, n in enumerate(map(sized, shape))
    ]
    return xp.broadcast_to(a, tuple(kept))


def _transposed(a: Array) -> Any:
    """The transpose of a matrix; a vector is unchanged."""
    return transpose(a, 0, 1) if a.ndim == 2 else a


_VIEWS: dict[str, Callable[..., Any]] = {
    "view_as": lambda a, other: reshaped(a, other.axes),
    "reshape_as": lambda a, other: reshaped(a, other.axes),
    "expand_as": lambda a, other: expanded(a, other.axes),
    "mT": lambda a: transpose(a, -2, -1),
    "t": _transposed,
    "numpy_T": _transposed,
}
for _name, _rule in _VIEWS.items():
    by_parts(f"aten.{_name}.default")(_rule)
by_parts("aten.movedim.int")(xp.moveaxis)
