"""Operations that pick entries by position, or join arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array, as_array
from attnproof.symbolic.scalars import (
    ZERO,
    always_less,
    entry,
    integer,
    number_of,
)
from attnproof.symbolic.terms import Term

from .creation import rounded_up
from .lookups import first_entries, note_longest, rows_of, table
from .reading import (
    Pair,
    Unread,
    alike,
    constant,
    length_of,
    moves,
    notes,
    numeric,
    sized,
    whole,
)
from .shapes import by_parts, reshaped, viewed

END = 1 << 62


@by_parts("aten.slice.Tensor")
def sliced(a: Array, axis: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> Array:
    """The entries start, start + step, .. below end along an axis."""
    axis = axis % a.ndim
    length = a.axes[axis]
    first = from_the_front(0 if start is None else start, length)
    last = (
        None
        if end is None or (isinstance(end, int) and end >= END)
        else from_the_front(end, length)
    )
    known = number_of(length)
    if known is not None:
        first = max(0, min(first, int(known))) if isinstance(first, int) else first
        if isinstance(last, int):
            last = max(0, min(last, int(known)))
        elif last is not None and always_less(as_array(int(known) - 1).term, last.term):
            last = int(known)  # any number of tokens reaches beyond an axis of length 1
    if known is not None and isinstance(last, Array) and step == 1:
        a = _first_rows(a, axis, last)
        if isinstance(first, int) and first == 0:
            return a
    from_start = isinstance(first, int) and first == 0 and isinstance(step, int) and step == 1
    if a.term.op == "concat" and a.term.data == axis and from_start:
        part = Array(a.term.args[0])
        if last is not None and part.axes[axis] is as_array(last).term:  # what was written there
            return part
    key = (slice(None),) * axis + (slice(first, last, whole(step, "a step")),)
    return _read(a, key, "a slice")


def _read(a: Array, key: tuple[Any, ...], what: str) -> Array:
    """Return a[key].  Whether it stays inside at the lengths of a law is checked with its proof."""
    try:
        return a[key]
    except IndexError as error:
        raise Unread(f"{what}: {error}") from None


def _first_rows(a: Array, axis: int, count: Array) -> Array:
    """Return the first entries of an axis, as many as an input has tokens, at most all of them."""
    told, parts = notes(), [Array(part) for part in a.term.args]
    if a.term in told.stored:
        note_longest(count, a.axes[axis])
        return rows_of(a, axis, xp.arange(count), inside=True)
    if (view := told.views.get(a.term)) is not None and (along := view[1][axis]) is not None:
        return viewed(_first_rows(view[0], along, count), view[1])
    if a.term.op == "slice" and a.term.data[0] != axis:  # the first columns of the last rows
        (inner, start), (along, step) = a.term.args, a.term.data
        end = Array(start) + Array(a.term.shape[along]) * step
        rows = _first_rows(Array(inner), axis, count)
        return as_array(sliced(rows, along, Array(start), end, step))
    if a.term.op == "concat" and a.term.data != axis:
        return as_array(concatenated([_first_rows(x, axis, count) for x in parts], a.term.data))
    if a.term.op == "concat" and parts[0].axes[axis] is count.term:  # what was written there
        note_longest(count, a.axes[axis])
        return parts[0]
    return first_entries(a, axis, count)


def from_the_front(at: Any, length: Term) -> Any:
    """Return a bound of a slice, counted from the front."""
    place = sized(at)
    if isinstance(place, int) and place < 0:
        return length_of(as_array(length) + place)
    return place


@by_parts("aten.select.int")
def select(a: Array, axis: int, at: Any) -> Array:
    """The part at one index of an axis."""
    axis = axis % a.ndim
    return _read(a, (slice(None),) * axis + (from_the_front(at, a.axes[axis]),), "a selection")


@moves("aten.unbind.int")
def unbind(x: Any, axis: int = 0) -> list[Any]:
    """The parts along an axis, as a list."""
    length = whole(Array(x.axes[axis % x.ndim]), "a number of parts")
    return [select(x, axis, k) for k in range(length)]


@moves("aten.split.Tensor", "aten.split.default")
def split(x: Any, size: Any, axis: int = 0, *, parts: int = 0) -> list[Any]:
    """Parts of equal length along an axis, the last perhaps shorter; ``parts`` is their number.

    That is used for a symbolic length: a guard of the trace says that there are as many.
    """
    if isinstance(size, Sequence):
        return split_with_sizes(x, size, axis)
    length, step = sized(Array(x.axes[axis % x.ndim])), sized(size)
    if isinstance(length, int) and isinstance(step, int):
        return [sliced(x, axis, k, min(k + step, length)) for k in range(0, length, step)]
    if not notes().recognises or not parts:
        raise Unread(f"parts of length {step!r} of an axis of length {length!r}")
    last = length_of(as_array(length) - as_array(step) * (parts - 1))
    return split_with_sizes(x, [step] * (parts - 1) + [last], axis)


@moves("aten.split_with_sizes.default")
def split_with_sizes(x: Any, sizes: Sequence[Any], axis: int = 0) -> list[Any]:
    """Parts of these lengths along an axis."""
    parts, start = [], as_array(0)
    for size in sizes:
        end = start + as_array(sized(size))
        parts.append(sliced(x, axis, length_of(start), length_of(end)))
        start = end
    return parts


@moves("aten.chunk.default")
def chunk(x: Any, count: int, axis: int = 0, *, parts: int = 0) -> list[Any]:
    """A number of parts along an axis, of equal length except perhaps the last."""
    length = sized(Array(x.axes[axis % x.ndim]))
    step = rounded_up(length, count)
    return split(x, step, axis, parts=parts)


@moves("aten.unfold.default")
def unfolded(x: Any, axis: int, size: int, step: int) -> Any:
    """All parts of one size along an axis, each a step after the one before, as a last axis."""
    axis, length = axis % x.ndim, sized(Array(x.axes[axis % x.ndim]))
    width, stride = whole(size, "the size of a part"), whole(step, "a step")
    if not isinstance(length, int) and stride != 1:
        raise Unread(f"parts at steps of {stride} in an axis of length {length!r}")
    room = length_of(as_array(length) - width)  # a guard of the graph says that it is not negative
    end = room if isinstance(room, Array) else room // stride * stride
    each = [sliced(x, axis, k, length_of(as_array(end) + k + 1), stride) for k in range(width)]
    return stack(each, -1)


@by_parts("aten.flip.default")
def flip(a: Array, axes: Sequence[int]) -> Array:
    """The array with axes reversed."""
    wanted = {k % a.ndim for k in axes}
    return table(
        a.axes,
        lambda *at: Array(
            entry(
                a.term,
                *(
                    integer((as_array(a.axes[k]) - 1 - i).term) if k in wanted else as_array(i).term
                    for k, i in enumerate(at)
                ),
            )
        ),
    )


@moves("aten.roll.default")
def roll(x: Any, shifts: Sequence[int], axes: Sequence[int] = ()) -> Any:
    """The array with axes rotated by a number of places."""
    if not axes:
        raise Unread("roll of all entries")
    for shift, axis in zip(shifts, axes, strict=True):
        length, back = as_array(x.axes[axis % x.ndim]), length_of(-as_array(sized(shift)))
        forward = always_less(ZERO, as_array(shift).term)
        cut = length_of(length + back) if forward else back
        x = concatenated([sliced(x, axis, cut, None), sliced(x, axis, 0, cut)], axis)
    return x


@moves("aten.cat.default", "aten.concat.default", "aten.concatenate.default")
def concatenated(parts: Sequence[Any], axis: int = 0) -> Any:
    """Arrays concatenated along an axis; empty ones are left out."""
    if any(isinstance(part, Pair) for part in parts):
        return Pair(
            concatenated([p.real for p in parts], axis),
            concatenated([p.imaginary for p in parts], axis),
        )
    arrays = alike(parts)
    place = axis % max(a.ndim for a in arrays)
    # torch also leaves out torch.tensor([]), whatever axes the others have
    arrays = [a for a in arrays if a.axes[place : place + 1] != (ZERO,) and a.axes != (ZERO,)] or [
        max(arrays, key=lambda a: a.ndim)
    ]
    return arrays[0] if len(arrays) == 1 else xp.concat(arrays, axis=place)


@moves("aten.stack.default")
def stack(parts: Sequence[Any], axis: int = 0) -> Any:
    """Arrays stacked along a new axis."""
    if any(isinstance(part, Pair) for part in parts):
        return Pair(stack([p.real for p in parts], axis), stack([p.imaginary for p in parts], axis))
    arrays = alike(parts)
    return xp.stack(arrays, axis=axis % (arrays[0].ndim + 1))


@by_parts("aten.repeat.default")
def repeated(a: Array, shape: Sequence[Any]) -> Any:
    """The whole array tiled along each axis."""
    counts = [sized(n) for n in shape]
    a = a[(None,) * (len(counts) - a.ndim)] if len(counts) > a.ndim else a
    spread: list[Any] = []
    target: list[Any] = []
    for n, length in zip(counts, a.axes, strict=True):
        spread += [n, length]
        target.append(length_of(as_array(n) * as_array(length)))
    key = tuple(k for _ in a.axes for k in (None, slice(None)))
    wide = xp.broadcast_to(a[key] if a.ndim else a, tuple(spread))
    return reshaped(wide, target)


@by_parts("aten.repeat_interleave.self_int")
def each_repeated(a: Array, count: Any, axis: Any = None, **_: Any) -> Any:
    """Every entry of an axis repeated consecutively."""
    if axis is None:
        raise Unread("repeat_interleave without an axis")
    times, axis = whole(count, "a number of repetitions"), axis % a.ndim
    if times == 1:
        return a
    wide = a[(slice(None),) * (axis + 1) + (None,)]
    wide = xp.broadcast_to(wide, (*a.axes[: axis + 1], times, *a.axes[axis + 1 :]))
    length = length_of(as_array(a.axes[axis]) * times)
    return reshaped(wide, [*a.axes[:axis], length, *a.axes[axis + 1 :]])


@moves("aten.constant_pad_nd.default", "aten.pad.default")
def padded(x: Any, pad: Sequence[Any], mode: Any = 0.0, value: Any = None) -> Array:
    """A constant before and after the entries of the last axes; negative padding crops."""
    fill = mode if not isinstance(mode, str) else (0.0 if value is None else value)
    if isinstance(mode, str) and mode != "constant":
        raise Unread(f"padding with mode {mode!r}")
    a = numeric(x)
    for k in range(len(pad) // 2):
        axis = a.ndim - 1 - k
        before, after = (whole(n, "a padding") for n in pad[2 * k : 2 * k + 2])
        if min(before, after) < 0:
            a = as_array(sliced(a, axis, max(-before, 0), after if after < 0 else None))
            before, after = max(before, 0), max(after, 0)
        blocks = [
            xp.broadcast_to(constant(fill), (*a.axes[:axis], n, *a.axes[axis + 1 :]))
            for n in (before, after)
        ]
        parts = [b for b, n in ((blocks[0], before), (a, 1), (blocks[1], after)) if n]
        a = as_array(concatenated(parts, axis))
    return a
