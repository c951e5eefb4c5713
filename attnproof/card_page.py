"""A card in the terminal: what an encoding is, then each law with its verdict and the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from textwrap import shorten
from typing import TYPE_CHECKING, get_args

from .card_records import (
    CellRecord,
    CellVerdict,
    EncodingRecord,
    LawRecord,
    RequirementRecord,
    TableRecord,
)
from .evidence import MeasuredEvidence
from .verdict_line import clauses, joined

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table
    from rich.text import Text

CELL_SIGNS = {
    "proved": "✓",
    "refuted": "✗",
    "measured": "≈",
    "misread": "≠",
    "undecided": "?",
    "does not apply": "·",
    "internal error": "!",
}
REQUIREMENT_SIGNS = {"met": "✓", "not met": "✗", "open": "?"}
CELL_STYLES = {
    "✓": "green",
    "✗": "magenta",
    "≈": "cyan",
    "≠": "red",
    "?": "yellow",
    "·": "dim",
    "!": "red",
}
FEW = 5  # laws that are named where the same error was raised
LONG = 480  # characters of a reason or formula that is shown whole; the record has all of it


def cell_style(verdict: str) -> str:
    """The colour of a verdict."""
    return CELL_STYLES[CELL_SIGNS[verdict]]


def card_page(record: TableRecord, width: int = 100) -> Group:
    """The card of the one encoding of a record."""
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = []
    laws = {law.id: law for law in record.laws}
    for encoding in record.encodings:
        parts += _head(encoding)
        cells = [c for c in record.cells if c.encoding == encoding.id]
        if cells and len({c.error for c in cells}) == 1 and cells[0].error:
            continue  # told once, below
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
    """Title, sources, words, formulas, parameters."""
    from rich.text import Text

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
    """One row a law: sign, title with the reasons below it, seconds."""
    from rich.text import Text

    shown = _grid(width)
    for cell in cells:
        told = Text(laws[cell.law].title)
        told.append(f"  {cell.law}", "dim")
        if len(laws) == 1 and cell.statement is not None and not cell.error:
            words = " ".join(laws[cell.law].says.split("\n\n")[0].split())
            told.append(f"\n{words}", "dim")
            told.append(f"\nthe law: {_short(cell.statement.text)}", "cyan")
        raised = "misread" if cell.verdict == "misread" else "an error was raised"
        for line in [f"{raised}, told below"] if cell.error else reasons(cell):
            told.append(f"\n{_short(line)}", "dim")
        sign = Text(CELL_SIGNS[cell.verdict], cell_style(cell.verdict))
        shown.add_row(sign, told, Text(f"{cell.seconds:.2f} s", "dim"))
    return shown


def _requirements(requirements: list[RequirementRecord], width: int) -> Table:
    """One row a requirement: sign, what it says with the laws that settle it, the document."""
    from rich.text import Text

    shown = _grid(width)
    for requirement in requirements:
        told = Text(requirement.says)
        told.append(f"\n{because(requirement)}", "dim")
        sign = Text(
            REQUIREMENT_SIGNS[requirement.verdict],
            CELL_STYLES[REQUIREMENT_SIGNS[requirement.verdict]],
        )
        shown.add_row(sign, told, Text(requirement.document, "dim"))
    return shown


def because(requirement: RequirementRecord) -> str:
    """Why a requirement is met, not met or open: its laws, by id, with their verdicts."""
    settled = ", ".join(f"{law} {found}" for law, found in requirement.because)
    return f"{requirement.verdict}: {settled}"


def _grid(width: int) -> Table:
    """Three columns: a sign, words that are wrapped, and a note at the right."""
    from rich.table import Table

    shown = Table.grid(padding=(0, 1, 0, 0))
    shown.width = width
    shown.add_column(width=1)
    shown.add_column(ratio=1, overflow="fold")
    shown.add_column(width=7, justify="right", no_wrap=True)
    return shown


def reasons(cell: CellRecord) -> Iterator[str]:
    """How a verdict is known, a line each: all its conditions, the reason, a witness, numbers."""
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
        yield f"in numbers: {', '.join(f'{count} {told}' for told, count in numbers.items())}"


def _short(line: str) -> str:
    return shorten(line, LONG, placeholder=" … (the record has it whole)")


def counted(record: TableRecord) -> str:
    """How many laws or cells have which verdict.

    >>> counted(TableRecord(made="", attnproof="", encodings=(), laws=(), cells=(), seconds=0.0))
    'no cells'
    """
    if not record.cells:
        return "no cells"
    found: Counter[str] = Counter(cell.verdict for cell in record.cells)
    proved = [cell for cell in record.cells if cell.verdict == "proved"]
    under = sum(bool(cell.under) for cell in proved)
    limited = sum(bool(cell.conditions) and not cell.under for cell in proved)
    words: tuple[str, ...] = get_args(CellVerdict)
    parts = [f"{found[word]} {word}" for word in words if found[word]]
    of = [f"{n} under a {what}" for n, what in ((under, "hypothesis"), (limited, "condition")) if n]
    if of:
        parts[0] += f" ({', '.join(of)})"
    what = "laws" if len(record.encodings) == 1 else "cells"
    one = len(record.cells) == 1
    return f"{len(record.cells)} {what[:-1] if one else what}: {', '.join(parts)}"


def faults(record: TableRecord) -> Iterable[str]:
    """What is broken or was not reached, a line each."""
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
        yield f"! interrupted; not whole: {', '.join(record.unfinished)}"


def _named(laws: list[str]) -> str:
    return ", ".join(laws) if len(laws) <= FEW else f"{len(laws)} laws"
