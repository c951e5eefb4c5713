"""Operations that move entries and compute nothing: views, permutations, broadcasts, copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array, AxisMismatch, as_array
from attnproof.symbolic.scalars import ONE, integer, is_truth, mul, number_of, split_integer

from .reading import (
    NARROW,
    Pair,
    Unread,
    assume,
    constant,
    notes,
    numeric,
    opaque,
    reads,
    sized,
)

__all__ = ["axis_of", "expanded", "reshaped", "viewed"]


def axis_of(axis: int, ndim: int) -> int:
    """An axis counted from the front."""
    return axis % ndim


def each_part(x: Any, rule: Any) -> Any:
    """The same rule for both parts of complex numbers."""
    return Pair(rule(x.real), rule(x.imaginary)) if isinstance(x, Pair) else rule(constant(x))


@reads(
    "aten.clone.default", "aten.alias.default", "aten.detach.default", "aten.contiguous.default",
    "aten.lift_fresh_copy.default", "aten.lift_fresh.default", "aten.dropout.default",
    "aten.resolve_conj.default", "aten.detach_.default",  # detached in place: no number is another
)  # fmt: skip
def same(x: Any, p: Any = 0.0, train: Any = False, **_: Any) -> Any:
    """The array itself; dropout in evaluation."""
    if train is True and p:
        raise Unread(f"dropout with p = {p} in training")
    return x


@reads("aten.native_dropout.default")
def same_and_kept(x: Any, p: float, train: Any) -> list[Any]:
    """Dropout in evaluation; which entries it keeps is not read."""
    if train is not False and p:
        raise Unread(f"dropout with p = {p} in training")
    return [x, None]


@reads("aten._to_copy.default", "aten.to.dtype", "aten.to.device", "aten.to.dtype_layout")
def to(x: Any, dtype: Any = None, *_: Any, source: torch.dtype | None = None, **__: Any) -> Any:
    """The same numbers in another dtype; ``source`` is the dtype they had."""
    if not isinstance(dtype, torch.dtype) or isinstance(x, Pair) or dtype == source:
        return x
    a = constant(x)
    if dtype == torch.bool:
        return a if is_truth(a.term) else ~(a == as_array(0))
    if not dtype.is_floating_point and source is not None and source.is_floating_point:
        return opaque(_cut(dtype), numeric(a))
    if dtype in NARROW and source != torch.bool:
        raise Unread(f"whole numbers as {dtype}, where they wrap round")
    told = str(dtype).removeprefix("torch.")
    short = dtype.is_floating_point and dtype.itemsize < 4
    if short and source not in (torch.bool, dtype):
        assume(f"a conversion to {told} is read without its rounding")
    return numeric(a)


def _cut(dtype: torch.dtype) -> str:
    """The function that cuts to whole numbers: what is too large for a dtype becomes another."""
    return "trunc" if dtype == torch.int64 else f"trunc_{str(dtype).removeprefix('torch.')}"


@reads("aten.view.default", "aten.reshape.default", "aten._unsafe_view.default")
def reshaped(x: Any, shape: Sequence[Any]) -> Any:
    """The same entries in row-major order under other axis lengths."""
    lengths = [sized(n) for n in shape]
    return each_part(x, lambda a: _reshaped(a, lengths))


@reads("aten.view_as.default", "aten.reshape_as.default")
def reshaped_as(x: Any, other: Any) -> Any:
    """The same entries in row-major order under the axis lengths of another array."""
    return each_part(x, lambda a: _reshaped(a, list(other.axes)))


@reads("aten.unflatten.int")
def unflattened(x: Any, axis: int, sizes: Sequence[Any]) -> Any:
    """One axis as several neighbouring ones."""
    lengths = [sized(n) for n in sizes]

    def rule(a: Array) -> Array:
        k = axis_of(axis, a.ndim)
        return _reshaped(a, [*a.axes[:k], *lengths, *a.axes[k + 1 :]])

    return each_part(x, rule)


def _reshaped(a: Array, lengths: list[Any]) -> Array:
    if any(isinstance(n, int) and n == -1 for n in lengths):
        lengths = _with_rest(a, lengths)
    try:
        return xp.reshape(a, tuple(lengths))
    except AxisMismatch as error:
        raise Unread(f"a view: {error}") from None


def _with_rest(a: Array, lengths: list[Any]) -> list[Any]:
    """The lengths with the one that is −1 filled in: what the others leave of the axes."""
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
    """The array with its axes in this order, and a new one for each None.

    What is a view of a table is noted, so that its first rows are those of the table.
    """
    kept = [k for k in order if k is not None]
    found = a if kept == [*range(a.ndim)] else xp.permute_dims(a, kept)
    for axis, k in enumerate(order):
        found = xp.expand_dims(found, axis=axis) if k is None else found
    told = notes()
    if a.term in told.stored or a.term in told.patterns or a.term in told.views:
        told.views[found.term] = a, tuple(order)
    return found


@reads("aten.permute.default")
def permute(x: Any, order: Sequence[int]) -> Any:
    """The axes in another order."""
    return each_part(x, lambda a: viewed(a, [axis_of(k, a.ndim) for k in order]))


@reads("aten.transpose.int", "aten.swapaxes.default", "aten.swapdims.default")
def transpose(x: Any, first: int, second: int) -> Any:
    """Two axes exchanged."""
    order = list(range(x.ndim))
    i, j = axis_of(first, x.ndim), axis_of(second, x.ndim)
    order[i], order[j] = j, i
    return permute(x, order)


@reads("aten.mT.default")
def last_exchanged(x: Any) -> Any:
    """The last two axes exchanged."""
    return transpose(x, -2, -1)


@reads("aten.t.default", "aten.numpy_T.default")
def transposed(x: Any) -> Any:
    """A matrix transposed; a vector stays."""
    return transpose(x, 0, 1) if x.ndim == 2 else x


@reads("aten.movedim.int")
def moved(x: Any, source: int, destination: int) -> Any:
    """One axis moved."""
    return each_part(x, lambda a: xp.moveaxis(a, source, destination))


@reads("aten.unsqueeze.default")
def unsqueeze(x: Any, axis: int) -> Any:
    """A new axis of length 1."""
    def rule(a: Array) -> Array:
        order: list[int | None] = [*range(a.ndim)]
        order.insert(axis % (a.ndim + 1), None)
        return viewed(a, order)

    return each_part(x, rule)


@reads("aten.squeeze.dim", "aten.squeeze.dims")
def squeeze(x: Any, axes: Any) -> Any:
    """Without these axes, where they have length 1."""
    wanted = [axes] if isinstance(axes, int) else list(axes)
    return each_part(x, lambda a: _squeezed(a, {axis_of(k, a.ndim) for k in wanted}))


@reads("aten.squeeze.default")
def squeeze_all(x: Any) -> Any:
    """Without any axis of length 1."""
    return each_part(x, lambda a: _squeezed(a, set(range(a.ndim))))


def _squeezed(a: Array, axes: set[int]) -> Array:
    key = tuple(0 if k in axes and n is ONE else slice(None) for k, n in enumerate(a.axes))
    return a[key] if a.ndim else a


@reads("aten.expand_as.default")
def expanded_as(x: Any, other: Any) -> Any:
    """Repeated along new axes and along axes of length 1, to the lengths of another array."""
    return each_part(x, lambda a: _expanded(a, list(other.axes)))


@reads("aten.expand.default", "aten.broadcast_to.default")
def expanded(x: Any, shape: Sequence[Any], **_: Any) -> Any:
    """Repeated along new axes and along axes of length 1; −1 keeps a length."""
    return each_part(x, lambda a: _expanded(a, [sized(n) for n in shape]))


def _expanded(a: Array, lengths: list[Any]) -> Array:
    offset = len(lengths) - a.ndim
    kept = [
        a.axes[k - offset] if isinstance(n, int) and n == -1 else n for k, n in enumerate(lengths)
    ]
    return xp.broadcast_to(a, tuple(kept))


@reads("aten.flatten.using_ints")
def flatten(x: Any, start: int = 0, end: int = -1) -> Any:
    """Neighbouring axes as one."""
    return each_part(x, lambda a: _flattened(a, axis_of(start, a.ndim), axis_of(end, a.ndim)))


def _flattened(a: Array, start: int, end: int) -> Array:
    total: Any = 1
    for n in a.axes[start : end + 1]:
        total = total * as_array(n)
    return _reshaped(a, [*a.axes[:start], sized(as_array(total)), *a.axes[end + 1 :]])
