"""Which terms have a meaning: the right number of arguments, of the right shapes, and no more.

Anybody can ask ``make`` for a sum of a matrix and a number, or for a table of two rows that
has three.  Such a term means nothing, and two rules may read it differently, which would join
two numbers that are not equal.  So the kernel asks :func:`formed` of every term it passes.

Lengths are polynomials in sizes: an axis never depends on an index.  An axis may also be a
probability space, whose outcomes can be summed over (an expectation) and nothing else.  An index
ranges below a whole number, and a stack of layers has one layer for each natural below its depth.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

from .meaning import ARITY
from .rules import BY_FORM, Refused, need
from .scalars import (
    ONE,
    TRUTHS,
    add,
    index_array,
    integer,
    is_count,
    is_integer,
    is_truth,
    mul,
    num,
)
from .terms import Opened, Term, made, postorder

MAPS = ("permutation", "injection", "index map")
Shape = tuple[Term, ...]


def formed(t: object) -> Term:
    """The term itself, if it has a meaning.  Raises ``Refused`` with the operation if not."""
    if type(t) is not Term or not made(t):
        raise Refused(f"term: this {type(t).__name__} is no term that `make` returned")
    return _formed(t)


@cache
def _formed(t: Term) -> Term:
    for part in (*t.args, *t.shape):
        formed(part)
    need(t.op in _FORMS, f"term: there is no operation {t.op!r}")
    try:
        good = all(map(_is_length, t.shape)) and (t.op in _WITH_DATA or t.data is None)
        good = good and _FORMS[t.op](t)
    except (LookupError, TypeError, ValueError):  # too few arguments, data of another type
        good = False
    need(good, f"term: a {t.op!r} that does not fit its {len(t.args)} arguments")
    return t


def _is_length(t: Term) -> bool:
    return t.op == "space" or is_count(t)


def _is_whole(t: Term) -> bool:
    """A polynomial with integer coefficients in sizes, naturals, indices, and bound indices."""
    if t.op in ("add", "mul"):
        return all(map(_is_whole, t.args))
    return (t.op == "bound" and not t.shape) or index_array(t) is not None or is_integer(t)


def _is_name(data: Any, count: int) -> bool:
    return type(data) is tuple and len(data) == count and all(type(part) is str for part in data)


def _is_open(name: object) -> bool:
    return type(name) is Opened and all(type(part) in (str, Term) for part in name.of)


def _elementwise(t: Term) -> bool:
    count = ARITY[t.op] or max(len(t.args), 1)
    alike = len(t.args) == count and all(a.shape == t.shape and a.op != "space" for a in t.args)
    return alike and _of_one_kind(t) and (all(a.finite for a in t.args) or _stays_below(t))


def _of_one_kind(t: Term) -> bool:
    """Whether truth values stand where they must and nowhere else; a choice is of one kind."""
    kinds = [is_truth(arg) for arg in t.args]
    if t.op == "where":
        return kinds[0] and kinds[1] == kinds[2]
    if t.op == "equal":
        return kinds[0] == kinds[1]
    return all(kinds) if t.op in ("indicator", "not", "and", "or") else not any(kinds)


TAKE_INFINITY = ("add", "exp", "maximum", "where", "indicator", *TRUTHS)


def _stays_below(t: Term) -> bool:
    """Whether an operation takes minus infinity to itself or to a number, never to plus infinity.

    A product does with factors that are positive by their form, and one that may be infinite.
    """
    if t.op != "mul":
        return t.op in TAKE_INFINITY
    others = [a for a in t.args if a.finite]
    return len(others) == len(t.args) - 1 and all(BY_FORM.sign(a)[0] == 2 for a in others)


def _constant(t: Term) -> bool:
    return not t.args and not t.shape


PLAIN = frozenset((
    "num", "size", "var", "index", "add", "mul", "floor_divide", "remainder", "entry", "pick",
    "inverse",
))  # fmt: skip


def _is_plain(length: Term) -> bool:
    """Whether a length has no part that a rule may replace: that would make the index another one.

    Without this 0·[a <= b] may stand in it, and 0·k for a bound k.
    """
    parts = tuple(postorder(length))
    whole = all(
        p.op in PLAIN and (p.op != "var" or p.args or p.data[1] == "natural") for p in parts
    )
    return whole and not length.loose


def _index(t: Term) -> bool:
    (length,) = t.args
    ranged = length.op == "space" or (is_integer(length) and _is_plain(length))
    return ranged and (type(t.data) is str or _is_open(t.data)) and not t.shape


def _var(t: Term) -> bool:
    if not (_is_name(t.data, 2) or (_is_open(t.data[0]) and _is_name(t.data[1:], 1))):
        return False
    ranged = t.data[1] in MAPS
    ndim = 1 if ranged else 0 if t.data[1] == "natural" else t.ndim
    return t.ndim == ndim and len(t.args) == ranged and all(map(is_count, t.args))


def _bound(t: Term) -> bool:
    return not t.args and type(t.data) is int and t.data >= 0


def _sum(t: Term) -> bool:
    return len(t.args) == 2 and _is_length(t.args[0]) and t.shape == t.args[1].shape == ()


def _tabulate(t: Term) -> bool:
    length, body = t.args
    return t.shape == (length, *body.shape)


def _iterate(t: Term) -> bool:
    depth, start, body = t.args
    numbers = not (is_truth(start) or is_truth(body))
    return numbers and _is_whole(depth) and start.shape == body.shape == t.shape


def _entry(t: Term) -> bool:
    array, *at = t.args
    good = bool(at) and array.ndim == len(at) and not t.shape
    return good and not any(i.shape or i.op == "space" for i in at)


def _named(t: Term) -> bool:
    return t.args[0].shape == t.shape


def _broadcast(t: Term) -> bool:
    (x,) = t.args
    last = t.shape[t.ndim - x.ndim :]
    return all(n is m or n is ONE for n, m in zip(x.shape, last, strict=True))


def _permute(t: Term) -> bool:
    (x,), order = t.args, t.data
    straight = type(order) is tuple and sorted(order) == list(range(x.ndim))
    return straight and t.shape == tuple(x.shape[axis] for axis in order)


def _with(shape: Shape, axis: Any, *lengths: Term) -> Shape:
    """The shape with the axis replaced by other axes."""
    return (*shape[:axis], *lengths, *shape[axis + 1 :])


def _is_axis(axis: Any, ndim: int) -> bool:
    return type(axis) is int and 0 <= axis < ndim


def _new_axis(t: Term) -> bool:
    (x,) = t.args
    return _is_axis(t.data, t.ndim) and t.shape[t.data] is ONE and _with(t.shape, t.data) == x.shape


def _pick(t: Term) -> bool:
    x, at = t.args
    return _is_axis(t.data, x.ndim) and not at.shape and t.shape == _with(x.shape, t.data)


def _slice(t: Term) -> bool:
    (x, start), (axis, step) = t.args, t.data
    if not (_is_axis(axis, x.ndim) and type(step) is int and step > 0):
        return False
    counted = all(map(is_count, (x.shape[axis], start, t.shape[axis])))
    return counted and t.shape == _with(x.shape, axis, t.shape[axis])


def _gather(t: Term) -> bool:
    x, e = t.args
    return _is_axis(t.data, x.ndim) and e.ndim == 1 and t.shape == _with(x.shape, t.data, *e.shape)


def _are_alike(t: Term) -> bool:
    """Whether there are parts, and all are truth values or none is."""
    return len({is_truth(x) for x in t.args}) == 1


def _concat(t: Term) -> bool:
    axis: Any = t.data
    if not (_are_alike(t) and all(_is_axis(axis, x.ndim) for x in t.args)):
        return False
    if not all(is_count(x.shape[axis]) for x in t.args):
        return False
    total = integer(add(*(x.shape[axis] for x in t.args)))
    return all(t.shape == _with(x.shape, axis, total) for x in t.args)


def _stack(t: Term) -> bool:
    count = num(len(t.args))
    return (
        _is_axis(t.data, t.ndim)
        and t.shape[t.data] is count
        and _are_alike(t)
        and all(_with(t.shape, t.data) == x.shape for x in t.args)
    )


def _reduce(t: Term) -> bool:
    (x,) = t.args
    return _is_axis(t.data, x.ndim) and t.shape == _with(x.shape, t.data) and not is_truth(x)


def _matmul(t: Term) -> bool:
    x, y = t.args
    if x.shape[-1] is not y.shape[max(y.ndim - 2, 0)]:
        return False
    if is_truth(x) or is_truth(y) or not (x.finite and y.finite):
        return False
    if y.ndim == 1:
        return t.shape == x.shape[:-1]
    batch = y.shape[:-2]
    alike = len(batch) == max(x.ndim - 2, 0) and x.shape[: len(batch)] == batch
    return alike and t.shape == (*x.shape[:-1], y.shape[-1])


def _reshape(t: Term) -> bool:
    (x,), groups = t.args, t.data
    read = [axis for before, _ in groups for axis in before]
    written = [axis for _, after in groups for axis in after]
    in_order = read == list(range(x.ndim)) and written == list(range(t.ndim))
    cut = [before for before, after in groups if len(before) + len(after) != 2]
    merged = [x.shape[k] for before in cut for k in before]
    return (
        in_order
        and all(map(is_count, merged))
        and all(
            integer(mul(*(x.shape[k] for k in before)))
            is integer(mul(*(t.shape[k] for k in after)))
            for before, after in groups
        )
    )


def _call(t: Term) -> bool:
    name, batch, traits = t.data
    good = type(name) is str and type(batch) is int and type(traits) is tuple
    return (
        good
        and len(t.shape[:batch]) == batch
        and all(arg.shape[:batch] == t.shape[:batch] for arg in t.args)
    )


def _row(t: Term) -> bool:
    x, *at = t.args
    return len(at) <= x.ndim and t.shape == x.shape[len(at) :] and not any(i.shape for i in at)


def _is_in(t: Term) -> bool:
    x, e = t.args
    return e.ndim == 1 and t.shape == x.shape


def _inverse(t: Term) -> bool:
    """Of a map of indices to themselves: others have no inverse below the number they map to."""
    (sigma,) = t.args
    to_itself = sigma.op == "var" and sigma.data[1] in MAPS and sigma.args == sigma.shape
    return t.shape == sigma.shape and (to_itself or sigma.op == "inverse")


_FORMS: dict[str, Callable[[Term], bool]] = dict.fromkeys(ARITY, _elementwise) | {
    "num": lambda t: _constant(t) and type(t.data) is Fraction,
    "size": lambda t: _constant(t) and _is_name(t.data, 2),
    "space": lambda t: _constant(t) and _is_name(t.data, 2),
    "pi": _constant,
    "minus infinity": _constant,
    "power": lambda t: _elementwise(t) and type(t.data) is int,
    "index": _index,
    "var": _var,
    "bound": _bound,
    "sum": _sum,
    "tabulate": _tabulate,
    "iterate": _iterate,
    "entry": _entry,
    "named": _named,
    "broadcast": _broadcast,
    "permute": _permute,
    "new axis": _new_axis,
    "pick": _pick,
    "slice": _slice,
    "gather": _gather,
    "concat": _concat,
    "stack": _stack,
    "reduce": _reduce,
    "matmul": _matmul,
    "reshape": _reshape,
    "call": _call,
    "row": _row,
    "is in": lambda t: _is_in(t) and not t.shape,
    "isin": _is_in,
    "inverse": _inverse,
    "eye": lambda t: t.args * 2 == t.shape and len(t.args) == 1,
    "arange": lambda t: t.args == t.shape and len(t.args) == 1 and is_count(t.args[0]),
}
_WITH_DATA = frozenset((
    "num", "size", "space", "index", "var", "bound", "power", "named", "permute", "new axis",
    "pick", "slice", "gather", "concat", "stack", "reduce", "reshape", "call",
))  # fmt: skip
