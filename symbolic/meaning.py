"""The meaning of each array operation: its entry at a list of indices, one operation at a time.

This table is trusted: the kernel unfolds arrays through it alone, and the tests compare every
line of it with numpy.  An elementwise operation on arrays is applied to their entries; on numbers
it is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .scalars import ZERO, add, below, entry, integer, mul, num, subtract
from .terms import Term, bind, instantiate, make, opened

ARITY = {
    op: count
    for count, ops in (
        (0, ("add", "mul")),
        (1, ("exp", "log", "cos", "sin", "tanh", "sqrt", "abs", "power", "indicator", "not")),
        (2, ("maximum", "floor_divide", "remainder", "equal", "less", "less_equal", "and", "or")),
        (3, ("where",)),
    )
    for op in ops
}
"""The number of arguments of each elementwise operation; 0: any number."""
ELEMENTWISE = frozenset(ARITY)

At = Sequence[Term]


class NoMeaning(Exception):
    """Raised for an operation without an entry rule: its entries are atoms of a proof."""


def entry_of(array: Term, at: At) -> Term:
    """Return the meaning of ``array[at]``, one operation deep.

    Raises :class:`NoMeaning` for arrays that are not computed from others.
    """
    if array.op in ELEMENTWISE:
        return make(array.op, tuple(entry(arg, *at) for arg in array.args), array.data)
    rule = _RULES.get(array.op)
    if rule is None:
        raise NoMeaning(array.op)
    return rule(array, at)


def replaced(axes: Sequence[Term], axis: int, *others: Term) -> tuple[Term, ...]:
    """Return indices or lengths with that of one axis replaced by others (possibly none)."""
    return (*axes[:axis], *others, *axes[axis + 1 :])


def _broadcast(a: Term, at: At) -> Term:
    """Axes are matched from the right; an axis of length 1 is read at 0."""
    (x,) = a.args
    outer = a.ndim - x.ndim
    pairs = zip(at[outer:], x.shape, a.shape[outer:], strict=True)
    return entry(x, *(i if n is m else ZERO for i, n, m in pairs))


def _slice(a: Term, at: At) -> Term:
    axis, step = a.data
    moved = integer(add(a.args[1], mul(num(step), at[axis])))
    return entry(a.args[0], *replaced(at, axis, moved))


def _reshape(a: Term, at: At) -> Term:
    """Groups of axes with equal products, each read through its row-major offset."""
    groups: Any = a.data
    (x,) = a.args
    source: list[Term] = []
    for before, after in groups:
        offset: Term = ZERO
        for axis in after:
            offset = integer(add(mul(offset, a.shape[axis]), at[axis]))
        digits: list[Term] = []
        for axis in reversed(before[1:]):
            digits.append(make("remainder", (offset, x.shape[axis])))
            offset = make("floor_divide", (offset, x.shape[axis]))
        source += [*([offset] if before else []), *reversed(digits)]
    return entry(x, *source)


def _concat(a: Term, at: At) -> Term:
    """The entry of the part that certainly contains the index; none if it may lie in several."""
    axis: Any = a.data
    start: Term = ZERO
    for part in a.args:
        inside = integer(subtract(at[axis], start))
        if below(inside, part.shape[axis]):
            return entry(part, *replaced(at, axis, inside))
        start = integer(add(start, part.shape[axis]))
    raise NoMeaning("concat at an index that may lie in either part")


def _stack(a: Term, at: At) -> Term:
    axis: Any = a.data
    *parts, value = [entry(part, *replaced(at, axis)) for part in a.args]
    for place, part in reversed([*enumerate(parts)]):
        value = make("where", (make("equal", (at[axis], num(place))), part, value))
    return value


def _summed(length: Term, body: Callable[[Term], Term], *of: Term) -> Term:
    variable = opened(length, *of)
    return make("sum", (length, bind(body(variable), variable)))


def _reduce(a: Term, at: At) -> Term:
    axis: Any = a.data
    (x,) = a.args
    return _summed(x.shape[axis], lambda k: entry(x, *at[:axis], k, *at[axis:]), *at, x)


def _matmul(a: Term, at: At) -> Term:
    """Rows of the first argument times columns of the second, or times a vector."""
    x, y = a.args
    outer = max(y.ndim - 2, 0)
    row, batch, column = at[: x.ndim - 1], at[:outer], at[x.ndim - 1 :]
    return _summed(
        y.shape[outer], lambda k: mul(entry(x, *row, k), entry(y, *batch, k, *column)), *at, x, y
    )


def _call(a: Term, at: At) -> Term:
    """A call over leading batch axes is the function applied at each of their indices."""
    name, batch, traits = a.data
    if not batch:
        raise NoMeaning("call")
    rows = [make("row", (arg, *at[:batch]), shape=arg.shape[batch:]) for arg in a.args]
    return entry(make("call", tuple(rows), (name, 0, traits), a.shape[batch:]), *at[batch:])


_RULES: dict[str, Callable[[Term, At], Term]] = {
    "named": lambda a, at: entry(a.args[0], *at),
    "broadcast": _broadcast,
    "permute": lambda a, at: entry(a.args[0], *(at[a.data.index(k)] for k in range(a.ndim))),
    "new axis": lambda a, at: entry(a.args[0], *replaced(at, a.data)),
    "pick": lambda a, at: entry(a.args[0], *at[: a.data], a.args[1], *at[a.data :]),
    "slice": _slice,
    "gather": lambda a, at: entry(a.args[0], *replaced(at, a.data, entry(a.args[1], at[a.data]))),
    "reshape": _reshape,
    "concat": _concat,
    "stack": _stack,
    "reduce": _reduce,
    "matmul": _matmul,
    "eye": lambda _, at: make("indicator", (make("equal", tuple(at)),)),
    "arange": lambda _, at: at[0],
    "tabulate": lambda a, at: entry(instantiate(a.args[1], at[0]), *at[1:]),
    "isin": lambda a, at: make("is in", (entry(a.args[0], *at), a.args[1])),
    "call": _call,
    "row": lambda a, at: entry(a.args[0], *a.args[1:], *at),
}
