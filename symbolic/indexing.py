"""Indexing of symbolic arrays: slices, new axes, single entries, index arrays.

A key has the meaning that it has in NumPy, or is refused.  Whether an index lies inside its axis
is checked when the statement is built (``ranges.py``); one outside at all sizes is refused here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .array import Array, AxisMismatch, WrongIndex, as_array, permuted, require_numbers
from .scalars import (
    ONE,
    ZERO,
    add,
    always_less,
    entry,
    index,
    integer,
    is_count,
    is_truth,
    is_whole,
    mul,
    num,
    number_of,
    split_integer,
)
from .terms import Term, bind, free, make

ENTRYWISE = ("add", "mul", "floor_divide", "remainder", "maximum", "where", "abs")
FIXED_LENGTHS = (
    "an axis length is a polynomial in sizes and cannot depend on an index: write the whole axis "
    "with a mask, xp.where(xp.arange(n) <= i, x, 0) for the sum of x[:i + 1], and -xp.inf for a "
    "softmax"
)


def indexed(term: Term, key: Any) -> Array:
    """Return the part of an array selected by slices, numbers, index arrays and None."""
    keys = list(_key_parts(key, term))
    _refuse_pairs(keys, term)
    axis = 0
    for k in keys:
        if k is None:
            shape = (*term.shape[:axis], ONE, *term.shape[axis:])
            term, axis = make("new axis", (term,), axis, shape), axis + 1
        elif isinstance(k, slice):
            term, axis = _sliced(term, axis, k), axis + 1
        elif k.ndim == 1:
            term, axis = _gathered(term, axis, k), axis + 1
        else:
            term = _picked(term, axis, k.term)
    return Array(term)


def _key_parts(key: Any, term: Term) -> Iterator[slice | Array | None]:
    """Yield the parts of a key: None, slices and index arrays; an ellipsis as full slices."""
    keys = key if isinstance(key, tuple) else (key,)
    dots = sum(k is Ellipsis for k in keys)
    named = sum(k is not None and k is not Ellipsis for k in keys)
    if dots > 1:
        raise WrongIndex("an index has at most one ellipsis")
    if named > term.ndim:
        raise WrongIndex(f"{named} indices for {term.ndim} axes of {term!r}")
    for k in keys:
        if k is Ellipsis:
            yield from [slice(None)] * (term.ndim - named)
        elif k is None or isinstance(k, slice):
            yield k
        else:
            yield _index_array(k)


def _index_array(k: Any) -> Array:
    """Return an index or a vector of indices; they must be integers by their form."""
    if isinstance(k, list | range):
        raise WrongIndex(
            f"an axis cannot be indexed by the list {k!r}; write xp.stack((x[0], x[1])) for a few "
            "rows, and a given index map, or xp.arange(n), for many"
        )
    at = as_array(k)
    if is_truth(at.term):
        raise WrongIndex(
            f"the number of entries that {at!r} keeps is not a length; write xp.where(mask, x, 0) "
            "for a sum of them, with -xp.inf for a softmax, or use a given injection(k, n)"
        )
    if not (is_whole(at.term) or at.term.op == "index"):
        raise WrongIndex(
            f"an axis is indexed by integers, and {at!r} is not an integer by its form; write "
            "xp.arange, //, a given index map or a given index"
        )
    if at.ndim > 1:
        raise WrongIndex(
            f"an index array has one axis, and {at!r} has {at.ndim}; write "
            "x[xp.reshape(table, (-1,))] and reshape the result"
        )
    return at


def _refuse_pairs(keys: list[slice | Array | None], term: Term) -> None:
    """Refuse keys for which NumPy pairs index arrays or moves their axis to the front."""
    places = [k for k, one in enumerate(keys) if isinstance(one, Array)]
    arrays = [one for one in keys if isinstance(one, Array) and one.ndim]
    if len(arrays) > 1:
        raise WrongIndex(
            f"two index arrays in one index of {term!r}: numpy pairs them up.  Write "
            "x[a][:, b] for all combinations, or rows(n, lambda i: x[a[i], b[i]]) for pairs"
        )
    if arrays and places != list(range(places[0], places[0] + len(places))):
        raise WrongIndex(
            f"an index array and a number, separated in one index of {term!r}: numpy moves the "
            "axis to the front.  Write one index after the other, such as x[0][:, e]"
        )


def _bound(value: Any, length: Term, default: Term) -> Term:
    """Return a bound of a slice counted from the front; a negative one counts from the end."""
    if value is None:
        return default
    at = as_array(value)
    require_numbers(at)
    place = integer(at.term)
    if at.ndim or not is_count(place):
        raise WrongIndex(f"a slice has the bound {at!r}; {FIXED_LENGTHS}")
    return integer(add(length, place)) if always_less(place, ZERO) else place


def _sliced(term: Term, axis: int, s: slice) -> Term:
    length = term.shape[axis]
    if s.start is None and s.stop is None and s.step is None:
        return term
    if length.op == "space":
        raise WrongIndex(f"the outcomes of an experiment, axis {axis} of {term!r}, have no order")
    step = _step(s.step)
    start, stop = _bound(s.start, length, ZERO), _bound(s.stop, length, length)
    if (start, stop, step) == (ZERO, length, 1):
        return term
    span = integer(add(stop, mul(num(-1), start)))
    if step != 1:
        span, rest = split_integer(add(span, num(step - 1)), num(step))
        if number_of(rest) is None:
            raise WrongIndex(
                f"the number of entries that ::{step} takes from axis {axis} of length {length!r} "
                f"is not known; write the length as {step} times a size"
            )
    last = integer(add(start, mul(num(step), add(span, num(-1)))))
    for low, high in ((num(-1), start), (num(-1), span), (last, length)):
        if always_less(integer(add(high, num(-1))), low):
            raise WrongIndex(
                f"slice {start!r}:{stop!r}:{step} leaves axis {axis} of length {length!r}"
            )
    shape = (*term.shape[:axis], span, *term.shape[axis + 1 :])
    return make("slice", (term, start), (axis, step), shape)


def _step(value: Any) -> int:
    literal = 1 if value is None else number_of(as_array(value).term)
    if literal is None or literal.denominator != 1 or literal < 1:
        raise WrongIndex(
            f"the step of a slice is a positive integer, such as ::2; got {value!r}.  Write "
            "rows(n, lambda i: x[n - 1 - i]) for x[::-1]"
        )
    return int(literal)


def _gathered(term: Term, axis: int, where: Array) -> Term:
    """Return the parts at the indices of an index map, or at computed indices."""
    length = term.shape[axis]
    is_map = where.term.op == "inverse" or (where.term.op == "var" and where.term.args)
    if not is_map:
        return _at_each(term, axis, where)
    base = where.axes[0] if where.term.op == "inverse" else where.term.args[0]
    if base is not length:
        raise AxisMismatch(
            f"{where!r} holds indices below {base!r} and is used on axis {axis} of {term!r}, "
            f"whose length is {length!r}"
        )
    shape = (*term.shape[:axis], where.axes[0], *term.shape[axis + 1 :])
    return make("gather", (term, where.term), axis, shape)


def _at_each(term: Term, axis: int, where: Array) -> Term:
    """Return the table of the parts at computed indices, its axis replacing the indexed one."""
    from .divisors import opened

    (count,) = where.axes
    taken = {v.data for v in free(term) | free(where.term)}
    at = index(next(n for k in range(10**6) if (n := f"place{k}") not in taken), count)
    part = _picked(term, axis, _picks(integer(opened(entry(where.term, at)).right)))
    found = make("tabulate", (count, bind(part, at)), shape=(count, *part.shape))
    order = (*range(1, axis + 1), 0, *range(axis + 1, found.ndim))
    return permuted(found, order) if axis else found


def _picks(t: Term) -> Term:
    """Return a number with entries of index arrays written as picks, as indexing writes them."""
    if t.op == "entry" and len(t.args) == 2:
        return make("pick", (t.args[0], _picks(t.args[1])), 0)
    return make(t.op, tuple(map(_picks, t.args)), t.data, t.shape) if t.op in ENTRYWISE else t


def _picked(term: Term, axis: int, at: Term) -> Term:
    length = term.shape[axis]
    if length.op != "space":
        at = integer(at) if number_of(at) is None else at
        if always_less(at, ZERO):
            at = integer(add(length, at))
        if always_less(at, ZERO) or always_less(integer(add(length, num(-1))), at):
            raise WrongIndex(
                f"index {at!r} leaves axis {axis} of {term!r}, whose length is {length!r}"
            )
    return make("pick", (term, at), axis, (*term.shape[:axis], *term.shape[axis + 1 :]))
