"""Operations that pick entries at places that are themselves an array: tables read at an index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array, as_array, broadcast_shapes
from attnproof.symbolic.claim import rows
from attnproof.symbolic.givens import Function, Given
from attnproof.symbolic.scalars import integer, is_truth, number_of
from attnproof.symbolic.terms import Term, free, make, postorder

from ..angles import Angles
from .known import entries_of
from .reading import Unread, assume, constant, notes, reads
from .shapes import axis_of, each_part
from .taken import taken

__all__ = ["rows_of", "table"]


def table(shape: Sequence[Any], body: Any) -> Array:
    """The array whose entry at indices i, j, .. is ``body(i, j, ..)``."""
    if not shape:
        return as_array(body())
    found: Array = rows(as_array(shape[0]), lambda i: table(shape[1:], lambda *r: body(i, *r)))
    return found


@reads("aten.index.Tensor", "aten.index_select.default")
def index(x: Any, places: Any, selected: Any = None) -> Any:
    """The entries at places that are themselves an array, along one axis."""
    if selected is not None:  # index_select(x, axis, places)
        places = [None] * axis_of(places, x.ndim) + [selected]
    found = [(k, p) for k, p in enumerate(places) if p is not None]
    axis, count = found[0][0], len(found)
    if [k for k, _ in found] != list(range(axis, axis + count)):
        raise Unread("an index of several arrays along axes that are not side by side")
    wheres = [constant(where) for _, where in found]
    if count == 1:
        return each_part(x, lambda a: _gathered(a, axis, wheres[0]))
    return each_part(x, lambda a: _gathered_at(a, axis, wheres))


@reads("aten.embedding.default")
def embedding(weight: Array, places: Array, *_: Any) -> Array:
    """The rows of a table at these places."""
    return _gathered(constant(weight), 0, constant(places))


def rows_of(a: Array, axis: int, where: Array, *, inside: bool = False) -> Array:
    """The rows of a stored table at these places: a function of the place, whatever it is.

    ``inside`` says that all places are known to be below the length of the table.
    """
    name, value = notes().stored[a.term]
    # One name for each axis: a column of a square table is no row of it.
    told = f"{notes().prefix}{name}_row" if axis == 0 else f"{notes().prefix}{name}_along_{axis}"
    length = a.axes[axis]
    angles = notes().angles.get(a.term)
    if angles is not None and angles.axis == axis:
        if not inside:  # counted from the end a row is that of another position
            last = angles.shape[axis] - 1
            assume(f"indices stay in 0, .., {last}, those of a stored table", "if")
        return _placed(_angles(angles, where), axis, where.ndim)
    if not inside:
        assume(f"indices stay below {length!r}, the length of a stored table", "if")
    rest = (*a.axes[:axis], *a.axes[axis + 1 :])
    given = Given("function", core=(0,), out=rest, says=f"the rows of {name}, any numbers")
    notes().givens[told] = given
    notes().rows[told] = (value, axis)
    return _placed(Function(told, given)(where), axis, where.ndim)


def _angles(angles: Angles, where: Array) -> Array:
    """The cosines and sines that a stored table has for these positions."""
    told = "stored cosines and sines are as they are now, and read as exact ones"
    assume(f"{told} (they are within {angles.off:.1g})")
    notes().givens[angles.name] = angles.given
    notes().constants[angles.name] = torch.tensor(angles.frequencies, dtype=torch.float64)
    return angles.at(where, None if angles.factor == 1 else constant(angles.factor))


def _gathered(a: Array, axis: int, where: Array) -> Array:
    where = _from_the_front(where, a.axes[axis])
    if a.term not in notes().stored and _is_input(where):
        told = Array(integer((Array(a.axes[axis]) - 1).term))
        assume(f"indices stay in 0, .., {told!r}, those of a table that is computed", "if")
        return _placed(taken(a, axis, where, _if_stored), axis, where.ndim)
    inside = _inside_all(a, axis, [where])
    if a.term in notes().stored:
        return rows_of(a, axis, where, inside=inside)
    if where.term.op == "arange" and where.axes[0] is a.axes[axis]:
        return a
    return _entries(a, axis, [where])


def _if_stored(a: Array, axis: int, where: Array) -> Array | None:
    """The rows of a stored table: it has them where the array that is made of it has its own."""
    if a.term not in notes().stored:
        return None
    found = rows_of(a, axis, where, inside=True)
    first = [*range(axis, axis + where.ndim)]
    return xp.permute_dims(found, [*first, *(k for k in range(found.ndim) if k not in first)])


def _is_input(where: Array) -> bool:
    """Whether places are integers that the code is given, or made of these and of ranges alone."""
    known = set(notes().stored)
    of = {v for v in free(where.term) if v.op == "var" and v.data[1] in ("real", "position")}
    if is_truth(where.term) or any(t.op == "call" for t in postorder(where.term)):
        return False
    return bool(of) and not of & known


def _gathered_at(a: Array, axis: int, wheres: Sequence[Array]) -> Array:
    """The entries at places on several neighbouring axes, broadcast against each other."""
    shape = broadcast_shapes(*(where.axes for where in wheres))
    wide = [_from_the_front(xp.broadcast_to(where, shape), length)
            for where, length in zip(wheres, a.axes[axis:], strict=False)]  # fmt: skip
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
    given = Given("function", core=(0,) * len(wide), out=rest,
                  says=f"the entries of {name}, any numbers")  # fmt: skip
    notes().givens[told] = given
    notes().rows[told] = (value, axes)
    return _placed(Function(told, given)(*wide), axis, len(shape))


def _from_the_front(where: Array, length: Term) -> Array:
    """The same places counted from the front, where all are known to be counted from the end."""
    known = entries_of(where)
    if known is None or number_of(length) is None or not bool((known < 0).all()):
        return where
    return where + Array(length) if known.numel() else where


def _placed(found: Array, axis: int, count: int) -> Array:
    """The first axes, as many as the places have, moved behind those that come before them."""
    order = [*range(count, count + axis), *range(count), *range(count + axis, found.ndim)]
    return xp.permute_dims(found, order)


def _inside_all(a: Array, axis: int, wheres: Sequence[Array]) -> bool:
    """Whether all places are known to be inside; refused where an array has no entry there."""
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
            raise Unread("an array that was computed, read at places of a table that is no formula")
    return inside


def _entries(a: Array, axis: int, wheres: Sequence[Array]) -> Array:
    """The entries of an array at places that are certainly inside, or that the kernel asks for."""
    last, batch = axis + len(wheres), wheres[0].ndim
    shape = (*a.axes[:axis], *wheres[0].axes, *a.axes[last:])

    def at(*i: Any) -> Array:
        before, inner = i[:axis], i[axis : axis + batch]
        places = (where[inner] if batch else where for where in wheres)
        key = (*before, *places, *i[axis + batch :])
        return Array(make("entry", (a.term, *(_settled(as_array(k)) for k in key))))

    return table(shape, at)


def _all_below(places: Tensor, length: int) -> bool:
    """Whether all places are counted from the front of an axis, and none leaves it."""
    return not places.numel() or bool(((places >= 0) & (places < length)).all())


def _settled(place: Array) -> Term:
    from attnproof.symbolic.divisors import opened

    return integer(opened(place.term).right) if place.term.op == "pick" else place.term
