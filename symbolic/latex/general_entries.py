"""Which arrays must be printed by their general entry, and what that entry is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ..meaning import ELEMENTWISE, entry_of
from ..scalars import ONE, ZERO, add, entry, mul, num, number_of
from ..terms import Term, bind, free, instantiate, make, postorder

_COMPARE = {
    "equal": lambda a, b: a == b,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
}


def folded(t: Term) -> Term:
    """Return a number with literal comparisons decided and zeros and ones dropped.

    >>> from ..scalars import boolean
    >>> folded(mul(add(make("indicator", (boolean("equal", ONE, ONE),)), ZERO), num(3)))
    3
    """
    if t.op == "indicator":
        held = _decided(t.args[0])
        return t if held is None else ONE if held else ZERO
    if t.op == "where":
        held = _decided(t.args[0])
        return t if held is None else folded(t.args[1 if held else 2])
    if t.op == "add":
        parts = [folded(a) for a in t.args]
        known = sum((a.data for a in parts if a.op == "num"), ZERO.data)
        rest = [a for a in parts if a.op != "num"]
        return add(*rest, *([num(known)] if known or not rest else []))
    if t.op == "mul":
        parts = [folded(a) for a in t.args]
        if ZERO in parts:
            return ZERO
        return mul(*(a for a in parts if a is not ONE))
    if t.op == "power" and isinstance(t.data, int) and t.data > 0:
        base = folded(t.args[0])
        value = number_of(base)
        return make("power", (base,), t.data) if value is None else num(value**t.data)
    return t


def _decided(t: Term) -> bool | None:
    values = [number_of(a) for a in t.args]
    if t.op not in _COMPARE or None in values:
        return None
    return bool(_COMPARE[t.op](*values))


SMALL = 4
"""The longest axis of a matrix that is written out."""
_LETTERS = {
    "tokens": "ijkmpq",
    "features": "abcuvwfgrs",  # e is the base of the exponential
    "heads": "hgu",
    "blocks": "bcfu",
    "layers": "tsu",
    "size": "ijkabc",
}
_PUSHED = ELEMENTWISE | {
    "arange",
    "broadcast",
    "eye",
    "gather",
    "isin",
    "new axis",
    "permute",
    "pick",
    "reduce",
    "slice",
    "tabulate",
}
_CURVED = frozenset(
    (
        "abs",
        "equal",
        "exp",
        "floor_divide",
        "indicator",
        "less",
        "less_equal",
        "log",
        "power",
        "remainder",
        "sqrt",
    )
)


def letter(length: Term, taken: Iterable[Term]) -> str:
    """Return an unused letter for an index of that length, chosen by the role of the length."""
    roles = sorted(v.data[1] for v in free(length) if v.op == "size")
    letters = _LETTERS.get(roles[0] if roles else "size", "ijkabc")
    return letter_of(letters + "ijkabcuvwxyz", names_of(taken))


def letter_of(letters: str, names: Collection[str]) -> str:
    """Return the first letter that is not among the names, numbered if all of them are."""
    numbered = (f"{c}{k}" for k in range(1, 99) for c in letters)
    return next(c for source in (letters, numbered) for c in source if c not in names)


def names_of(terms: Iterable[Term]) -> set[str]:
    """Return the names of variables, indices and sizes."""
    return {str(v.data if v.op == "index" else v.data[0]) for v in terms}


def names_in(*terms: Term) -> frozenset[Term]:
    """Return everything named in the terms, functions included."""
    found = {v for t in terms for v in free(t)}
    calls = (part for t in terms for part in postorder(t) if part.op == "call")
    return frozenset(found | {make("var", (), (part.data[0], "function")) for part in calls})


def core(t: Term) -> Term:
    """Return the array without axes added by broadcasting."""
    while t.op in ("broadcast", "new axis"):
        t = t.args[0]
    return t


def inner_axes(t: Term) -> frozenset[int]:
    """Return the axes of length 1 that were inserted between others and must stay visible."""
    kept = list(range(t.ndim))
    while t.op == "new axis":
        axis = t.data
        assert isinstance(axis, int)
        del kept[axis]
        t = t.args[0]
    return frozenset(k for k in range(kept[0], kept[-1]) if k not in kept) if kept else frozenset()


def scalar(t: Term) -> bool:
    """Whether the array is a number, possibly repeated."""
    return core(t).ndim == 0


def small(t: Term) -> bool:
    """Whether the array is a vector or matrix small enough to be written out."""
    return 0 < t.ndim < 3 and all(1 < (number_of(n) or 0) <= SMALL for n in t.shape)


def constant(t: Term) -> bool:
    """Whether all entries of the array are equal by its form."""
    t = core(t)
    return not t.ndim or (t.op in ("add", "mul", "power") and all(map(constant, t.args)))


def _plainly_repeated(t: Term) -> bool:
    """Whether broadcasting only added leading axes to an unchanged matrix."""
    matrix = t.shape[-2:]
    while t.op in ("broadcast", "new axis"):
        axis = t.data
        if isinstance(axis, int) and axis >= t.ndim - 2:
            return False
        t = t.args[0]
        if t.ndim < 2 or t.shape[-2:] != matrix:
            return False
    return True


def _repeated(arg: Term) -> bool:
    """Whether leaving out the broadcasting of an argument would change its meaning."""
    if scalar(arg) or arg.op not in ("broadcast", "new axis"):
        return False
    return not _plainly_repeated(arg)


def needs_entries(t: Term) -> bool:
    """Whether matrix notation would hide how an array is computed."""
    if not t.ndim:
        return False
    if t.op in ELEMENTWISE or t.op == "indicator":
        parts = [a for a in t.args if not scalar(a)]
        if t.op == "power" and isinstance(t.data, int) and not parts:
            return False
        if (t.op in _CURVED and parts) or any(_repeated(a) for a in parts):
            return True
        return any(_inside(core(a), t.op) for a in parts)
    if t.op == "call":
        count = t.data[1]
        entrywise = (core(a) for a in t.args if a.ndim == count)
        return bool(count) and any((*map(_repeated, t.args), *map(needs_entries, entrywise)))
    if t.op == "pick":
        return needs_entries(core(t.args[0]))
    if t.op == "matmul":
        return _random(t)
    if t.op != "reduce":
        return False
    body = core(t.args[0])
    return body.op in ELEMENTWISE or needs_entries(body)


def _random(t: Term) -> bool:
    """Whether a matrix product involves random arrays, whose outcomes are not printed."""
    return any(n.op == "space" for arg in t.args for n in arg.shape)


def _inside(part: Term, op: str) -> bool:
    if op == "mul" and part.op == "power":
        return True
    return part.op != "reduce" and needs_entries(part)


def opened(array: Term, at: Sequence[Term]) -> Term:
    """Return ``array[at]`` with the indices moved inwards to matrices, names and sums."""
    if not array.ndim:
        return _carried(array)
    if array.op == "stack" and number_of(at[array.data]) is not None:
        axis = array.data
        assert isinstance(axis, int)
        chosen = int(number_of(at[axis]) or 0)
        return opened(array.args[chosen], (*at[:axis], *at[axis + 1 :]))
    if (array.op == "call" and array.data[1]) or array.op in _PUSHED or _summed(array):
        return _carried(entry_of(array, at))
    return entry(array, *at)


def _summed(array: Term) -> bool:
    return array.op == "matmul" and _random(array)


def _carried(t: Term) -> Term:
    if t.op == "entry" and (t.args[0].op in _PUSHED | {"stack"} or _summed(t.args[0])):
        return opened(t.args[0], t.args[1:])
    if t.op == "entry" and t.args[0].op == "row":
        return t
    if t.op == "sum":
        variable = make("index", (t.args[0],), letter(t.args[0], free(t)))
        body = _carried(instantiate(t.args[1], variable))
        return make("sum", (t.args[0], bind(body, variable)))
    if not t.args or t.shape or t.op in ("entry", "size", "index", "var", "call"):
        return t
    return make(t.op, tuple(_carried(a) for a in t.args), t.data)
