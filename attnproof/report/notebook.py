"""A proof inside a page that is not ours: a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .page import rendered

if TYPE_CHECKING:
    from ..records import ProofRecord


def proof_html(record: ProofRecord) -> str:
    """The page of a statement: its verdict with every condition, its proof, what speaks against it.

    Nothing is fetched, and no style leaves it.
    """
    from ..page import against_it

    return rendered("proof.html.j2", t=record, against_it=against_it)
