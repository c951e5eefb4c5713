"""Axis lengths, arithmetic on them, and arrays made from them: ranges, constants, triangles."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch

from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array, as_array
from attnproof.symbolic.givens import real
from attnproof.symbolic.scalars import (
    ONE,
    integer,
    is_truth,
    num,
    number_of,
    size,
    split_integer,
)
from attnproof.symbolic.terms import free

from .reading import (
    NARROW,
    Unread,
    along,
    assume,
    constant,
    length_of,
    moves,
    notes,
    noting,
    numeric,
    reads,
    sized,
    standing,
)

ROOTS = (0.5, -0.5, 0.25, -0.25)


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
    return length_of(total)


def _of_lengths(name: str, rule: Callable[..., Any]) -> None:
    def reading(*given: Any) -> Any:
        found = rule(*given)
        return length_of(found) if isinstance(found, Array) else found

    reads(name)(reading)


for _name in ("mul", "add", "sub", "neg"):
    _of_lengths(_name, getattr(operator, _name))


@reads("floordiv")
def quotient(a: Any, b: Any) -> Any:
    """⌊a/b⌋: exact, or for two programs a size of which only b·⌊a/b⌋ ≤ a is used."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    found, rest = split_integer(integer(as_array(a).term), integer(as_array(b).term))
    if number_of(rest) == 0:
        return sized(Array(found))
    pair = noting() and notes().recognises
    if not pair or not isinstance(b, int) or b < HALVES or isinstance(a, int):
        raise Unread(f"the axis length {a!r} // {b!r}")
    if coefficient_of_size(a) == -1:  # ⌊−a/b⌋ = −⌈a/b⌉
        return length_of(-as_array(rounded_up(length_of(-a), b)))
    return _floor(a, b)


def _floor(a: Array, b: int) -> Any:
    """⌊a/b⌋ of a length a = n + c as a size; of ⌊n/2⌋ and ⌊(n + 1)/2⌋ the second is the rest."""
    known = notes().quotients
    numerator = integer(a.term)
    if (numerator, b) in known:
        return Array(known[numerator, b])
    less = length_of(a - 1)
    if b == HALVES and ((as_array(less).term, b) in known or as_array(less).term.op == "size"):
        return length_of(less - _floor(less, b))
    if coefficient_of_size(a) != 1:
        raise Unread(f"the axis length {a!r} // {b}")
    return Array(known.setdefault((numerator, b), size(f"⌊{Array(numerator)!r}/{b}⌋")))


HALVES = 2


def coefficient_of_size(a: Array) -> int:
    """Return k of a length k·n + c, of one letter n; 0 for other lengths."""
    letters = [one for one in free(a.term) if one.op == "size"]
    if len(letters) != 1:
        return 0
    whole, rest = split_integer(a.term, letters[0])
    told = number_of(whole)
    return int(told) if told is not None and number_of(rest) is not None else 0


def rounded_up(a: Any, b: int) -> Any:
    """⌈a/b⌉."""
    return quotient(length_of(as_array(a) + (b - 1)), b)


@reads("mod")
def rest_of(a: Any, b: Any) -> Any:
    """a − b·⌊a/b⌋."""
    return length_of(as_array(a) - as_array(b) * as_array(quotient(a, b)))


reads("sym_float")(as_array)  # a length as a number


@reads("truediv")
def ratio(a: Any, b: Any) -> Array:
    """a/b."""
    return numeric(a) / numeric(b)


@reads("pow")
def root(a: Any, b: Any) -> Array:
    """A root, or an integer power, of lengths."""
    if isinstance(b, Array) or b not in (*ROOTS, 1, 2, 3, -1):
        raise Unread(f"{a!r} to the power {b!r}")
    return numeric(a) ** (b if b in ROOTS else int(b))


@reads("sym_int", "sym_max", "sym_min", "sym_not")
def refused(*given: Any) -> Any:
    """Arithmetic that leaves the lengths; these operations are not read."""
    raise Unread(f"arithmetic on the lengths {', '.join(map(repr, given))}")


