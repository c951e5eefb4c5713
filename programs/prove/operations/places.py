"""Operations that pick entries by their place: slices, selections, parts, flips."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array, as_array
from attnproof.symbolic.scalars import entry, integer, number_of
from attnproof.symbolic.terms import Term

from .at_places import rows_of, table
from .reading import Unread, notes, reads, sized, whole
from .shapes import axis_of, each_part, viewed

__all__ = ["sliced"]

END = 1 << 62


@reads("aten.slice.Tensor")
def sliced(x: Any, axis: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> Any:
    """start, start + step, .. below end along an axis."""
    return each_part(x, lambda a: _sliced(a, axis_of(axis, a.ndim), start, end, step))


def _sliced(a: Array, axis: int, start: Any, end: Any, step: Any) -> Array:
    length = a.axes[axis]
    first = _inside(0 if start is None else start, length)
    last = None if end is None or (isinstance(end, int) and end >= END) else _inside(end, length)
    known = number_of(length)
    if known is not None:
        first = max(0, min(first, int(known))) if isinstance(first, int) else first
        last = max(0, min(last, int(known))) if isinstance(last, int) else last
    if known is not None and isinstance(last, Array) and step == 1:
        a = _first_rows(a, axis, last)
        if isinstance(first, int) and first == 0:
            return a
    key = (slice(None),) * axis + (slice(first, last, whole(step, "a step")),)
    return _read(a, key, "a slice")


def _read(a: Array, key: tuple[Any, ...], what: str) -> Array:
    """a[key].  That it stays inside at the lengths of a law is asked when its proof is closed."""
    try:
        return a[key]
    except IndexError as error:
        raise Unread(f"{what}: {error}") from None


def _first_rows(a: Array, axis: int, count: Array) -> Array:
    """The first rows of a stored table, as many as an input has: at most all of them."""
    told = notes()
    if a.term in told.patterns:
        found = told.patterns[a.term]((*a.axes[:axis], count, *a.axes[axis + 1 :]))
        told.patterns[found.term] = told.patterns[a.term]
    elif a.term in told.stored:
        found = rows_of(a, axis, xp.arange(count), inside=True)  # `longest` says how far
    elif (view := told.views.get(a.term)) is not None and (along := view[1][axis]) is not None:
        return viewed(_first_rows(view[0], along, count), view[1])
    elif a.term.op == "slice" and a.term.data[0] != axis:  # of the last rows the first columns
        (inner, start), (along, step) = a.term.args, a.term.data
        end = Array(start) + Array(a.term.shape[along]) * step
        return _sliced(_first_rows(Array(inner), axis, count), along, Array(start), end, step)
    else:
        raise Unread(f"a slice :{count!r} of an axis of length {a.axes[axis]!r}")
    longest = int(number_of(a.axes[axis]) or 0)
    told.longest[count.term] = min(told.longest.get(count.term, longest), longest)
    return found


def _inside(at: Any, length: Term) -> Any:
    """A bound of a slice counted from the front."""
    place = sized(at)
    if isinstance(place, int) and place < 0:
        return sized(Array(integer((as_array(length) + place).term)))
    return place


@reads("aten.select.int")
def select(x: Any, axis: int, at: Any) -> Any:
    """The part at one place of an axis."""
    return each_part(x, lambda a: _selected(a, axis_of(axis, a.ndim), at))


def _selected(a: Array, axis: int, at: Any) -> Array:
    return _read(a, (slice(None),) * axis + (_inside(at, a.axes[axis]),), "a selection")


@reads("aten.unbind.int")
def unbind(x: Any, axis: int = 0) -> list[Any]:
    """The parts along an axis, one by one."""
    length = whole(Array(x.axes[axis_of(axis, x.ndim)]), "a number of parts")
    return [select(x, axis, k) for k in range(length)]


@reads("aten.split.Tensor", "aten.split.default")
def split(x: Any, size: Any, axis: int = 0) -> list[Any]:
    """Parts of one length along an axis, the last perhaps shorter."""
    if isinstance(size, Sequence):
        return split_with_sizes(x, size, axis)
    length = whole(Array(x.axes[axis_of(axis, x.ndim)]), "a length that is split")
    step = whole(size, "the length of a part")
    return [sliced(x, axis, k, min(k + step, length)) for k in range(0, length, step)]


@reads("aten.split_with_sizes.default")
def split_with_sizes(x: Any, sizes: Sequence[Any], axis: int = 0) -> list[Any]:
    """Parts of these lengths along an axis."""
    parts, start = [], as_array(0)
    for size in sizes:
        end = start + as_array(sized(size))
        parts.append(sliced(x, axis, sized(Array(integer(start.term))),
                            sized(Array(integer(end.term)))))  # fmt: skip
        start = end
    return parts


@reads("aten.chunk.default")
def chunk(x: Any, count: int, axis: int = 0) -> list[Any]:
    """So many parts along an axis, of equal length but for the last."""
    length = whole(Array(x.axes[axis_of(axis, x.ndim)]), "a length that is cut")
    return split(x, -(-length // count), axis)


@reads("aten.flip.default")
def flip(x: Any, axes: Sequence[int]) -> Any:
    """Axes read backwards."""
    def turned(a: Array) -> Array:
        wanted = {axis_of(k, a.ndim) for k in axes}
        return table(a.axes, lambda *at: Array(entry(a.term, *(
            integer((as_array(a.axes[k]) - 1 - i).term) if k in wanted else as_array(i).term
            for k, i in enumerate(at)
        ))))  # fmt: skip

    return each_part(x, turned)


@reads("aten.roll.default")
def roll(x: Any, shifts: Sequence[int], axes: Sequence[int] = ()) -> Any:
    """Axes moved round by a number of places."""
    if not axes:
        raise Unread("roll of all entries")
    from .joins import concatenated

    for shift, axis in zip(shifts, axes, strict=True):
        cut = _minus(x, axis, shift) if shift > 0 else -shift
        x = concatenated([sliced(x, axis, cut, None), sliced(x, axis, 0, cut)], axis)
    return x


def _minus(x: Any, axis: int, shift: int) -> Any:
    return sized(Array(integer((as_array(x.axes[axis_of(axis, x.ndim)]) - shift).term)))
