"""Values that follow from the order of the numbers in a row: maxima, medians, sorted rows.

Each is read as a function of the row of which only its symmetry is used: what holds for all
functions that disregard the order in which their numbers stand holds for this one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array
from attnproof.symbolic.givens import Given
from attnproof.symbolic.scalars import num
from attnproof.symbolic.terms import Term

from .reading import Unread, assume, notes, numeric, reads, standing, whole
from .terms import axes as axes_of
from .terms import moveaxis, sees_a_key


def _of_row(
    name: str,
    of: Callable[[Tensor], Tensor],
    x: Array,
    axis: int,
    out: tuple[Term, ...] | None = (),
    symmetric: bool = True,
) -> Array:
    """Apply a function of rows along an axis; what it gives of each row is the last axis."""
    says = f"torch's {name}" + ", of which only its symmetry is used" * symmetric
    given = Given("function", traits=("invariant",) * symmetric, core=(1,), out=out, says=says)
    notes().of_rows[name] = of
    found: Array = standing(name, given)(moveaxis(x, axis, x.ndim - 1))
    return found


def _finite(x: Any, name: str) -> Array:
    a = numeric(x)
    if not a.term.finite:
        raise Unread(f"−∞ in a row of which {name} is taken")
    return a


@reads("aten.amax.default")
def largest(x: Any, axes: Any = None, keepdim: bool = False) -> Array:
    """The largest number of a row; of a row that is −∞ throughout there is none."""
    a = numeric(x)
    if not all(sees_a_key(a, axis) for axis in axes_of(a, axes)):
        assume("every query sees a key", "if")
    return _extreme("largest", lambda row: row.amax(-1), a, axes, keepdim)


@reads("aten.amin.default")
def smallest(x: Any, axes: Any = None, keepdim: bool = False) -> Array:
    """The smallest number of a row."""
    return _extreme("smallest", lambda row: row.amin(-1), _finite(x, "the smallest"), axes, keepdim)


def _extreme(
    name: str, of: Callable[[Tensor], Tensor], a: Array, axes: Any, keepdim: bool
) -> Array:
    """Take one number of rows, then of rows of those, over several axes."""
    wanted = axes_of(a, axes)
    for axis in reversed(wanted):
        a = xp.expand_dims(_of_row(name, of, a, axis), axis=axis)
    return a if keepdim else xp.squeeze(a, axis=tuple(wanted))


@reads("aten.max.default")
def largest_of_all(x: Any) -> Array:
    """The largest number of an array."""
    return largest(x)


@reads("aten.min.default")
def smallest_of_all(x: Any) -> Array:
    """The smallest number of an array."""
    return smallest(x)


@reads("aten.aminmax.default")
def both(x: Any, *, dim: int | None = None, keepdim: bool = False) -> list[Array]:
    """The smallest and the largest number of a row, or of an array."""
    axes = None if dim is None else [dim]
    return [smallest(x, axes, keepdim), largest(x, axes, keepdim)]


# An index at which a number stands has no reading.


@reads("aten.max.dim")
def largest_of(x: Any, axis: int, keepdim: bool = False) -> list[Any]:
    """The largest number of a row."""
    return [largest(x, axis, keepdim), None]


@reads("aten.min.dim")
def smallest_of(x: Any, axis: int, keepdim: bool = False) -> list[Any]:
    """The smallest number of a row."""
    return [smallest(x, axis, keepdim), None]


@reads("aten.median.dim")
def median(x: Any, axis: int, keepdim: bool = False) -> list[Any]:
    """The median of a row, the lower one of two."""
    return [_one("median", lambda row: row.median(-1).values, x, axis, keepdim), None]


@reads("aten.mode.default")
def mode(x: Any, axis: int = -1, keepdim: bool = False) -> list[Any]:
    """The most frequent number of a row, the smallest of several."""
    return [_one("mode", lambda row: row.mode(-1).values, x, axis, keepdim), None]


@reads("aten.kthvalue.default")
def kth(x: Any, k: Any, axis: int = -1, keepdim: bool = False) -> list[Any]:
    """The k-th smallest number of a row."""
    count = whole(k, "the place in a sorted row")
    return [
        _one(f"kthvalue {count}", lambda row: row.kthvalue(count).values, x, axis, keepdim),
        None,
    ]


def _one(name: str, of: Callable[[Tensor], Tensor], x: Any, axis: int, keepdim: bool) -> Array:
    a = _finite(x, f"the {name}")
    place = axis % a.ndim
    found = _of_row(name, of, a, place)
    return xp.expand_dims(found, axis=place) if keepdim else found


@reads("aten.sort.default")
def sorted_row(x: Any, axis: int = -1, descending: bool = False) -> list[Any]:
    """The numbers of a row in their order."""
    name = "sort, descending" if descending else "sort"
    return [_several(name, lambda row: row.sort(-1, descending).values, x, axis), None]


@reads("aten.sort.stable")
def sorted_stably(
    x: Any, *, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> list[Any]:
    """The numbers of a row in their order; the sort is stable or not, which they do not show."""
    del stable
    return sorted_row(x, dim, descending)


@reads("aten.topk.default")
def top(x: Any, k: Any, axis: int = -1, most: bool = True, in_order: bool = True) -> list[Any]:
    """The k largest or smallest numbers of a row; out of order they are any function of it."""
    count = whole(k, "a number of entries")
    if count == 1:
        return [largest(x, [axis], True) if most else smallest(x, [axis], True), None]
    name = f"topk of {count}" + ", smallest" * (not most) + ", in any order" * (not in_order)

    def of(row: Tensor) -> Tensor:
        return row.topk(count, -1, most, in_order).values

    return [_several(name, of, x, axis, out=(num(count),), symmetric=in_order), None]


@reads("aten.cummax.default")
def largest_so_far(x: Any, axis: int) -> list[Any]:
    """The largest of the numbers up to each place of a row."""
    return [_several("cummax", lambda row: row.cummax(-1).values, x, axis, symmetric=False), None]


@reads("aten.cummin.default")
def smallest_so_far(x: Any, axis: int) -> list[Any]:
    """The smallest of the numbers up to each place of a row."""
    return [_several("cummin", lambda row: row.cummin(-1).values, x, axis, symmetric=False), None]


def _several(
    name: str,
    of: Callable[[Tensor], Tensor],
    x: Any,
    axis: int,
    out: tuple[Term, ...] | None = None,
    symmetric: bool = True,
) -> Array:
    a = _finite(x, name)
    place = axis % a.ndim
    return moveaxis(_of_row(name, of, a, place, out, symmetric), a.ndim - 1, place)
