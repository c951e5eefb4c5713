"""Signs that follow from the form of a number."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from ..scalars import ZERO, always_less, number_of
from ..terms import Term, free, instantiate
from .base import NOTHING, Assumption, fresh

__all__ = ["sign"]


Sign = tuple[int, frozenset[Assumption]]


@cache
def sign(t: Term) -> Sign:
    """2 if t > 0 is certain from its form, 1 if t >= 0 is, 0 if neither; with assumptions."""
    value = number_of(t)
    if value is not None:
        return (2 if value > 0 else 1 if value == 0 else 0), NOTHING
    array = t.args[0] if t.op == "entry" else t
    if array.op == "var" and array.data[1] == "positive":
        return 2, frozenset({("positive", array)})
    return _SIGNS[t.op](t) if t.op in _SIGNS else (0, NOTHING)


def _indicator(t: Term) -> Sign:
    c = t.args[0]
    holds = c.op in ("equal", "less_equal") and c.args[0] is c.args[1]
    return (2 if holds else 1), NOTHING


def _power(t: Term) -> Sign:
    inner, assumed = sign(t.args[0])
    if not t.finite or t.data % 2:
        return (inner if t.finite else 0), assumed
    return max(inner, 1), assumed


def _root(t: Term) -> Sign:
    return sign(t.args[0]) if t.finite else (0, NOTHING)


def _absolute(t: Term) -> Sign:
    inner, assumed = sign(t.args[0])
    return (max(inner, 1) if t.finite else 0), assumed


def _sum(t: Term) -> Sign:
    """A sum of terms >= 0 is positive if one is: any, or the one at an index at hand."""
    length, body = t.args
    inner, assumed = sign(instantiate(body, fresh(length, t)))
    if inner == 1:
        for at in free(t):
            if at.op == "index" and at.args[0] is length:
                here, used = sign(instantiate(body, at))
                if here == 2:
                    return 2, assumed | used
    return (inner if always_less(ZERO, length) else min(inner, 1)), assumed


def _add(t: Term) -> Sign:
    parts = [sign(arg) for arg in t.args]
    signs = [s for s, _ in parts]
    return (max(signs) if min(signs) else 0), NOTHING.union(*(a for _, a in parts))


def _mul(t: Term) -> Sign:
    parts = [sign(arg) for arg in t.args]
    return min(s for s, _ in parts), NOTHING.union(*(a for _, a in parts))


_SIGNS: dict[str, Callable[[Term], Sign]] = {
    "size": lambda _: (2, NOTHING),
    "index": lambda _: (1, NOTHING),
    "exp": lambda t: (2 if t.args[0].finite else 1, NOTHING),
    "indicator": _indicator,
    "power": _power,
    "sqrt": _root,
    "abs": _absolute,
    "sum": _sum,
    "add": _add,
    "mul": _mul,
}
