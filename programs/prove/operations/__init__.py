"""The operations of a graph, each read as array code on terms."""

from __future__ import annotations

from . import (  # noqa: F401 (each registers what it reads)
    at_places,
    attention,
    complex_numbers,
    creation,
    elementwise,
    flexible,
    joins,
    places,
    products,
    reductions,
    shapes,
    sizes,
)
from .reading import READINGS, Notes, Pair, Unread, noted

__all__ = ["READINGS", "Notes", "Pair", "Unread", "noted"]
