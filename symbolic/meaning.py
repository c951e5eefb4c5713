"""What each array operation means: its entry at a list of indices, one operation at a time.

This table is trusted: the kernel unfolds arrays through it and through nothing else, and the
tests hold every line of it against numpy.  An operation on numbers stays as it is; on arrays
it is taken entry by entry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .scalars import ZERO, add, below, boolean, entry, integer, mul, num
from .terms import Term, bind, instantiate, make, opened

ARITY = {
    "add": 0,
    "mul": 0,
    "exp": 1,
    "log": 1,
    "cos": 1,
    "sin": 1,
    "tanh": 1,
    "sqrt": 1,
    "abs": 1,
    "power": 1,
    "indicator": 1,
    "not": 1,
    "maximum": 2,
    "equal": 2,
    "less": 2,
    "less_equal": 2,
    "and": 2,
    "or": 2,
    "floor_divide": 2,
    "remainder": 2,
    "where": 3,
}
"""How many numbers each operation takes that is taken entry by entry; 0: any number."""
ELEMENTWISE = frozenset(ARITY)

At = Sequence[Term]


class NoMeaning(Exception):
    """The operation has no entry rule: its entries are atoms of a proof."""


def entry_of(array: Term, at: At) -> Term:
    """The meaning of ``array[at]``, one operation deep.

    Raises :class:`NoMeaning` for arrays that are not computed from others.
    """
    if array.op in ELEMENTWISE:
        return make(array.op, tuple(entry(arg, *at) for arg in array.args), array.data)
    rule = _RULES.get(array.op)
    if rule is None:
        raise NoMeaning(array.op)
    return rule(array, at)


def _named(a: Term, at: At) -> Term:
    return entry(a.args[0], *at)


def _broadcast(a: Term, at: At) -> Term:
    """Axes are matched from the right; an axis of length 1 is read at 0."""
    (x,) = a.args
    outer = a.ndim - x.ndim
    pairs = zip(at[outer:], x.shape, a.shape[outer:], strict=True)
    return entry(x, *(i if n is m else ZERO for i, n, m in pairs))


def _permute(a: Term, at: At) -> Term:
    order: Any = a.data
    source = [ZERO] * len(at)
    for place, axis in enumerate(order):
        source[axis] = at[place]
    return entry(a.args[0], *source)


def _newaxis(a: Term, at: At) -> Term:
    axis: Any = a.data
    return entry(a.args[0], *at[:axis], *at[axis + 1 :])


def _pick(a: Term, at: At) -> Term:
    axis: Any = a.data
    return entry(a.args[0], *at[:axis], a.args[1], *at[axis:])


def _slice(a: Term, at: At) -> Term:
    axis, step = a.data
    moved = integer(add(a.args[1], mul(num(step), at[axis])))
    return entry(a.args[0], *at[:axis], moved, *at[axis + 1 :])


def _gather(a: Term, at: At) -> Term:
    axis: Any = a.data
    return entry(a.args[0], *at[:axis], entry(a.args[1], at[axis]), *at[axis + 1 :])


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
    """The part that certainly holds the index; no part until the axis is cut at its seams."""
    axis: Any = a.data
    start: Term = ZERO
    for part in a.args:
        inside = integer(add(at[axis], mul(num(-1), start)))
        if below(inside, part.shape[axis]):
            return entry(part, *at[:axis], inside, *at[axis + 1 :])
        start = integer(add(start, part.shape[axis]))
    raise NoMeaning("concat at an index that may lie in either part")


def _stack(a: Term, at: At) -> Term:
    axis: Any = a.data
    rest = (*at[:axis], *at[axis + 1 :])
    value = entry(a.args[-1], *rest)
    for place in range(len(a.args) - 2, -1, -1):
        value = make(
            "where", (boolean("equal", at[axis], num(place)), entry(a.args[place], *rest), value)
        )
    return value


def _summed(length: Term, body: Callable[[Term], Term], *of: Term) -> Term:
    variable = opened(length, *of)
    return make("sum", (length, bind(body(variable), variable)))


def _reduce(a: Term, at: At) -> Term:
    axis: Any = a.data
    (x,) = a.args
    return _summed(x.shape[axis], lambda k: entry(x, *at[:axis], k, *at[axis:]), *at, x)


def _matmul(a: Term, at: At) -> Term:
    x, y = a.args
    row = at[: x.ndim - 1]
    if y.ndim == 1:
        return _summed(y.shape[0], lambda k: mul(entry(x, *row, k), entry(y, k)), *at, x, y)
    batch, column = at[: y.ndim - 2], at[-1]
    return _summed(
        y.shape[-2],
        lambda k: mul(entry(x, *row, k), entry(y, *batch, k, column)),
        *at,
        x,
        y,
    )


def _eye(_: Term, at: At) -> Term:
    return make("indicator", (boolean("equal", at[0], at[1]),))


def _arange(_: Term, at: At) -> Term:
    return at[0]


def _tabulate(a: Term, at: At) -> Term:
    return entry(instantiate(a.args[1], at[0]), *at[1:])


def _isin(a: Term, at: At) -> Term:
    return make("is in", (entry(a.args[0], *at), a.args[1]))


def _call(a: Term, at: At) -> Term:
    """A function applied row by row over leading axes is the function of each row."""
    name, batch, traits = a.data
    if not batch:
        raise NoMeaning("call")
    rows = [make("row", (arg, *at[:batch]), shape=arg.shape[batch:]) for arg in a.args]
    return entry(make("call", tuple(rows), (name, 0, traits), a.shape[batch:]), *at[batch:])


def _row(a: Term, at: At) -> Term:
    return entry(a.args[0], *a.args[1:], *at)


_RULES: dict[str, Callable[[Term, At], Term]] = {
    "named": _named,
    "broadcast": _broadcast,
    "permute": _permute,
    "new axis": _newaxis,
    "pick": _pick,
    "slice": _slice,
    "gather": _gather,
    "reshape": _reshape,
    "concat": _concat,
    "stack": _stack,
    "reduce": _reduce,
    "matmul": _matmul,
    "eye": _eye,
    "arange": _arange,
    "tabulate": _tabulate,
    "isin": _isin,
    "call": _call,
    "row": _row,
}
