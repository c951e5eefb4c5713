"""``attnproof list``: subjects, ids and titles, in plain text and without a heavy library."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .catalogue import Catalogue

__all__ = ["list_catalogue"]


def list_catalogue(catalogue: Catalogue) -> str:
    """One line for a subject, two for a theorem, and the broken files with their errors."""
    lines: list[str] = []
    for subject, entries in groupby(catalogue.entries, lambda entry: entry.subject):
        lines.append(subject)
        for entry in entries:
            false = "" if entry.theorem.expected == "proved" else " (false, refuted)"
            lines += [f"  {entry.id}", f"      {entry.theorem.title}{false}"]
    for broken in catalogue.broken:
        lines += [f"! broken: {broken.source.path}", f"      {broken.error}"]
    return "\n".join(lines)
