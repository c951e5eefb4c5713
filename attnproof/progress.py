"""The progress of a run and of a table: a bar while it lasts, and a line for each outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .card_records import BrokenEncoding, CellRecord
from .document import SIGNS, bar, sign, style
from .records import BrokenFile, DemonstrationRecord, TheoremRecord
from .terminal import conditions

if TYPE_CHECKING:
    from rich.console import Console

    from .encoding_table import Tell
    from .runner import Outcome


@contextmanager
def progress(
    console: Console, names: Sequence[str], *, lines: bool = True
) -> Iterator[Callable[[Outcome], None]]:
    """A bar while a run lasts and a line for each outcome; yields what to tell of one.

    ``names`` are told beside the bar, in the order of the outcomes.  A theorem that is told again,
    with its numbers, has another line only if these speak against it.  Without ``lines`` only what
    is not as expected has one.
    """
    from rich.text import Text

    coming, fine = iter((*names, "")), set[str]()
    with bar(console) as shown:
        task = shown.add_task(next(coming), total=len(names))

        def tell(outcome: Outcome) -> None:
            if isinstance(outcome, BrokenFile):
                line = Text(f"! broken     {outcome.file}: {outcome.error}", "red")
            else:
                found = outcome.verdict if isinstance(outcome, TheoremRecord) else outcome.outcome
                mark = "" if outcome.ok else f"  ! {_wrong(outcome)}"
                known = "" if outcome.stored is None else "  (from the store)"
                told = [*conditions(outcome)] if isinstance(outcome, TheoremRecord) else []
                under = "".join(f", {line}" for line in told)
                line = Text(f"{sign(found):<12} {outcome.id}{under}{known}{mark}")
                line.stylize(style(found), 0, 12)
            if (
                isinstance(outcome, BrokenFile)
                or not outcome.ok
                or (lines and outcome.id not in fine)
            ):
                shown.console.print(line, soft_wrap=True)
            if not isinstance(outcome, BrokenFile) and outcome.ok:
                fine.add(outcome.id)
            shown.update(task, advance=1, description=next(coming, ""))

        yield tell


def _wrong(record: TheoremRecord | DemonstrationRecord) -> str:
    more = f" (and {len(record.why) - 1} more)" if len(record.why) > 1 else ""
    return "".join(record.why[:1]) + more


@contextmanager
def table_progress(
    console: Console, encodings: int, laws: int, *, lines: bool = True
) -> Iterator[Tell]:
    """A bar while cells are decided; yields what to tell of each outcome.

    With ``lines`` each encoding has one when its last law is decided.
    """
    from rich.text import Text

    held: list[CellRecord] = []
    with bar(console) as shown:
        task = shown.add_task("", total=encodings * laws)

        def tell(outcome: CellRecord | BrokenEncoding) -> None:
            if isinstance(outcome, BrokenEncoding):
                if lines:
                    line = Text(f"! broken     {outcome.name}: {outcome.error}", "red")
                    shown.console.print(line, soft_wrap=True)
                return
            held.append(outcome)
            shown.update(task, advance=1, description=f"{outcome.encoding}, {outcome.law}")
            if len(held) == laws:
                if lines:
                    shown.console.print(_line(held), highlight=False, soft_wrap=True)
                held.clear()

        yield tell


def _line(cells: list[CellRecord]) -> str:
    """How many laws of an encoding have which verdict."""
    found: Counter[str] = Counter(cell.verdict for cell in cells)
    told = (f"{mark} {found[word]:>2}" for word, mark in SIGNS.items() if found[word])
    signs = "  ".join(told)
    return f"{cells[0].encoding:<24} {signs}   {sum(cell.seconds for cell in cells):.1f} s"
