"""``attnproof show``: check one theorem or one claim and print its page."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from .claim_page import claim_page
from .page import kernel_steps, page
from .records import BrokenFile
from .runner import check, run

if TYPE_CHECKING:
    from .catalogue import Catalogue, Source
    from .checking import Options
    from .ledger import Ledger

__all__ = ["show_claim", "show_theorem"]


def show_theorem(chosen: Catalogue, options: Options, *, steps: bool) -> int:
    """Print the page of one theorem; the exit code."""
    from .symbolic.prove import decide

    for broken in chosen.broken:
        return _told(broken.source, broken.error)
    (entry,) = chosen.entries
    outcome = check(entry.theorem, entry.source, options)
    if isinstance(outcome, BrokenFile):
        return _told(entry.source, outcome.error)
    wanted = steps and outcome.verdict != "ill-typed"
    print(page(outcome, kernel_steps(decide(entry.theorem.statement)) if wanted else ()))
    return 0 if outcome.ok else 1


def show_claim(catalogue: Catalogue, ledger: Ledger, options: Options) -> int:
    """Print the page of one claim; the exit code."""
    results = run(catalogue.having(ledger.theorems), options, ledger=ledger)
    for claim in results.claims:
        print(claim_page(claim, results))
    for broken in results.broken:
        print(f"attnproof: {broken.file}: {broken.error}", file=sys.stderr)
    return 0 if results.ok else 1


def _told(source: Source, error: str) -> int:
    print(f"attnproof: {source.path}: {error}", file=sys.stderr)
    return 1
