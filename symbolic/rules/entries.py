"""Rules that unfold definitions, entries of arrays and stacks of layers, and tabulate arrays."""

from __future__ import annotations

from ..meaning import NoMeaning, entry_of
from ..scalars import ZERO, add, always_less, below, entry, integer, num
from ..terms import Term, bind, instantiate, make, opened
from .base import NOTHING, Refused, Result, need


def definition(t: Term) -> Result:
    """A named term equals its body."""
    need(t.op == "named", "not a named term", t)
    return t.args[0], NOTHING


def unfold(t: Term) -> Result:
    """The entry of a computed array, as given by the table of meanings (``meaning.py``)."""
    need(not t.shape, "not a number", t)
    array, *at = t.args if t.op == "entry" else (t,)
    for i, length in zip(at, array.shape, strict=True):
        need(below(i, length), "the index may leave its axis", i, length)
    try:
        return entry_of(array, at), NOTHING
    except NoMeaning as missing:
        raise Refused(f"{missing} has no entry rule", t) from None


OUTERMOST = ("add", "mul", "power", "exp", "log", "sqrt", "abs", "tanh", "cos", "sin", "maximum")


def written_out(t: Term) -> Term:
    """A number with definitions and entries of computed arrays unfolded."""
    if t.shape:
        return t
    if t.op == "sum":
        j = opened(t.args[0], t)
        return make("sum", (t.args[0], bind(written_out(instantiate(t.args[1], j)), j)))
    if t.op in OUTERMOST:
        return make(t.op, tuple(map(written_out, t.args)), t.data)
    try:
        found, _ = unfold(t)
    except Refused:
        return t
    return t if found is t else written_out(found)


def tabulated(t: Term) -> Result:
    """An array equals the table of its entries."""
    need(t.shape and t.op != "tabulate", "not an array to tabulate", t)
    at = [opened(length, t, f"t{k}") for k, length in enumerate(t.shape)]
    body = entry(t, *at)
    for axis in range(len(at) - 1, -1, -1):
        body = make("tabulate", (t.shape[axis], bind(body, at[axis])), shape=t.shape[axis:])
    return body, NOTHING


def layer(t: Term) -> Result:
    """A stack of 0 layers is its start; one of m + 1 layers is layer m applied to m layers."""
    need(t.op == "iterate", "not a stack of layers", t)
    depth, start, body = t.args
    if integer(depth) is ZERO:
        return start, NOTHING
    m = integer(add(depth, num(-1)))
    need(always_less(num(-1), m), "it may have no last layer", depth)
    return instantiate(body, m, make("iterate", (m, start, body), shape=t.shape)), NOTHING
