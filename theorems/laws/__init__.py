"""The laws of code, each said once: in words, and as array code that every method reads."""

from . import attention, given_masks, masks, rotary, states, tables
from .law import Formula, Law, called, of_keys

__all__ = ["LAWS", "Formula", "Law", "called", "laws_of", "of_keys"]

LAWS: tuple[Law, ...] = (
    states.FINITE,  # of all code; where it is broken nothing else is measured
    *rotary.LAWS,
    *attention.LAWS,
    *masks.LAWS,
    *given_masks.LAWS,
    *states.LAWS,
    *tables.LAWS,
)


def laws_of(kind: str) -> tuple[Law, ...]:
    """The laws that are asked of this kind of code."""
    return tuple(law for law in LAWS if kind in law.about)
