"""Definitions unfolded, entries of arrays read off the table of meanings, tables."""

from __future__ import annotations

from ..meaning import NoMeaning, entry_of
from ..scalars import below, entry
from ..terms import Term, bind, make, opened
from .base import NOTHING, Refused, Result, need


def definition(t: Term) -> Result:
    """A named term is its body."""
    need(t.op == "named", "not a named term", t)
    return t.args[0], NOTHING


def unfold(t: Term) -> Result:
    """The entry of a computed array, by the table of meanings."""
    need(not t.shape, "not a number", t)
    array, *at = t.args if t.op == "entry" else (t,)
    for i, length in zip(at, array.shape, strict=True):
        need(below(i, length), "the index may leave its axis", i, length)
    try:
        return entry_of(array, at), NOTHING
    except NoMeaning as missing:
        raise Refused(f"{missing} has no entry rule", t) from None


def tabulated(t: Term) -> Result:
    """An array is the table of its entries."""
    need(t.shape and t.op != "tabulate", "not an array to tabulate", t)
    at = [opened(length, t, f"t{k}") for k, length in enumerate(t.shape)]
    body = entry(t, *at)
    for axis in range(len(at) - 1, -1, -1):
        body = make("tabulate", (t.shape[axis], bind(body, at[axis])), shape=t.shape[axis:])
    return body, NOTHING
