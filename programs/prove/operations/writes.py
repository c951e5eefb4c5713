"""Operations that write one array into a part of another.

Along an axis of symbolic length, x[:, a:b] = part is, at index i, the part where a ≤ i < b and x
elsewhere.  That is right also where torch clips the bounds, as for x[:, -3:] = 0 of two tokens.
The part needs a value at every i, of which those outside are not used: a constant has one, and so
has y[:, a:b].  A part that has none, such as y[:, 1:] written into x[:, :-1], is put between the
rest of x.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array, as_array
from attnproof.symbolic.divisors import opened
from attnproof.symbolic.scalars import (
    ONE,
    ZERO,
    always_less,
    entry,
    index,
    integer,
    is_truth,
    num,
    number_of,
    split_integer,
    subtract,
)
from attnproof.symbolic.terms import Term, make

from .lookups import note_longest
from .pieces import END, concatenated, from_the_front, sliced, stack
from .reading import Pair, Unread, alike, along, constant, length_of, moves, notes, sized, whole
from .shapes import each_part, reshaped, unsqueeze

# Entry by entry, and without a condition on their arguments.
EXTENDED = ("add", "mul", "where", "maximum", "abs", "indicator", "not", "and", "or", "equal",
            "less", "less_equal", "cos", "sin", "tanh", "exp")  # fmt: skip


@dataclass(frozen=True)
class _Span:
    """The places from ``start`` to below ``end`` of an axis of symbolic length."""

    axis: int
    length: Term
    start: Any
    end: Any

    def holds(self, ndim: int) -> Array | None:
        """Return where an index lies in the span; None if it does everywhere."""
        place = along(xp.arange(Array(self.length)), self.axis, ndim)
        sides = []
        if not (isinstance(self.start, int) and self.start == 0):
            sides.append(place >= as_array(self.start))
        if self.end is not None:
            sides.append(place < as_array(self.end))
        return None if not sides else sides[0] if len(sides) == 1 else sides[0] & sides[1]

    def extended(self, t: Term) -> Term | None:
        """Return an array with this part along the whole axis; None if its form shows no such."""
        if t.op == "slice" and t.data == (self.axis, 1):
            x, start = t.args
            same = start is as_array(self.start).term and x.shape[self.axis] is self.length
            return x if same else None
        shape = (*t.shape[: self.axis], self.length, *t.shape[self.axis + 1 :])
        if t.op == "broadcast":
            (x,) = t.args
            axis = self.axis - (t.ndim - x.ndim)
            if axis < 0 or x.shape[axis] is ONE:
                return xp.broadcast_to(Array(x), shape).term
            found = _Span(axis, self.length, self.start, self.end).extended(x)
            return None if found is None else xp.broadcast_to(Array(found), shape).term
        if t.op in EXTENDED and all(arg.shape == t.shape for arg in t.args):
            parts = [self.extended(arg) for arg in t.args]
            known = tuple(part for part in parts if part is not None)
            return make(t.op, known, t.data, shape) if len(known) == len(parts) else None
        return None


@moves("aten.slice_scatter.default")
def written(
    x: Any, part: Any, axis: int = 0, start: Any = None, end: Any = None, step: Any = 1
) -> Any:
    """x with start, start + step, .. of an axis replaced by ``part``."""
    place = axis % x.ndim
    length, stride = x.axes[place], whole(step, "a step")
    if stride == 1:
        first = 0 if start is None else start
        whole_axis = end is None or (isinstance(end, int) and end >= END)
        chosen = _chosen(x, part, place, first, None if whole_axis else end)
        if chosen is not None:
            return chosen
        at_start = isinstance(first, int) and first == 0
        pieces = [part] if at_start else [sliced(x, axis, 0, first), part]
        if whole_axis:
            return concatenated(pieces, axis)
        _note_end(end, length)
        return concatenated([*pieces, sliced(x, axis, end, None)], axis)
    offset = 0 if start is None else whole(start, "a start")
    many, over = split_integer(length, num(stride))
    rows = part.axes[place]
    if number_of(over) == 0 and 0 <= offset < stride and integer(rows) is integer(many):
        lanes = [part if k == offset else sliced(x, axis, k, None, stride) for k in range(stride)]
        joined = stack(lanes, place + 1)
        return reshaped(joined, [*x.axes[:place], length, *x.axes[place + 1 :]])
    count = number_of(rows)
    if number_of(length) is None or count is None:
        raise Unread(f"a write to one place in {stride} of an axis of length {length!r}")
    return _at_steps(x, part, place, offset, int(count), stride)


def _at_steps(x: Any, part: Any, axis: int, start: int, count: int, step: int) -> Any:
    """x with ``count`` places of a literal axis, start, start + step, .., replaced by ``part``."""
    length = int(number_of(x.axes[axis]) or 0)
    first = start + length if start < 0 else start
    last = first + (count - 1) * step
    if count < 1 or not 0 <= first <= last < length:
        raise Unread(f"a write of {count} rows from {start} on, {step} apart, to {length}")
    pieces = [sliced(x, axis, 0, first)] if first else []
    if count > 1:
        between = [sliced(x, axis, first + k, last, step) for k in range(1, step)]
        joined = stack([sliced(part, axis, 0, count - 1), *between], axis + 1)
        pieces.append(reshaped(joined, [*x.axes[:axis], last - first, *x.axes[axis + 1 :]]))
    pieces.append(sliced(part, axis, count - 1, count))
    if last + 1 < length:
        pieces.append(sliced(x, axis, last + 1, None))
    return pieces[0] if len(pieces) == 1 else concatenated(pieces, axis)


def _chosen(x: Any, part: Any, axis: int, start: Any, end: Any) -> Array | None:
    """Return the part in a span of an axis of symbolic length, and x elsewhere, if it extends."""
    length = x.axes[axis]
    if number_of(length) is not None or isinstance(x, Pair) or isinstance(part, Pair):
        return None
    bounds = [sized(at) for at in (start, end) if at is not None]
    if not all(isinstance(at, int) or always_less(num(-1), at.term) for at in bounds):
        return None  # a length less a number: one that is negative counts from the end
    last = None if end is None else from_the_front(end, length)
    span = _Span(axis, length, from_the_front(start, length), last)
    found, where = span.extended(constant(part).term), span.holds(x.ndim)
    if found is None or where is None:
        return None
    return xp.where(where, *alike((Array(found), x)))


def _note_end(end: Any, length: Term) -> None:
    """Note where a write ends that is as long as an input: inside the axis, and what is behind."""
    last = sized(end)
    if isinstance(last, Array) and number_of(length) is not None:
        note_longest(last, length)
        notes().ends[last.term] = length


@moves("aten.index_put.default")
def written_at_places(x: Any, places: Sequence[Any], part: Any, accumulate: bool = False) -> Any:
    """x with one number where a mask holds, or with ``part`` at consecutive places of one axis."""
    given = [(axis, where) for axis, where in enumerate(places) if where is not None]
    if accumulate or len(given) != 1:
        raise Unread("a write that adds up, or one at places along several axes")
    ((axis, where),) = given
    mask = constant(where)
    number = not isinstance(x, Pair) and (not isinstance(part, Array | Pair) or part.ndim == 0)
    if is_truth(mask.term) and number and mask.axes == x.axes[axis : axis + mask.ndim]:
        behind = (None,) * (x.ndim - axis - mask.ndim)
        return xp.where(mask[(..., *behind)], *alike((part, x)))
    return _written_from(x, axis, mask, part)


@moves("aten.index_copy.default")
def copied_to_places(x: Any, axis: int, where: Any, part: Any) -> Any:
    """x with the entries at consecutive places of an axis replaced by ``part``."""
    return _written_from(x, axis % x.ndim, constant(where), part)


def _written_from(x: Any, axis: int, where: Array, part: Any) -> Any:
    """Return x with as many entries of an axis replaced as there are places."""
    first, length = _first_of(where), x.axes[axis]
    count = as_array(where.axes[0])
    end = length_of(count + first)
    room = number_of(length)
    if room is None or first < 0 or (isinstance(end, int) and end > room):
        raise Unread(f"a write at {first}..{end - 1!r} of an axis of length {length!r}")
    shape = (*x.axes[:axis], count, *x.axes[axis + 1 :])
    return written(x, each_part(part, lambda a: xp.broadcast_to(a, shape)), axis, first, end)


def _first_of(where: Array) -> int:
    """Return k for places k, k + 1, ..; of two writes at one place, torch keeps either."""
    if where.ndim != 1 or is_truth(where.term):
        raise Unread("a write at places that are not one row of indices")
    (length,) = where.axes
    at = ZERO if number_of(length) == 1 else index("place", length)
    first = number_of(integer(subtract(opened(entry(where.term, at)).right, at)))
    if first is None or first.denominator != 1:
        raise Unread("a write at places that are not known to follow one another from a number on")
    return int(first)


@moves("aten.select_scatter.default")
def written_at(x: Any, part: Any, axis: int, at: Any) -> Any:
    """x with one index of an axis replaced by ``part``."""
    place = axis % x.ndim
    if number_of(x.axes[place]) is None:
        return _written_at_any_length(x, part, place, whole(at, "a place"))
    length = whole(Array(x.axes[place]), "an axis that is written to")
    first = whole(at, "a place") % length
    pieces = [sliced(x, axis, 0, first)] if first else []
    pieces.append(unsqueeze(part, place))
    if first + 1 < length:
        pieces.append(sliced(x, axis, first + 1, None))
    return concatenated(pieces, axis)


def _written_at_any_length(x: Any, part: Any, axis: int, at: int) -> Any:
    """Return x with one index of an axis of symbolic length replaced; elsewhere the code raises."""
    if isinstance(x, Pair) or isinstance(part, Pair):
        raise Unread("complex numbers written to one place of an axis of symbolic length")
    place = as_array(from_the_front(at, x.axes[axis]))
    here = along(xp.arange(Array(x.axes[axis])), axis, x.ndim) == place
    return xp.where(here, *alike((unsqueeze(part, axis), x)))


@moves("aten.copy.default")
def copied(x: Any, source: Any, *_: Any) -> Any:
    """The source, broadcast to the shape of x."""
    return each_part(source, lambda a: xp.broadcast_to(a, x.axes))
