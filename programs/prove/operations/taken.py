"""Rows of a computed array at places that are inputs: the array's formula at those places.

``table[ids]`` of a table that the code computes, cos(arange(n) ω), is cos(ids ω): every operation
that acts row by row along the axis takes the rows of what it acts on, down to the range itself.
It is so for the places of the axis alone, 0 to n - 1, which is a condition of the proof.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array, as_array
from attnproof.symbolic.claim import rows
from attnproof.symbolic.meaning import ELEMENTWISE
from attnproof.symbolic.scalars import ONE
from attnproof.symbolic.terms import Term, instantiate, make

from .reading import Unread

__all__ = ["taken"]

Stored = Callable[[Array, int, Array], Array | None]


def taken(a: Array, axis: int, where: Array, stored: Stored) -> Array:
    """The rows of an array at these places: the axes of the places, then the others of the array.

    ``stored`` gives the rows of a table that is no formula, or None for what is none.  Raises
    ``Unread`` where an operation does not act row by row.
    """
    return _Taken(where, stored)(a.term, axis)


class _Taken:
    """``where`` are the places; ``count`` the number of their axes, which come first."""

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
        """Where an axis stands among those of the rows."""
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
        if len(before) != 1 or len(after) != 1:
            raise Unread("an axis made of several, or cut in several, read at inputs")
        found = self(t.args[0], before[0])
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


def _without(t: Term, axis: int) -> tuple[Term, ...]:
    return (*t.shape[:axis], *t.shape[axis + 1 :])