@moves("aten.arange.default", "aten.arange.start", "aten.arange.start_step")
def arange(*bounds: Any, dtype: Any = None, **_: Any) -> Array:
    """0, 1, .. below n; or start, start + step, .. below end."""
    start, end, step = {1: (0, bounds[0], 1), 2: (*bounds, 1)}.get(len(bounds), bounds)
    if not all(isinstance(k, Array) or float(k).is_integer() for k in (start, end, step)):
        raise Unread("arange with a fraction")
    _holds_counts(dtype)
    span = as_array(_whole(end)) - as_array(_whole(start))
    stride = int(step)
    if stride != 1:
        width = abs(stride)
        blocks, rest = split_integer((span if stride > 0 else -span).term, num(width))
        known = number_of(rest)
        if known is None:
            raise Unread(f"arange with step {stride} to {end!r}")
        span = Array(blocks) + -(-int(known) // width)
    first = _whole(start)

    def made(shape: tuple[Any, ...]) -> Array:
        found = xp.arange(as_array(shape[0]))
        found = found if stride == 1 else found * stride
        return found if isinstance(first, int) and first == 0 else found + first

    return _of_any_lengths(made, (length_of(span),))


def _holds_counts(dtype: Any) -> None:
    """Refuse dtypes in which counts wrap around, and note those in which they are rounded."""
    if dtype in NARROW:
        raise Unread(f"integers of {dtype}, which wrap around")
    if dtype in (torch.float16, torch.bfloat16):
        told = str(dtype).removeprefix("torch.")
        assume(f"a range in {told} is read without its rounding")


def _whole(value: Any) -> Any:
    return value if isinstance(value, Array) else int(value)


@moves("aten.full.default", "aten.new_full.default")
def full(*given: Any, dtype: Any = None, **_: Any) -> Array:
    """An array of one number, or of one truth value."""
    shape, value = given[-2:]
    one = _in_dtype(value, dtype)
    return _of_any_lengths(
        lambda lengths: xp.broadcast_to(one, lengths), tuple(sized(n) for n in shape)
    )


def _of_any_lengths(made: Callable[[tuple[Any, ...]], Array], shape: tuple[Any, ...]) -> Array:
    """Return an array that is known at any lengths, noting this if its own lengths are numbers."""
    found = made(shape)
    if all(isinstance(n, int) for n in shape):
        notes().patterns[found.term] = made
    return found


def _in_dtype(value: Any, dtype: Any) -> Array:
    if dtype == torch.bool and not isinstance(value, Array):
        return constant(bool(value))
    counts = dtype is not None and not dtype.is_floating_point
    if counts and isinstance(value, float) and not value.is_integer():
        raise Unread(f"{value} in an array of {dtype}")
    return constant(value)


@moves("aten.empty_permuted.default", "aten.empty.memory_format", "aten.new_empty.default")
def empty(*given: Any, **_: Any) -> Array:
    """Uninitialised memory: arbitrary numbers, different at every use."""
    shape = given[0] if isinstance(given[0], list | tuple) else given[1]
    lengths = tuple(sized(n) for n in shape)
    name = f"{notes().prefix}memory_{len(notes().unwritten)}"
    unwritten = real(*map(as_array, lengths), says="memory that was not written to, any numbers")
    notes().unwritten[name] = xp.broadcast_to(as_array(0), lengths)
    found: Array = standing(name, unwritten)
    return found


@moves("aten.empty_like.default")
def empty_like(x: Any, **_: Any) -> Array:
    """Uninitialised memory in the shape of x."""
    return empty(list(x.axes))


@moves("aten.full_like.default")
def full_like(x: Any, value: Any, *, dtype: Any = None, **_: Any) -> Array:
    """One number in the shape of x; one truth value if x has truth values."""
    wanted = torch.bool if dtype is None and is_truth(x.term) else dtype
    return xp.broadcast_to(_in_dtype(value, wanted), x.axes)


@moves("aten.fill.Scalar", "aten.fill.Tensor")
def fill(x: Any, value: Any) -> Array:
    """One number in the shape of x."""
    return full_like(x, value)


for _name, _value in (("zeros", 0), ("ones", 1)):  # or False, and True

    @moves(f"aten.{_name}.default", f"aten.new_{_name}.default")
    def _everywhere(*given: Any, dtype: Any = None, value: int = _value, **_: Any) -> Array:
        return full(given[-1], value, dtype=dtype)

    @moves(f"aten.{_name}_like.default")
    def _like(x: Any, *, dtype: Any = None, value: int = _value, **_: Any) -> Array:
        return full_like(x, value, dtype=dtype)


@moves("aten.scalar_tensor.default", "aten.tensor.default")
def scalar(value: Any, **_: Any) -> Array:
    """A number."""
    return constant(value)


@moves("aten.eye.default", "aten.eye.m")
def eye(*lengths: Any, **_: Any) -> Array:
    """The identity matrix."""
    if len(lengths) == 2 and lengths[0] is not lengths[1]:
        raise Unread("an eye that is not square")
    return xp.eye(sized(lengths[0]))


def offsets(x: Array) -> Array:
    """Return j − i at row i and column j of the last two axes."""
    rows, columns = x.axes[-2:]
    return xp.arange(as_array(columns))[None, :] - xp.arange(as_array(rows))[:, None]


def _triangle(name: str, keeps: Callable[[Array, Array], Array]) -> None:
    def reading(x: Any, diagonal: int = 0) -> Array:
        a = constant(x)

        def kept(own: Array) -> Array:
            wide = xp.broadcast_to(keeps(offsets(own), numeric(diagonal)), own.axes)
            return wide & own if is_truth(own.term) else xp.where(wide, own, 0)

        found, patterns = kept(a), notes().patterns
        if a.term in patterns:
            patterns[found.term] = lambda shape: kept(patterns[a.term](shape))
        return found

    moves(name)(reading)


_triangle("aten.tril.default", operator.le)  # x where j − i ≤ diagonal, 0 elsewhere
_triangle("aten.triu.default", operator.ge)  # x where j − i ≥ diagonal, 0 elsewhere


@moves("aten.meshgrid.indexing", "aten.meshgrid.default")
def meshgrid(axes: Sequence[Any], *, indexing: str = "ij") -> list[Array]:
    """The coordinates of each point of a grid."""
    if indexing != "ij" and len(axes) > 1:
        raise Unread("meshgrid with indexing='xy'")
    arrays = [numeric(a) for a in axes]
    shape = tuple(a.axes[0] for a in arrays)
    return [xp.broadcast_to(along(a, k, len(arrays)), shape) for k, a in enumerate(arrays)]
