"""Axes as arguments state them: their places, their lengths, and how a shape is regrouped."""

from __future__ import annotations

from typing import Any

from .array import Array, AxisMismatch, as_array, axis_at
from .scalars import (
    ONE,
    ZERO,
    always_less,
    integer,
    is_count,
    is_whole,
    mul,
    number_of,
    split_integer,
)
from .terms import Term


def axes_at(axis: Any, ndim: int) -> tuple[int, ...]:
    """Return axes counted from the front, all of them for None; refuse an axis named twice."""
    if axis is None:
        return tuple(range(ndim))
    found = tuple(axis_at(k, ndim) for k in (axis if isinstance(axis, tuple | list) else (axis,)))
    if len(set(found)) < len(found):
        raise ValueError(f"an axis occurs twice in {axis!r}")
    return found


def axis_lengths(shape: Any) -> tuple[Term, ...]:
    """Return the lengths of a shape, which may be a single one."""
    return tuple(map(axis_length, shape if isinstance(shape, tuple | list) else (shape,)))


def axis_length(n: Any) -> Term:
    """Return an axis length: a natural number, or a polynomial in sizes."""
    length = as_array(n).term
    if length.op == "space":
        return length
    length = integer(length)
    if isinstance(n, float) or not is_count(length):
        raise TypeError(
            f"an axis length is an integer or a polynomial in sizes; got {n!r}; for a part of an "
            "axis, write a mask: xp.where(xp.arange(n) < m, x, 0)"
        )
    if always_less(length, ZERO):
        raise ValueError(f"an axis length is at least 0; got {length!r}")
    return length


def integer_number(value: Any, name: str) -> Array:
    """Return an integer, which the argument ``name`` must be."""
    a = as_array(value)
    if isinstance(value, float) or a.ndim or not is_whole(a.term):
        raise TypeError(f"{name} wants an integer; got {value!r}")
    return a


def _inferred_axes(shape: list[Any]) -> list[int]:
    """Return the places at which a shape has −1."""
    return [
        k
        for k, n in enumerate(shape)
        if not isinstance(n, float) and number_of(as_array(n).term) == -1
    ]


def with_inferred_length(x: Array, wanted: Any) -> list[Any]:
    """Return a shape for the entries of ``x``, with the length that it states as -1."""
    shape = list(wanted) if isinstance(wanted, tuple | list) else [wanted]
    if not _inferred_axes(shape):
        return shape
    place, *more = _inferred_axes(shape)
    if more:
        raise ValueError(f"a shape has at most one length -1; got {shape}")
    known = [as_array(n).term for k, n in enumerate(shape) if k != place]
    total = integer(mul(ONE, *x.axes))
    quotient, rest = split_integer(total, integer(mul(ONE, *known)))
    if number_of(rest) != 0:
        raise AxisMismatch(f"cannot infer the length for -1 in {shape} from shape {x.axes}")
    return [*shape[:place], quotient, *shape[place + 1 :]]


def _product(shape: tuple[Term, ...], axes: list[int]) -> Term:
    return integer(mul(ONE, *(shape[axis] for axis in axes)))


def regrouped(
    shape: tuple[Term, ...], target: tuple[Term, ...]
) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
    """Return groups of axes of equal products, before and after, in row-major order.

    Raises :class:`AxisMismatch` if the products cannot be matched.
    """
    groups: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    i = j = 0
    while i < len(shape) or j < len(target):
        before, after = [i] if i < len(shape) else [], [j] if j < len(target) else []
        i, j = i + len(before), j + len(after)
        while _product(shape, before) is not _product(target, after):
            options = [
                (i + a, j + b)
                for a in range(len(shape) - i + 1)
                for b in range(len(target) - j + 1)
                if _product(shape, [*before, *range(i, i + a)])
                is _product(target, [*after, *range(j, j + b)])
            ]
            if not options:
                raise AxisMismatch(
                    f"cannot reshape {shape} to {target}: the products of the axes differ"
                )
            end_i, end_j = options[0]
            before, after = [*before, *range(i, end_i)], [*after, *range(j, end_j)]
            i, j = end_i, end_j
        groups.append((tuple(before), tuple(after)))
    return tuple(groups)
