"""The entries of small matrices, with what is certain of them worked out: [0 = 1] is 0."""

from __future__ import annotations

from ..scalars import ONE, ZERO, add, mul, num, number_of
from ..terms import Term, make

__all__ = ["folded"]

_HOLDS = {
    "equal": lambda a, b: a == b, "less": lambda a, b: a < b, "less_equal": lambda a, b: a <= b,
}  # fmt: skip


def folded(t: Term) -> Term:
    """The number, with literal comparisons decided and zeros and ones dropped.

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
    if t.op not in _HOLDS or None in values:
        return None
    return bool(_HOLDS[t.op](*values))
