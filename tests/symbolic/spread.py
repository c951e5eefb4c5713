"""The catalogue in three parts, each spread over all subjects: one part for each slow test.

Every theorem is in one part.  That each has the verdict it is expected to have is asked of the
whole catalogue elsewhere, in the ledger of the documents.
"""

from __future__ import annotations

from attnproof.theorem_runs.catalogue import load_catalogue

CATALOGUE = {
    entry.id: entry.theorem
    for entry in load_catalogue().entries
    if entry.theorem.expected != "ill-typed"
}


def part(number: int, left_out: dict[str, str]) -> list[str]:
    """The names of every third theorem, without those that are left out for a reason."""
    assert set(left_out) <= set(CATALOGUE)
    return [name for name in list(CATALOGUE)[number::3] if name not in left_out]
