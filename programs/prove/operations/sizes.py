"""Axis lengths and arithmetic on them."""

from __future__ import annotations

from typing import Any

from attnproof.symbolic.array import Array, as_array
from attnproof.symbolic.scalars import ONE, integer, number_of, split_integer

from .reading import Unread, reads, sized

__all__: list[str] = []


@reads("aten.sym_size.int")
def length(x: Any, axis: int) -> Any:
    """The length of an axis."""
    return sized(Array(x.axes[axis % x.ndim]))


@reads("aten.sym_numel.default")
def count(x: Any) -> Any:
    """The number of entries."""
    total = as_array(ONE)
    for n in x.axes:
        total = total * as_array(n)
    return sized(Array(integer(total.term)))


def _settled(a: Any) -> Any:
    return sized(Array(integer(a.term))) if isinstance(a, Array) else a


@reads("mul")
def product(a: Any, b: Any) -> Any:
    """a·b."""
    return _settled(a * b)


@reads("add")
def total(a: Any, b: Any) -> Any:
    """a + b."""
    return _settled(a + b)


@reads("sub")
def difference(a: Any, b: Any) -> Any:
    """a − b."""
    return _settled(a - b)


@reads("neg")
def negative(a: Any) -> Any:
    """−a."""
    return _settled(-a)


@reads("floordiv")
def quotient(a: Any, b: Any) -> Any:
    """⌊a/b⌋, where that is a length."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    found, rest = split_integer(integer(as_array(a).term), integer(as_array(b).term))
    if number_of(rest) != 0:
        raise Unread(f"the axis length {a!r} // {b!r}")
    return sized(Array(found))


@reads("sym_float", "sym_int", "truediv", "pow", "mod", "sym_max", "sym_min", "sym_not")
def refused(*given: Any) -> Any:
    """Arithmetic that leaves lengths; literal numbers are computed, others are not read."""
    raise Unread(f"arithmetic on the lengths {', '.join(map(repr, given))}")
