"""The laws of code, each stated once: in words, and as array code that every method uses."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from . import added_masks, attention, given_masks, hidden_keys, masks, rotary, states, tables
from .law import Formula, Law, called, key_calls

__all__ = ["FORMER", "LAWS", "Formula", "Law", "called", "key_calls", "laws_of", "renamed"]

LAWS: tuple[Law, ...] = (
    states.FINITE,  # for all code; if it is violated, nothing else is measured
    *rotary.LAWS,
    *attention.LAWS,
    *masks.LAWS,
    *hidden_keys.LAWS,
    *added_masks.LAWS,
    *given_masks.LAWS,
    *states.LAWS,
    *tables.LAWS,
)


@cache
def laws_of(kind: str) -> tuple[Law, ...]:
    """Return the laws that apply to this kind of code."""
    return tuple(law for law in LAWS if kind in law.about)


# Former ids of laws, which are still accepted.
FORMER = {"calls-forget": "stateless", "inputs-stay": "no-mutation", "turned-once": "rotated-once"}


def renamed(ids: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return these ids, each once and by its current name, and a line for each renamed law.

    >>> renamed(["inputs-stay", "norm", "no-mutation"])
    (('no-mutation', 'norm'), ('the law inputs-stay is now called no-mutation',))
    """
    asked = tuple(dict.fromkeys(ids))
    notes = tuple(f"the law {old} is now called {FORMER[old]}" for old in asked if old in FORMER)
    return tuple(dict.fromkeys(FORMER.get(one, one) for one in asked)), notes
