"""Cards and tables in the terminal: laws with verdicts and reasons, or as signs; progress."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby
from textwrap import shorten
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..documents.document import SIGNS, bar, counts, style, tally
from ..documents.verdict_line import clauses, joined
from ..numeric.results import MeasuredEvidence
from .records import (
    BrokenEncoding,
    CellRecord,
    EncodingRecord,
    LawRecord,
    RequirementRecord,
    TableRecord,
)

if TYPE_CHECKING:
    from .table import Tell


NAMED_LAWS = 5  # laws that are named if they raised the same error
LONG = 480  # characters of a reason or formula that are shown; the record has it in full


def card_page(record: TableRecord, width: int = 100) -> Group:
    """Return the card of the one encoding of a record."""
    parts: list[RenderableType] = []
    laws = {law.id: law for law in record.laws}
    for encoding in record.encodings:
        parts += _head(encoding)
        cells = [c for c in record.cells if c.encoding == encoding.id]
        if cells and len({c.error for c in cells}) == 1 and cells[0].error:
            continue  # reported once, below
        for group, held in groupby(cells, lambda c: laws[c.law].group):
            parts += [Text(), Text(group, "bold"), _rows(list(held), laws, width)]
        requirements = [w for w in record.requirements if w.encoding == encoding.id]
        if requirements:
            parts += [
                Text(),
                Text("what the documents require", "bold"),
                _requirements(requirements, width),
            ]
    parts += [Text(), *(Text(line, "red") for line in faults(record))]
    parts.append(Text(f"{counted(record)}. {record.seconds:.1f} s", "bold"))
    return Group(*parts)


def _head(encoding: EncodingRecord) -> Iterator[Text]:
    """Yield title, sources, words, formulas and parameters."""
    head = Text(encoding.title, "bold")
    head.append(f"  {encoding.id}", "not bold")
    yield head
    for line in (*encoding.sources, encoding.file):
        yield Text(line, "dim")
    if encoding.says:
        yield Text()
        says = encoding.says.replace("``", "")
        yield from (Text(" ".join(part.split())) for part in says.split("\n\n"))
    if encoding.formulas:
        yield Text()
    for formula in encoding.formulas:
        yield Text(_short(formula.text), "cyan")
    for given in encoding.parameters:
        shape = f" ({', '.join(given.shape)})" if given.shape else ""
        yield Text(f"{given.name}{shape}: {given.says}", "cyan")


def _rows(cells: list[CellRecord], laws: dict[str, LawRecord], width: int) -> Table:
    """Return a row for each law: sign, title with the reasons below it, seconds."""
    shown = _grid(width)
    for cell in cells:
        told = Text(laws[cell.law].title)
        told.append(f"  {cell.law}", "dim")
        if len(laws) == 1 and cell.statement is not None and not cell.error:
            words = " ".join(laws[cell.law].says.split("\n\n")[0].split())
            told.append(f"\n{words}", "dim")
            told.append(f"\nthe law: {_short(cell.statement.text)}", "cyan")
        raised = "misread" if cell.verdict == "misread" else "an error was raised"
        for line in [f"{raised} (see below)"] if cell.error else reasons(cell):
            told.append(f"\n{_short(line)}", "dim")
        sign = Text(SIGNS[cell.verdict], style(cell.verdict))
        shown.add_row(sign, told, Text(f"{cell.seconds:.2f} s", "dim"))
    return shown


def _requirements(requirements: list[RequirementRecord], width: int) -> Table:
    """Return a row for each requirement: sign, words with the laws that settle it, document."""
    shown = _grid(width)
    for requirement in requirements:
        told = Text(requirement.says)
        told.append(f"\n{because(requirement)}", "dim")
        sign = Text(SIGNS[requirement.verdict], style(requirement.verdict))
        shown.add_row(sign, told, Text(requirement.document, "dim"))
    return shown


def because(requirement: RequirementRecord) -> str:
    """Return why a requirement is met, not met or open: its laws, by id, with their verdicts."""
    settled = ", ".join(f"{law} {found}" for law, found in requirement.because)
    return f"{requirement.verdict}: {settled}"


def _grid(width: int) -> Table:
    """Return a table of three columns: a sign, wrapped words, and a note at the right."""
    shown = Table.grid(padding=(0, 1, 0, 0))
    shown.width = width
    shown.add_column(width=1)
    shown.add_column(ratio=1, overflow="fold")
    shown.add_column(width=7, justify="right", no_wrap=True)
    return shown


def reasons(cell: CellRecord) -> Iterator[str]:
    """Yield how a verdict is known, line by line: conditions, reason, witness, measurements."""
    limits = clauses(cell.conditions)
    if limits:
        yield ", ".join(limits)
    if cell.obeyed:
        yield f"even if {joined(cell.obeyed)}"
    shown = cell.verdict == "proved" and bool(cell.witness) and cell.needed is None
    yield f"for example: {cell.why}" if shown else cell.why  # a law that claims a difference
    if cell.needed is not None:
        witness = cell.needed.witness.text
        yield f"without {'it' if len(cell.under) == 1 else 'them'}: {witness}"
    elif cell.witness and cell.witness not in cell.why:
        yield cell.witness
    numbers = Counter(
        f"{part.status} in {part.dtype}"
        for part in cell.evidence
        if isinstance(part, MeasuredEvidence)
    )
    if numbers:
        yield f"measured: {', '.join(f'{count} {told}' for told, count in numbers.items())}"


def _short(line: str) -> str:
    return shorten(line, LONG, placeholder=" … (in full in the record)")


def counted(record: TableRecord) -> str:
    """Return how many laws or cells have each verdict.

    >>> counted(TableRecord(made="", attnproof="", encodings=(), laws=(), cells=(), seconds=0.0))
    'no cells'
    """
    if not record.cells:
        return "no cells"
    head, comma, rest = tally(cell.verdict for cell in record.cells).partition(", ")
    proved = [cell for cell in record.cells if cell.verdict == "proved"]
    under = sum(bool(cell.under) for cell in proved)
    limited = sum(bool(cell.conditions) and not cell.under for cell in proved)
    of = [f"{n} under a {what}" for n, what in ((under, "hypothesis"), (limited, "condition")) if n]
    head += f" ({', '.join(of)})" if of else ""
    what = "laws" if len(record.encodings) == 1 else "cells"
    one = len(record.cells) == 1
    return f"{len(record.cells)} {what[:-1] if one else what}: {head}{comma}{rest}"


def faults(record: TableRecord) -> Iterable[str]:
    """Return what is broken or was not reached, one line each."""
    for broken in record.broken:
        yield f"! broken: {broken.name}: {broken.error}"
    raised: dict[tuple[str, str, str], list[str]] = {}
    for cell in record.cells:
        if cell.error:
            word = "misread" if cell.verdict == "misread" else "raised"
            raised.setdefault((cell.encoding, word, cell.error), []).append(cell.law)
    for (encoding, word, error), laws in raised.items():
        yield f"! {encoding}, {_named(laws)}: {error if word == 'misread' else f'raised {error}'}"
    stopped: dict[tuple[str, str], list[str]] = {}
    for cell in record.cells:
        for part in cell.evidence:
            if part.kind == "internal error":
                stopped.setdefault((cell.encoding, part.why), []).append(cell.law)
    for (encoding, why), laws in stopped.items():
        yield f"! {encoding}, {_named(laws)}: {why}"
    if record.unfinished:
        yield f"! interrupted; incomplete: {', '.join(record.unfinished)}"


def _named(laws: list[str]) -> str:
    return ", ".join(laws) if len(laws) <= NAMED_LAWS else f"{len(laws)} laws"


NAME = 24  # columns for the name of an encoding
MEANING = {
    "proved": "proved, for all sizes",
    "refuted": "refuted by a witness",
    "measured": "measured only",
    "misread": "misread: its code and its term differ",
    "undecided": "undecided",
    "does not apply": "does not apply",
    "internal error": "internal error of attnproof",
}
IF = "*"
WIDE = 150  # width from which the laws are listed in two blocks


def table_page(record: TableRecord, width: int = 100) -> Group:
    """Return the signs, a legend of signs and columns, what is broken, and the counts."""
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
    """Return rows of encodings, by where they act, and columns of laws, by number."""
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
    if cell is None:
        return Text("")
    mark = IF if cell.conditions else "!" if cell.error else " "
    return Text(SIGNS[cell.verdict] + mark, style(cell.verdict))


def _legend(record: TableRecord) -> Iterator[Text]:
    """Yield the meaning of the signs that occur."""
    found = {cell.verdict for cell in record.cells}
    parts = [f"{sign} {MEANING[word]}" for word, sign in SIGNS.items() if word in found]
    if any(cell.conditions for cell in record.cells):
        parts.insert(1, f"✓{IF} proved under a hypothesis or a condition that the card names")
    if any(cell.conditions and cell.verdict == "undecided" for cell in record.cells):
        parts.append(f"?{IF} undecided under a hypothesis that the card names")
    yield Text("   ".join(parts), "dim")


def _columns(record: TableRecord, width: int) -> Table:
    """Return the laws by number, in one or two columns."""
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


@contextmanager
def table_progress(
    console: Console, encodings: int, laws: int, *, lines: bool = True
) -> Iterator[Tell]:
    """Show a bar while cells are decided; yield the function to call with each outcome.

    With ``lines``, a line is printed for each encoding when its last law is decided.
    """
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
    """Return how many laws of an encoding have each verdict."""
    found = counts(cell.verdict for cell in cells)
    signs = "  ".join(f"{SIGNS[word]} {count:>2}" for word, count in found if count)
    return f"{cells[0].encoding:<24} {signs}   {sum(cell.seconds for cell in cells):.1f} s"
