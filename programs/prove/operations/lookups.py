"""Entries at indices that are arrays: lookups in stored tables, and in arrays that are computed.

``table[ids]`` of a table that the code computes, cos(arange(n) ω), is cos(ids ω): every operation
that acts row by row along the axis takes the rows of its operands, down to the range itself.  This
holds for indices within the axis, 0 to n - 1, which is a condition of the proof.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array, as_array, broadcast_shapes
from attnproof.symbolic.claim import rows
from attnproof.symbolic.givens import Given, index_map
from attnproof.symbolic.meaning import ELEMENTWISE
from attnproof.symbolic.scalars import ONE, integer, is_truth, number_of
from attnproof.symbolic.terms import Term, free, instantiate, make, postorder

from ....numeric.torch_reading import TorchReading
from ..angles import Angles
from .reading import Unread, along, as_power, assume, constant, moves, notes, standing
from .shapes import each_part

NAMED = ("var", "index", "size", "space", "call", "inverse")


def entries_of(array: Array) -> Tensor | None:
    """Return all entries of an array that has no free names, if they are integers, else None.

    They are exact below 2⁵³.
    """
    # A length is an argument or part of a shape; neither may contain a name.
    parts = {part for t in postorder(array.term) for part in (t, *t.shape)} | {*array.axes}
    if is_truth(array.term) or any(part.op in NAMED for part in parts):
        return None
    reading = TorchReading({}, {}, torch.float64, torch.device("cpu"))
    shape = tuple(int(number_of(n) or 0) for n in array.axes)
    found = torch.as_tensor(reading(array.term), dtype=torch.float64).expand(shape)
    whole = found.long()
    return whole if bool((whole == found).all()) else None


Stored = Callable[[Array, int, Array], Array | None]


def taken(a: Array, axis: int, where: Array, stored: Stored) -> Array:
    """Return the rows of an array at these places: the axes of the places, then the other axes.

    ``stored`` returns the rows of a stored table that is not a formula, and None for other arrays.
    Raises ``Unread`` if an operation does not act row by row.
    """
    return _Taken(where, stored)(a.term, axis)


class _Taken:
    """Take rows of a term: ``where`` are the places, ``count`` the number of their axes."""

    def __init__(self, where: Array, stored: Stored) -> None:
        self.where, self.stored, self.count = where, stored, where.ndim

    def __call__(self, t: Term, axis: int) -> Array:
        known = self.stored(Array(t), axis, self.where)
        if known is not None:
            return known
        if t.op in ELEMENTWISE and all(arg.shape == t.shape for arg in t.args):
            parts = tuple(self(arg, axis).term for arg in t.args)
            return Array(make(t.op, parts, t.data, (*self.where.axes, *_without(t, axis))))
        rule = getattr(self, "_" + t.op.replace(" ", "_"), None)
        if rule is None:
            raise Unread(f"{t.op} along an axis that is read at places which are inputs")
        found: Array = rule(t, axis)
        return found

    def _behind(self, axis: int, taken: int) -> int:
        """Return the position of an axis among those of the rows."""
        return self.count + axis - (axis > taken)

    def _key(self, axis: int, at: Any) -> tuple[Any, ...]:
        return (*(slice(None),) * axis, at)

    def _arange(self, _: Term, __: int) -> Array:
        return self.where

    def _named(self, t: Term, axis: int) -> Array:
        return self(t.args[0], axis)

    def _broadcast(self, t: Term, axis: int) -> Array:
        (x,) = t.args
        outer = t.ndim - x.ndim
        inner = axis - outer
        shape = (*self.where.axes, *_without(t, axis))
        if inner < 0:
            return xp.broadcast_to(Array(x), shape)
        if x.shape[inner] is ONE and t.shape[axis] is not ONE:
            return xp.broadcast_to(Array(x)[self._key(inner, 0)], shape)
        found = self(x, inner)
        for _ in range(outer):
            found = xp.expand_dims(found, axis=self.count)
        return xp.broadcast_to(found, shape)

    def _new_axis(self, t: Term, axis: int) -> Array:
        (x,), new = t.args, t.data
        if new == axis:
            return xp.broadcast_to(Array(x), (*self.where.axes, *x.shape))
        return xp.expand_dims(self(x, axis - (new < axis)), axis=self._behind(new, axis))

    def _permute(self, t: Term, axis: int) -> Array:
        order: Any = t.data
        moved = [self._behind(k, order[axis]) for j, k in enumerate(order) if j != axis]
        return xp.permute_dims(self(t.args[0], order[axis]), [*range(self.count), *moved])

    def _concat(self, t: Term, axis: int) -> Array:
        if t.data == axis:
            raise Unread("parts one behind the other, read at places which are inputs")
        parts = tuple(self(part, axis) for part in t.args)
        return xp.concat(parts, axis=self._behind(t.data, axis))

    def _stack(self, t: Term, axis: int) -> Array:
        if t.data == axis:
            raise Unread("arrays side by side, read at places which are inputs")
        parts = [self(part, axis - (t.data < axis)) for part in t.args]
        return xp.stack(parts, axis=self._behind(t.data, axis))

    def _pick(self, t: Term, axis: int) -> Array:
        (x, at), picked = t.args, t.data
        inner = axis + (picked <= axis)
        return self(x, inner)[self._key(self._behind(picked, inner), Array(at))]

    def _slice(self, t: Term, axis: int) -> Array:
        (x, start), (cut, step) = t.args, t.data
        if cut == axis:
            return _Taken(self.where * step + Array(start), self.stored)(x, axis)
        end = Array(start) + Array(t.shape[cut]) * step
        part = slice(Array(start), end, step)
        return self(x, axis)[self._key(self._behind(cut, axis), part)]

    def _reshape(self, t: Term, axis: int) -> Array:
        before = next(before for before, after in t.data if axis in after)
        after = next(after for _, after in t.data if axis in after)
        (x,) = t.args
        wide = [k for k in before if x.shape[k] is not ONE] or [*before[:1]]
        if len(wide) != 1 or any(t.shape[k] is not ONE for k in after if k != axis):
            raise Unread("an axis made of several, or cut in several, read at inputs")
        found = self(x, wide[0])
        return xp.reshape(found, (*self.where.axes, *_without(t, axis)))

    def _reduce(self, t: Term, axis: int) -> Array:
        (x,), summed = t.args, t.data
        inner = axis + (summed <= axis)
        return xp.sum(self(x, inner), axis=self._behind(summed, inner))

    def _matmul(self, t: Term, axis: int) -> Array:
        x, y = t.args
        if x.ndim != 2 or y.ndim != 2:
            raise Unread("products of several matrices, read at places which are inputs")
        if axis == 0:
            return self(x, 0) @ Array(y)
        return self(y, 1) @ xp.permute_dims(Array(x), (1, 0))

    def _tabulate(self, t: Term, axis: int) -> Array:
        length, body = t.args
        if axis == 0:
            return self._each(lambda place: Array(instantiate(body, place.term)))
        inner = rows(Array(length), lambda i: self(instantiate(body, i.term), axis - 1))
        order = [*range(1, self.count + 1), 0, *range(self.count + 1, inner.ndim)]
        return xp.permute_dims(inner, order)

    def _each(self, row: Callable[[Array], Array], at: tuple[Any, ...] = ()) -> Array:
        if len(at) == self.count:
            return row(as_array(self.where[at] if at else self.where))
        length = Array(self.where.axes[len(at)])
        found: Array = rows(length, lambda i: self._each(row, (*at, i)))
        return found

    def _call(self, t: Term, axis: int) -> Array:
        name, batch, traits = t.data
        if axis >= batch:
            raise Unread("a function of whole rows, read at places which are inputs")
        parts = tuple(self(arg, axis).term for arg in t.args)
        data = (name, batch + self.count - 1, traits)
        return Array(make("call", parts, data, (*self.where.axes, *_without(t, axis))))


class _Leading(_Taken):
    """Take the first rows of a term, which may be a whole part of several parts."""

    def _in_place(self, t: Term, axis: int) -> Array:
        return _placed(self(t, axis), axis, 1)

    def _concat(self, t: Term, axis: int) -> Array:
        *parts, _ = t.args
        if t.data != axis:
            return super()._concat(t, axis)
        found = xp.concat(tuple(map(Array, parts)), axis=axis) if parts[1:] else Array(parts[0])
        if found.axes[axis] is not self.where.axes[0]:
            raise Unread("parts one behind the other, of which the first ones end elsewhere")
        return xp.moveaxis(found, axis, 0)

    def _matmul(self, t: Term, axis: int) -> Array:
        x, y = t.args
        outer = max(y.ndim - 2, 0)
        if axis < outer:
            raise Unread("products of several matrices, of which the first are read")
        column = y.ndim > 1 and axis == t.ndim - 1
        found = (
            Array(x) @ self._in_place(y, y.ndim - 1)
            if column
            else self._in_place(x, axis) @ Array(y)
        )
        return xp.moveaxis(found, axis, 0)


def leading(a: Array, axis: int, count: Array) -> Array:
    """Return the first entries of an axis, the operands of every operation cut in the same way.

    Raises ``Unread`` if an operation does not act row by row.
    """
    return _placed(_Leading(xp.arange(count), _if_stored)(a.term, axis), axis, 1)


def _without(t: Term, axis: int) -> tuple[Term, ...]:
    return (*t.shape[:axis], *t.shape[axis + 1 :])


def table(shape: Sequence[Any], body: Any) -> Array:
    """Return the array whose entry at indices i, j, .. is ``body(i, j, ..)``."""
    if not shape:
        return as_array(body())
    found: Array = rows(as_array(shape[0]), lambda i: table(shape[1:], lambda *r: body(i, *r)))
    return found


@moves("aten.index.Tensor", "aten.index_select.default")
def index(x: Any, places: Any, selected: Any = None) -> Any:
    """The entries at places given by an array, along one or more adjacent axes."""
    if selected is not None:  # index_select(x, axis, places)
        places = [None] * (places % x.ndim) + [selected]
    found = [(k, p) for k, p in enumerate(places) if p is not None]
    axis, count = found[0][0], len(found)
    if [k for k, _ in found] != list(range(axis, axis + count)):
        raise Unread("an index of several arrays along axes that are not side by side")
    wheres = [constant(where) for _, where in found]
    if count == 1:
        return each_part(x, lambda a: _gathered(a, axis, wheres[0]))
    return each_part(x, lambda a: _gathered_at(a, axis, wheres))


@moves("aten.gather.default")
def gather(x: Any, axis: int, where: Any, *_: Any) -> Any:
    """The entries whose index along one axis is given; along the others it is their own."""
    axis, where = axis % x.ndim, constant(where)
    wheres = [
        where if k == axis else along(xp.arange(Array(length)), k, where.ndim)
        for k, length in enumerate(where.axes)
    ]
    return each_part(x, lambda a: _gathered_at(a, 0, wheres))


@moves("aten.embedding.default")
def embedding(weight: Array, places: Array, *_: Any) -> Array:
    """The rows of a table at these places."""
    return _gathered(constant(weight), 0, constant(places))


def rows_of(a: Array, axis: int, where: Array, *, inside: bool = False) -> Array:
    """Return the rows of a stored table at these places, as an uninterpreted function of the place.

    ``inside``: all places are known to be below the length of the table.
    """
    name, value = notes().stored[a.term]
    # One name for each axis: a column of a square table is not a row of it.
    told = f"{notes().prefix}{name}_row" if axis == 0 else f"{notes().prefix}{name}_along_{axis}"
    length = a.axes[axis]
    angles = notes().angles.get(a.term)
    if angles is not None and angles.axis == axis:
        if not inside:  # a row counted from the end belongs to another position
            last = angles.shape[axis] - 1
            assume(f"indices stay in 0, .., {last}, those of a stored table", "if")
        return _placed(_angles(angles, where), axis, where.ndim)
    if not inside:
        assume(f"indices stay below {length!r}, the length of a stored table", "if")
    rest = (*a.axes[:axis], *a.axes[axis + 1 :])
    given = Given("function", core=(0,), out=rest, says=f"the rows of {name}, any numbers")
    notes().rows[told] = (value, axis)
    return _placed(standing(told, given)(where), axis, where.ndim)


def _angles(angles: Angles, where: Array) -> Array:
    """Return the cosines and sines that a stored table has for these positions."""
    told = "stored cosines and sines keep their values, and are read as exact ones"
    factor = None if angles.factor == 1 else constant(angles.factor)
    base, count = angles.base if notes().recognises else None, len(angles.frequencies)
    if base is not None:
        error = 3 * angles.error  # of the fit, and twice that by which the frequencies may be off
        assume(f"{told}, of frequencies {base}^(−i/{count}) (they are within {error:.1g})")
        return angles.at(where, factor, powers(base, count))
    assume(f"{told} (they are within {angles.error:.1g})")
    notes().givens[angles.name] = angles.given
    notes().constants[angles.name] = torch.tensor(angles.frequencies, dtype=torch.float64)
    return angles.at(where, factor)


def powers(base: int, count: int) -> Array:
    """Return N^(−j/L) for j = 0, .., L − 1."""
    root, times = as_power(as_array(base))
    return as_array(root ** (-times * xp.arange(as_array(count)) / count))


def _listed(a: Array, axis: int, where: Array) -> Array | None:
    """Return entries of a computed array at places from a stored list, read as any such list."""
    name, value = notes().stored.get(where.term, ("", None))
    length = number_of(a.axes[axis])
    if value is None or where.ndim != 1 or length is None:
        return None
    if value.is_floating_point() or value.dtype == torch.bool:
        return None
    if a.term in notes().stored or not _all_below(value, int(length)):
        return None
    told = f"{notes().prefix}{name}_below_{length}"
    places = notes().givens[told] = index_map(Array(where.axes[0]), Array(a.axes[axis]))
    notes().constants[told] = value
    found: Array = a[(*[slice(None)] * axis, places.named(told))]
    return found


def _gathered(a: Array, axis: int, where: Array) -> Array:
    where = _from_the_front(where, a.axes[axis])
    if a.term not in notes().stored and _is_input(where):
        told = Array(integer((Array(a.axes[axis]) - 1).term))
        assume(f"indices stay in 0, .., {told!r}, those of a table that is computed", "if")
        return _placed(taken(a, axis, where, _if_stored), axis, where.ndim)
    listed = _listed(a, axis, where)
    if listed is not None:
        return listed
    inside = _inside_all(a, axis, [where])
    # One of two programs may read a weight as a whole, and the other its rows in another order.
    whole = notes().recognises and inside and a.term not in notes().angles
    if a.term in notes().stored and not whole:
        return rows_of(a, axis, where, inside=inside)
    if where.term.op == "arange" and where.axes[0] is a.axes[axis]:
        return a
    if where.term.op == "arange" and number_of(a.axes[axis]) is not None:
        return first_entries(a, axis, Array(where.axes[0]))
    return _entries(a, axis, [where])


def first_entries(a: Array, axis: int, count: Array) -> Array:
    """Return the first entries of an axis of known length, as many as an input has tokens.

    Past its end the last one is repeated: no proof covers so many tokens.
    """
    told = notes()
    note_longest(count, a.axes[axis])
    if a.term in told.patterns:
        found = told.patterns[a.term]((*a.axes[:axis], count, *a.axes[axis + 1 :]))
        told.patterns[found.term] = told.patterns[a.term]
        return found
    return _entries(a, axis, [xp.minimum(xp.arange(count), as_array(a.axes[axis]) - 1)])


def note_longest(count: Array, length: Term) -> None:
    """Note that proofs cover at most as many tokens as an axis is long."""
    longest, known = notes().longest, int(number_of(length) or 0)
    longest[count.term] = min(longest.get(count.term, known), known)


def _if_stored(a: Array, axis: int, where: Array) -> Array | None:
    """Return the rows of a stored table, else None; the caller has bounded the places."""
    if a.term not in notes().stored:
        return None
    found = rows_of(a, axis, where, inside=True)
    first = [*range(axis, axis + where.ndim)]
    return xp.permute_dims(found, [*first, *(k for k in range(found.ndim) if k not in first)])


def _is_input(where: Array) -> bool:
    """Whether places are integer inputs, or computed from these and ranges alone."""
    known = set(notes().stored)
    of = {v for v in free(where.term) if v.op == "var" and v.data[1] in ("real", "position")}
    if is_truth(where.term) or any(t.op == "call" for t in postorder(where.term)):
        return False
    return bool(of) and not of & known


def _gathered_at(a: Array, axis: int, wheres: Sequence[Array]) -> Array:
    """Return the entries at places on several adjacent axes, broadcast against each other."""
    shape = broadcast_shapes(*(where.axes for where in wheres))
    wide = [
        _from_the_front(xp.broadcast_to(where, shape), length)
        for where, length in zip(wheres, a.axes[axis:], strict=False)
    ]
    inside = _inside_all(a, axis, wide)
    if a.term not in notes().stored:
        return _entries(a, axis, wide)
    name, value = notes().stored[a.term]
    axes = tuple(range(axis, axis + len(wide)))
    rest = (*a.axes[:axis], *a.axes[axis + len(wide) :])
    told = f"{notes().prefix}{name}_at_{'_'.join(map(str, axes))}"
    if not inside:
        shape_told = " × ".join(map(repr, a.axes))
        assume(f"indices stay inside a stored table of {shape_told}", "if")
    given = Given(
        "function", core=(0,) * len(wide), out=rest, says=f"the entries of {name}, any numbers"
    )
    notes().rows[told] = (value, axes)
    return _placed(standing(told, given)(*wide), axis, len(shape))


def _from_the_front(where: Array, length: Term) -> Array:
    """Return the places counted from the front, if all are known to be counted from the end."""
    known = entries_of(where)
    if known is None or number_of(length) is None or not bool((known < 0).all()):
        return where
    return where + Array(length) if known.numel() else where


def _placed(found: Array, axis: int, count: int) -> Array:
    """Move the first axes, as many as the places have, behind the axes that precede them."""
    order = [*range(count, count + axis), *range(count), *range(count + axis, found.ndim)]
    return xp.permute_dims(found, order)


def _inside_all(a: Array, axis: int, wheres: Sequence[Array]) -> bool:
    """Whether all places are known to be inside; raise ``Unread`` where there is no entry."""
    stored, inside = a.term in notes().stored, True
    for where, length in zip(wheres, map(number_of, a.axes[axis:]), strict=False):
        if is_truth(where.term):
            raise Unread("an index of truth values")
        known = entries_of(where)
        within = known is not None and length is not None and _all_below(known, int(length))
        inside = inside and within
        if known is not None and length is not None and not (within or stored):
            told = f"{int(known.min())}..{int(known.max())}"
            raise Unread(f"an array that was computed, read at {told} of {length} places")
        of = {v for v in free(where.term) if v.op == "var" and v.data[1] in ("real", "position")}
        if of - set(notes().stored) and not stored:
            raise Unread("an array that was computed, read at places which are inputs")
        if (of or any(t.op == "call" for t in postorder(where.term))) and not stored:
            raise Unread(
                "an array that was computed, read at places of a table that is not a formula"
            )
    return inside


def _entries(a: Array, axis: int, wheres: Sequence[Array]) -> Array:
    """Return entries of an array at places that are inside, or that the kernel checks."""
    last, batch = axis + len(wheres), wheres[0].ndim
    shape = (*a.axes[:axis], *wheres[0].axes, *a.axes[last:])

    def at(*i: Any) -> Array:
        before, inner = i[:axis], i[axis : axis + batch]
        places = (where[inner] if batch else where for where in wheres)
        key = (*before, *places, *i[axis + batch :])
        return Array(make("entry", (a.term, *(_settled(as_array(k)) for k in key))))

    return table(shape, at)


def _all_below(places: Tensor, length: int) -> bool:
    """Whether all places are nonnegative and below the length of the axis."""
    return not places.numel() or bool(((places >= 0) & (places < length)).all())


def _settled(place: Array) -> Term:
    from attnproof.symbolic.divisors import opened

    return integer(opened(place.term).right) if place.term.op == "pick" else place.term
