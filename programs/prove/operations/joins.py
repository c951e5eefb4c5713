"""Operations that put arrays together, repeat them, or write a part of one into another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array, as_array
from attnproof.symbolic.scalars import ZERO, integer, is_truth, number_of

from .places import END, sliced
from .reading import Pair, Unread, constant, numeric, reads, sized, whole
from .shapes import axis_of, each_part, reshaped

__all__ = ["concatenated", "repeated"]


@reads("aten.cat.default")
def concatenated(parts: Sequence[Any], axis: int = 0) -> Any:
    """One after the other along an axis; empty parts are left out."""
    if any(isinstance(part, Pair) for part in parts):
        return Pair(concatenated([p.real for p in parts], axis),
                    concatenated([p.imaginary for p in parts], axis))  # fmt: skip
    arrays = [constant(part) for part in parts]
    if not all(is_truth(a.term) for a in arrays):
        arrays = [numeric(a) for a in arrays]
    place = axis_of(axis, max(a.ndim for a in arrays))
    arrays = [a for a in arrays if a.axes[place : place + 1] != (ZERO,)] or arrays[:1]
    return arrays[0] if len(arrays) == 1 else xp.concat(arrays, axis=place)


@reads("aten.stack.default")
def stack(parts: Sequence[Any], axis: int = 0) -> Any:
    """Along a new axis."""
    if any(isinstance(part, Pair) for part in parts):
        return Pair(stack([p.real for p in parts], axis), stack([p.imaginary for p in parts], axis))
    arrays = [constant(part) for part in parts]
    if not all(is_truth(a.term) for a in arrays):
        arrays = [numeric(a) for a in arrays]
    return xp.stack(arrays, axis=axis % (arrays[0].ndim + 1))


@reads("aten.repeat.default")
def repeated(x: Any, counts: Sequence[Any]) -> Any:
    """Tiled: the whole array so many times along each axis."""
    return each_part(x, lambda a: _tiled(a, [sized(n) for n in counts]))


def _tiled(a: Array, counts: list[Any]) -> Array:
    a = a[(None,) * (len(counts) - a.ndim)] if len(counts) > a.ndim else a
    spread: list[Any] = []
    target: list[Any] = []
    for n, length in zip(counts, a.axes, strict=True):
        spread += [n, length]
        target.append(sized(Array(integer((as_array(n) * as_array(length)).term))))
    key = tuple(k for _ in a.axes for k in (None, slice(None)))
    wide = xp.broadcast_to(a[key] if a.ndim else a, tuple(spread))
    return as_array(reshaped(wide, target))


@reads("aten.repeat_interleave.self_int")
def each_repeated(x: Any, count: Any, axis: Any = None, **_: Any) -> Any:
    """Every entry of an axis so many times in a row."""
    if axis is None:
        raise Unread("repeat_interleave without an axis")
    times = whole(count, "a number of repetitions")
    return each_part(x, lambda a: _each_repeated(a, axis_of(axis, a.ndim), times))


def _each_repeated(a: Array, axis: int, times: int) -> Array:
    if times == 1:
        return a
    wide = a[(slice(None),) * (axis + 1) + (None,)]
    wide = xp.broadcast_to(wide, (*a.axes[: axis + 1], times, *a.axes[axis + 1 :]))
    length = sized(Array(integer((as_array(a.axes[axis]) * times).term)))
    return as_array(reshaped(wide, [*a.axes[:axis], length, *a.axes[axis + 1 :]]))


@reads("aten.constant_pad_nd.default", "aten.pad.default")
def padded(x: Any, pad: Sequence[Any], mode: Any = 0.0, value: Any = None) -> Array:
    """A constant before and after the entries of the last axes."""
    fill = mode if not isinstance(mode, str) else (0.0 if value is None else value)
    if isinstance(mode, str) and mode != "constant":
        raise Unread(f"padding with mode {mode!r}")
    a = numeric(x)
    for k in range(len(pad) // 2):
        axis = a.ndim - 1 - k
        before, after = (whole(n, "a padding") for n in pad[2 * k : 2 * k + 2])
        if min(before, after) < 0:
            raise Unread("padding by a negative number")
        blocks = [
            xp.broadcast_to(constant(fill), (*a.axes[:axis], n, *a.axes[axis + 1 :]))
            for n in (before, after)
        ]
        parts = [b for b, n in ((blocks[0], before), (a, 1), (blocks[1], after)) if n]
        a = as_array(concatenated(parts, axis))
    return a


@reads("aten.slice_scatter.default")
def written(
    x: Any, part: Any, axis: int = 0, start: Any = None, end: Any = None, step: Any = 1
) -> Any:
    """x with start, start + step, .. of an axis replaced by a part."""
    place = axis_of(axis, x.ndim)
    length, stride = x.axes[place], whole(step, "a step")
    if stride == 1:
        first = 0 if start is None else start
        whole_axis = end is None or (isinstance(end, int) and end >= END)
        pieces = [part] if first == 0 else [sliced(x, axis, 0, first), part]
        return concatenated(pieces if whole_axis else [*pieces, sliced(x, axis, end, None)], axis)
    known, offset = number_of(length), 0 if start is None else whole(start, "a start")
    if known is None or known % stride or not 0 <= offset < stride:
        raise Unread(f"a write to one place in {stride} of an axis of length {length!r}")
    lanes = [part if k == offset else sliced(x, axis, k, None, stride) for k in range(stride)]
    joined = stack(lanes, place + 1)
    return reshaped(joined, [*x.axes[:place], length, *x.axes[place + 1 :]])


@reads("aten.select_scatter.default")
def written_at(x: Any, part: Any, axis: int, at: Any) -> Any:
    """x with one place of an axis replaced by a part."""
    from .shapes import unsqueeze

    place = whole(at, "a place")
    length = whole(Array(x.axes[axis_of(axis, x.ndim)]), "an axis that is written to")
    place %= length
    pieces = [sliced(x, axis, 0, place)] if place else []
    pieces.append(unsqueeze(part, axis_of(axis, x.ndim)))
    if place + 1 < length:
        pieces.append(sliced(x, axis, place + 1, None))
    return concatenated(pieces, axis)


@reads("aten.copy.default")
def copied(x: Any, source: Any, *_: Any) -> Any:
    """The source, in the shape of x."""
    return each_part(source, lambda a: xp.broadcast_to(a, x.axes))
