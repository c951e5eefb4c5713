"""The table in the terminal: encodings × laws as signs, and what its columns are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from .card_page import CELL_SIGNS, cell_style, counted, faults
from .card_records import CellRecord, LawRecord, TableRecord

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table
    from rich.text import Text

NAME = 24  # columns for the name of an encoding
MEANING = {
    "proved": "proved, for all sizes", "refuted": "refuted by a witness",
    "measured": "measured only", "misread": "misread: its code and its term differ",
    "undecided": "undecided", "does not apply": "does not apply",
    "internal error": "internal error of attnproof",
}  # fmt: skip
IF = "*"
WIDE = 150  # columns from which the laws are listed in two blocks


def table_page(record: TableRecord, width: int = 100) -> Group:
    """The signs, a legend of signs and columns, what is broken, and the counts."""
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = []
    if record.encodings and record.laws:
        per = max(1, (width - NAME) // _column(record))
        for start in range(0, len(record.laws), per):
            parts += [_signs(record, start, record.laws[start : start + per]), Text()]
        parts += [*_legend(record), Text(), _columns(record, width), Text()]
    parts += [Text(line, "red") for line in faults(record)]
    parts.append(Text(f"{counted(record)}. {record.seconds:.1f} s", "bold"))
    return Group(*parts)


def _column(record: TableRecord) -> int:
    return 1 + max(2, len(str(len(record.laws))))


def _signs(record: TableRecord, start: int, laws: tuple[LawRecord, ...]) -> Table:
    """Rows of encodings, by where they act; columns of laws, by number."""
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    shown.add_column("", width=NAME - 1, no_wrap=True, overflow="ellipsis")
    for number, _ in enumerate(laws, start + 1):
        shown.add_column(str(number), width=_column(record) - 1, justify="right", no_wrap=True)
    cells = {(cell.encoding, cell.law): cell for cell in record.cells}
    for acts, encodings in groupby(record.encodings, lambda encoding: encoding.acts):
        shown.add_row(Text(acts, "dim"))
        for encoding in encodings:
            row = (_sign(cells.get((encoding.id, law.id))) for law in laws)
            shown.add_row(Text(f"  {encoding.id}"), *row)
    return shown


def _sign(cell: CellRecord | None) -> Text:
    from rich.text import Text

    if cell is None:
        return Text("")
    mark = IF if cell.conditions else "!" if cell.error else " "
    return Text(CELL_SIGNS[cell.verdict] + mark, cell_style(cell.verdict))


def _legend(record: TableRecord) -> Iterator[Text]:
    """What the signs mean, those that occur."""
    from rich.text import Text

    found = {cell.verdict for cell in record.cells}
    parts = [f"{sign} {MEANING[word]}" for word, sign in CELL_SIGNS.items() if word in found]
    if any(cell.conditions for cell in record.cells):
        parts.insert(1, f"✓{IF} proved under a hypothesis or a condition that the card names")
    if any(cell.conditions and cell.verdict == "undecided" for cell in record.cells):
        parts.append(f"?{IF} undecided under a hypothesis that the card names")
    yield Text("   ".join(parts), "dim")


def _columns(record: TableRecord, width: int) -> Table:
    """The laws by number, in one or two columns."""
    from rich.table import Table
    from rich.text import Text

    told = []
    for number, law in enumerate(record.laws, 1):
        line = Text(law.id)
        line.append(f"  {law.title}", "dim")
        told.append((Text(str(number), "bold"), line))
    blocks = 2 if width >= WIDE else 1
    rows = -(-len(told) // blocks)
    shown = Table.grid(padding=(0, 1, 0, 0))
    for _ in range(blocks):
        shown.add_column(justify="right", width=2)
        shown.add_column(overflow="fold", ratio=1)
    shown.width = width
    for at in range(rows):
        shown.add_row(*(part for pair in told[at::rows] for part in pair))
    return shown
