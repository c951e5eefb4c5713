"""``attnproof show``: check one theorem or one claim and print its page."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .claim_page import claim_page
from .faults import FAULT, broken_by, exit_code
from .page import kernel_steps, page
from .records import BrokenFile
from .runner import check, run
from .terminal_text import bar

if TYPE_CHECKING:
    from .catalogue import Broken, Catalogue, Source
    from .checking import Options
    from .ledger import Ledger
    from .runner import Outcome

__all__ = ["show_claim", "show_sides", "show_theorem"]


def show_theorem(chosen: Catalogue, options: Options, *, steps: bool) -> int:
    """Print the page of one theorem; the exit code."""
    from .symbolic.prove import decide

    for broken in chosen.broken:
        return _told(broken.source, broken)
    (entry,) = chosen.entries
    with _bar([entry.id]):
        outcome = check(entry.theorem, entry.source, options)
    if isinstance(outcome, BrokenFile):
        return _told(entry.source, outcome)
    wanted = steps and outcome.verdict != "ill-typed"
    print(page(outcome, kernel_steps(decide(entry.theorem.statement)) if wanted else ()))
    return exit_code([outcome], 0 if outcome.ok else 1)


def show_sides(chosen: Catalogue) -> int:
    """Print both sides of every conclusion as SymPy expressions at small sizes; the exit code."""
    from .symbolic.expressions.array import entry_lines
    from .symbolic.expressions.deriving import sides
    from .symbolic.gate import require_read

    for broken in chosen.broken:
        return _told(broken.source, broken)
    (entry,) = chosen.entries
    try:
        statement = entry.theorem.statement
        require_read(statement)
        found = () if statement.code is None else sides(statement, statement.code)
    except Exception as error:  # noqa: BLE001 (whatever it is, it is told of this file)
        told = broken_by(error, entry.source.path)
        return _told(entry.source, BrokenFile(file=entry.source.label, **told))
    print(entry.theorem.title)
    for side in found:
        print("\n".join([side.says] * bool(side.says) + [f"  {t}" for t in entry_lines(side)]))
    if not found:
        print("SymPy has no expressions for what is given here")
    return 0 if found else 1


def show_claim(catalogue: Catalogue, ledger: Ledger, options: Options) -> int:
    """Print the page of one claim; the exit code."""
    needed = catalogue.having(ledger.theorems)
    coming = [*(entry.id for entry in needed.entries), *ledger.demonstrations]
    with _bar(coming) as tell:
        results = run(needed, options, tell=tell, ledger=ledger)
    for claim in results.claims:
        print(claim_page(claim, results))
    for broken in results.broken:
        print(f"attnproof: {broken.file}: {broken.error}", file=sys.stderr)
    return exit_code([results], 0 if results.ok else 1)


@contextmanager
def _bar(names: Sequence[str]) -> Iterator[Callable[[Outcome], None]]:
    """A bar while statements are checked, most of which is measuring; yields what moves it on."""
    if not sys.stderr.isatty():  # rich would leave an empty line there
        yield lambda _: None
        return
    coming = iter((*names, ""))
    with bar() as shown:
        task = shown.add_task(next(coming), total=len(names))
        yield lambda _: shown.update(task, advance=1, description=next(coming, ""))


def _told(source: Source, broken: Broken | BrokenFile) -> int:
    print(f"attnproof: {source.path}: {broken.error}", file=sys.stderr)
    if broken.traceback:
        print(broken.traceback, file=sys.stderr)
    return FAULT if broken.traceback else 1
