"""Well-formed terms: the right number of arguments, of the right kinds and shapes.

``make`` can be called to add a matrix and a number, or for a table of three rows with a shape of
two.  Such a term has no meaning, and two rules could read it differently and so equate unequal
numbers.  Therefore the kernel checks every term it handles with :func:`formed`.

Lengths are polynomials in sizes: an axis never depends on an index.  An axis may also be a
probability space; the only operation over its outcomes is the sum, an expectation.  An index
ranges below an integer, and a stack of layers has one layer for each natural number below its
depth.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

from .meaning import ARITY, replaced
from .rules.base import Refused, need
from .rules.signs import BY_FORM
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
from .terms import Opened, Term, is_interned, postorder

MAPS = ("permutation", "injection", "index map")


def formed(t: object) -> Term:
    """Return the term if it is well-formed; raise ``Refused``, naming the operation, if not."""
    if type(t) is not Term or not is_interned(t):
        raise Refused(f"term: this {type(t).__name__} is not a term made by `make`")
    return _formed(t)


@cache
def _formed(t: Term) -> Term:
    for part in (*t.args, *t.shape):
        formed(part)
    need(t.op in _FORMS, f"term: there is no operation {t.op!r}")
    try:
        good = all(map(_is_length, t.shape)) and (t.op in _WITH_DATA or t.data is None)
        good = good and _FORMS[t.op](t, *t.args)
    except (LookupError, TypeError, ValueError):  # too few arguments, data of another type
        good = False
    need(good, f"term: {t.op!r} does not fit its {len(t.args)} arguments")
    return t


def _is_length(t: Term) -> bool:
    return t.op == "space" or is_count(t)


def _is_whole(t: Term) -> bool:
    """Whether t is an integer polynomial in sizes, naturals, indices and bound indices."""
    if t.op in ("add", "mul"):
        return all(map(_is_whole, t.args))
    return (t.op == "bound" and not t.shape) or index_array(t) is not None or is_integer(t)


def _is_name(data: Any, count: int) -> bool:
    return type(data) is tuple and len(data) == count and all(type(part) is str for part in data)


def _is_open(name: object) -> bool:
    return type(name) is Opened and all(type(part) in (str, Term) for part in name.of)


def _elementwise(t: Term, *args: Term) -> bool:
    count = ARITY[t.op] or max(len(args), 1)
    alike = len(args) == count and all(a.shape == t.shape and a.op != "space" for a in args)
    return alike and _kinds_fit(t) and (all(a.finite for a in args) or _never_plus_infinity(t))


def _kinds_fit(t: Term) -> bool:
    """Whether truth values occur exactly where required, and a choice has branches of one kind."""
    kinds = [is_truth(arg) for arg in t.args]
    if t.op == "where":
        return kinds[0] and kinds[1] == kinds[2]
    if t.op == "equal":
        return kinds[0] == kinds[1]
    return all(kinds) if t.op in ("indicator", "not", "and", "or") else not any(kinds)


TAKE_INFINITY = ("add", "exp", "maximum", "where", "indicator", *TRUTHS)


def _never_plus_infinity(t: Term) -> bool:
    """Whether an operation maps minus infinity to itself or to a number, never to plus infinity.

    A product does if one factor may be infinite and all others are positive by their form.
    """
    if t.op != "mul":
        return t.op in TAKE_INFINITY
    others = [a for a in t.args if a.finite]
    return len(others) == len(t.args) - 1 and all(BY_FORM.sign(a)[0] == 2 for a in others)


PLAIN = frozenset((
    "num", "size", "var", "index", "add", "mul", "floor_divide", "remainder", "entry", "pick",
    "inverse",
))  # fmt: skip


def _is_plain(length: Term) -> bool:
    """Whether no rule can rewrite a part of a length, which would change the index's identity.

    Without this check, 0·[a <= b], or 0·k for a bound k, could occur in it.
    """
    parts = tuple(postorder(length))
    whole = all(
        p.op in PLAIN and (p.op != "var" or p.args or p.data[1] == "natural") for p in parts
    )
    return whole and not length.loose


def _index(t: Term, length: Term) -> bool:
    ranged = length.op == "space" or (is_integer(length) and _is_plain(length))
    return ranged and (type(t.data) is str or _is_open(t.data)) and not t.shape


def _var(t: Term, *below: Term) -> bool:
    if not (_is_name(t.data, 2) or (_is_open(t.data[0]) and _is_name(t.data[1:], 1))):
        return False
    ranged = t.data[1] in MAPS
    ndim = 1 if ranged else 0 if t.data[1] == "natural" else t.ndim
    return t.ndim == ndim and len(below) == ranged and all(map(is_count, below))


def _iterate(t: Term, depth: Term, start: Term, body: Term) -> bool:
    numbers = not (is_truth(start) or is_truth(body))
    return numbers and _is_whole(depth) and start.shape == body.shape == t.shape


def _entry(t: Term, array: Term, *at: Term) -> bool:
    numbers = not any(i.shape or i.op == "space" for i in at)
    return bool(at) and array.ndim == len(at) and not t.shape and numbers


def _row(t: Term, x: Term, *at: Term) -> bool:
    return len(at) <= x.ndim and t.shape == x.shape[len(at) :] and not any(i.shape for i in at)


def _inverse(t: Term, sigma: Term) -> bool:
    """Only a map of an index range to itself has an inverse whose range is known."""
    to_itself = sigma.op == "var" and sigma.data[1] in MAPS and sigma.args == sigma.shape
    return t.shape == sigma.shape and (to_itself or sigma.op == "inverse")


def _is_axis(axis: Any, ndim: int) -> bool:
    return type(axis) is int and 0 <= axis < ndim


def _broadcast(t: Term, x: Term) -> bool:
    last = t.shape[t.ndim - x.ndim :]
    return all(n is m or n is ONE for n, m in zip(x.shape, last, strict=True))


def _permute(t: Term, x: Term) -> bool:
    straight = type(t.data) is tuple and sorted(t.data) == list(range(x.ndim))
    return straight and t.shape == tuple(x.shape[axis] for axis in t.data)


def _new_axis(t: Term, x: Term) -> bool:
    good = _is_axis(t.data, t.ndim) and t.shape[t.data] is ONE
    return good and replaced(t.shape, t.data) == x.shape


def _pick(t: Term, x: Term, at: Term) -> bool:
    return _is_axis(t.data, x.ndim) and not at.shape and t.shape == replaced(x.shape, t.data)


def _slice(t: Term, x: Term, start: Term) -> bool:
    axis, step = t.data
    if not (_is_axis(axis, x.ndim) and type(step) is int and step > 0):
        return False
    counted = all(map(is_count, (x.shape[axis], start, t.shape[axis])))
    return counted and t.shape == replaced(x.shape, axis, t.shape[axis])


def _gather(t: Term, x: Term, e: Term) -> bool:
    good = _is_axis(t.data, x.ndim) and e.ndim == 1
    return good and t.shape == replaced(x.shape, t.data, *e.shape)


def _have_one_kind(parts: tuple[Term, ...]) -> bool:
    """Whether there is at least one part, and either all or none are truth values."""
    return len({is_truth(x) for x in parts}) == 1


def _concat(t: Term, *parts: Term) -> bool:
    axis: Any = t.data
    if not (_have_one_kind(parts) and all(_is_axis(axis, x.ndim) for x in parts)):
        return False
    total = integer(add(*(x.shape[axis] for x in parts)))
    fits = all(t.shape == replaced(x.shape, axis, total) for x in parts)
    return fits and all(is_count(x.shape[axis]) for x in parts)


def _stack(t: Term, *parts: Term) -> bool:
    good = _is_axis(t.data, t.ndim) and t.shape[t.data] is num(len(parts)) and _have_one_kind(parts)
    return good and all(replaced(t.shape, t.data) == x.shape for x in parts)


def _reduce(t: Term, x: Term) -> bool:
    return _is_axis(t.data, x.ndim) and t.shape == replaced(x.shape, t.data) and not is_truth(x)


def _matmul(t: Term, x: Term, y: Term) -> bool:
    if is_truth(x) or is_truth(y) or not (x.finite and y.finite):
        return False
    batch, column = y.shape[: max(y.ndim - 2, 0)], y.shape[-1:] if y.ndim > 1 else ()
    joined = x.shape[-1] is y.shape[len(batch)]
    alike = y.ndim == 1 or (len(batch) == max(x.ndim - 2, 0) and x.shape[: len(batch)] == batch)
    return joined and alike and t.shape == (*x.shape[:-1], *column)


def _reshape(t: Term, x: Term) -> bool:
    groups: Any = t.data
    read = [axis for before, _ in groups for axis in before]
    written = [axis for _, after in groups for axis in after]
    in_order = read == list(range(x.ndim)) and written == list(range(t.ndim))
    cut = [before for before, after in groups if len(before) + len(after) != 2]
    return (
        in_order
        and all(is_count(x.shape[k]) for before in cut for k in before)
        and all(
            integer(mul(*(x.shape[k] for k in before)))
            is integer(mul(*(t.shape[k] for k in after)))
            for before, after in groups
        )
    )


def _call(t: Term, *args: Term) -> bool:
    name, batch, traits = t.data
    good = type(name) is str and type(batch) is int and type(traits) is tuple
    outer = t.shape[:batch]
    return good and len(outer) == batch and all(arg.shape[:batch] == outer for arg in args)


_FORMS: dict[str, Callable[..., bool]] = dict.fromkeys(ARITY, _elementwise) | {
    "num": lambda t: not t.shape and type(t.data) is Fraction,
    "size": lambda t: not t.shape and _is_name(t.data, 2),
    "space": lambda t: not t.shape and _is_name(t.data, 2),
    "pi": lambda t: not t.shape,
    "minus infinity": lambda t: not t.shape,
    "power": lambda t, x: _elementwise(t, x) and type(t.data) is int,
    "index": _index,
    "var": _var,
    "bound": lambda t: type(t.data) is int and t.data >= 0,
    "sum": lambda t, length, body: _is_length(length) and t.shape == body.shape == (),
    "tabulate": lambda t, length, body: t.shape == (length, *body.shape),
    "iterate": _iterate,
    "entry": _entry,
    "named": lambda t, body, *_: t.shape == body.shape,
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
    "is in": lambda t, x, e: e.ndim == 1 and t.shape == x.shape == (),
    "isin": lambda t, x, e: e.ndim == 1 and t.shape == x.shape,
    "inverse": _inverse,
    "eye": lambda t, n: t.shape == (n, n),
    "arange": lambda t, n: t.shape == (n,) and is_count(n),
}
"""What each operation requires of a term and its arguments; the signature fixes their number."""
_WITH_DATA = frozenset((
    "num", "size", "space", "index", "var", "bound", "power", "named", "permute", "new axis",
    "pick", "slice", "gather", "concat", "stack", "reduce", "reshape", "call",
))  # fmt: skip
