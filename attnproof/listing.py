"""``attnproof list``: theorems by subject, and documents, in plain text and no heavy library."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .catalogue import Catalogue
    from .ledger import Ledger

WORDS = {"proved": "", "refuted": " (false, refuted)", "ill-typed": " (false, ill-typed)"}


def list_catalogue(catalogue: Catalogue, ledger: Ledger) -> str:
    """One line for a subject or a document, two for a theorem, and what is broken, with errors."""
    lines: list[str] = []
    for subject, entries in groupby(catalogue.entries, lambda entry: entry.subject):
        lines.append(subject)
        for entry in entries:
            title = entry.theorem.title + WORDS[entry.theorem.expected]
            lines += [f"  {entry.id}", f"      {title}"]
    if ledger.documents:
        lines.append("claims of the documents (`attnproof claims`)")
    for document in ledger.documents:
        count = sum(claim.document == document.id for claim in ledger.claims)
        lines.append(f"  {document.id}  {document.title} ({count} claim{'s' * (count != 1)})")
    lines.append("encodings and the laws they obey (`attnproof list --encodings`)")
    for broken in catalogue.broken:
        lines += [f"! broken: {broken.source.path}", f"      {broken.error}"]
    for wrong in ledger.broken:
        lines += [f"! broken: {wrong.file}", f"      {wrong.error}"]
    return "\n".join(lines)
