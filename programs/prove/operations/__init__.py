"""Readings of the operations of a graph, each as array code on terms."""

from __future__ import annotations

from ...aten import ROWS
from . import creation, elementwise, lookups, order, pieces, shapes, sums, terms, writes  # noqa: F401
from .reading import KINDS, READINGS, Notes, Pair, Unread, noted, reads

__all__ = ["KINDS", "READINGS", "Notes", "Pair", "Unread", "noted"]

for _name, _row in ROWS.items():
    reads(_name, kind=_row.kind)(_row.of(terms))
