"""Indexing of symbolic arrays: slices, new axes, single entries, maps of indices."""

from __future__ import annotations

from typing import Any

from .array import Array, AxisMismatch, as_array
from .scalars import ONE, ZERO, add, always_less, below, integer, mul, num, number_of, split_integer
from .terms import Term, make

__all__ = ["indexed"]


def indexed(term: Term, key: Any) -> Array:
    """The part of an array that a key of slices, numbers, maps and None selects."""
    keys = list(key) if isinstance(key, tuple) else [key]
    named = sum(k is not None and k is not Ellipsis for k in keys)
    if Ellipsis in [k for k in keys if not isinstance(k, Array)]:
        spot = next(i for i, k in enumerate(keys) if k is Ellipsis)
        keys[spot : spot + 1] = [slice(None)] * (term.ndim - named)
    if named > term.ndim:
        raise IndexError(f"{named} indices for {term.ndim} axes of {term!r}")
    axis = 0
    for k in keys:
        if k is None:
            shape = (*term.shape[:axis], ONE, *term.shape[axis:])
            term, axis = make("new axis", (term,), axis, shape), axis + 1
        elif isinstance(k, slice):
            term, axis = _sliced(term, axis, k), axis + 1
        elif isinstance(k, Array) and k.ndim == 1:
            term, axis = _gathered(term, axis, k), axis + 1
        else:
            term = _picked(term, axis, as_array(k).term)
    return Array(term)


def _sliced(term: Term, axis: int, s: slice) -> Term:
    length = term.shape[axis]
    start = integer(as_array(0 if s.start is None else s.start).term)
    stop = length if s.stop is None else integer(as_array(s.stop).term)
    step = 1 if s.step is None else s.step
    if (start, stop, step) == (ZERO, length, 1):
        return term
    if (value := number_of(start)) is not None and value < 0:
        raise IndexError(f"a slice starts at {value}; count from the front of axis {length!r}")
    span = integer(add(stop, mul(num(-1), start)))
    if step != 1:
        span, rest = split_integer(add(span, num(step - 1)), num(step))
        if number_of(rest) is None:
            raise IndexError(
                f"how many entries ::{step} takes from axis {axis} of length {length!r} is not "
                f"certain; write the length as {step} times a size"
            )
    last = integer(add(start, mul(num(step), add(span, num(-1)))))
    if not (always_less(num(-1), span) and always_less(last, length)):
        raise IndexError(f"slice {start!r}:{stop!r}:{step} leaves axis {axis} of length {length!r}")
    shape = (*term.shape[:axis], span, *term.shape[axis + 1 :])
    return make("slice", (term, start), (axis, step), shape)


def _gathered(term: Term, axis: int, where: Array) -> Term:
    is_map = where.term.op == "inverse" or (where.term.op == "var" and where.term.args)
    if not is_map:
        raise IndexError(f"an axis is indexed by a map of indices, not by {where!r}")
    base = where.term.args[0].args[0] if where.term.op == "inverse" else where.term.args[0]
    if base is not term.shape[axis]:
        raise AxisMismatch(
            f"{where!r} holds indices below {base!r} and is used on axis {axis} of {term!r}, "
            f"whose length is {term.shape[axis]!r}"
        )
    shape = (*term.shape[:axis], where.axes[0], *term.shape[axis + 1 :])
    return make("gather", (term, where.term), axis, shape)


def _picked(term: Term, axis: int, at: Term) -> Term:
    value = number_of(at)
    if value is not None and value < 0:
        at = integer(add(term.shape[axis], at))
    if not below(at, term.shape[axis]):
        raise IndexError(
            f"index {at!r} may leave axis {axis} of {term!r}, whose length is {term.shape[axis]!r}"
        )
    return make("pick", (term, at), axis, (*term.shape[:axis], *term.shape[axis + 1 :]))
