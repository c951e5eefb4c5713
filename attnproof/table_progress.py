"""The progress of a table: a bar of cells while it lasts, and a line for each encoding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .card_page import CELL_SIGNS
from .card_records import BrokenEncoding, CellRecord
from .terminal_text import bar

if TYPE_CHECKING:
    from rich.console import Console

    from .encoding_table import Outcome, Tell


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

        def tell(outcome: Outcome) -> None:
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
    told = (f"{sign} {found[word]:>2}" for word, sign in CELL_SIGNS.items() if found[word])
    signs = "  ".join(told)
    return f"{cells[0].encoding:<24} {signs}   {sum(cell.seconds for cell in cells):.1f} s"
