"""The pages of a table: the overview, a page for each encoding, and parts for a notebook."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, get_args

from ..cards.page import because, counted, faults, reasons
from ..cards.records import (
    KERNEL,
    CellRecord,
    CellVerdict,
    EncodingRecord,
    LawRecord,
    RequirementRecord,
    TableRecord,
)
from ..documents.document import counts
from ..documents.evidence import Formula, ProvedEvidence, RefutedEvidence, WitnessRecord
from ..documents.verdict_line import clauses
from ..encoding.base import Encoding
from ..symbolic.latex.statements import width
from .page import LARGE, encoding_file, environment, rendered, written
from .plots import Plot, plots

VERDICTS: tuple[str, ...] = get_args(CellVerdict)
CONTRARY = {"proved": "refuted", "refuted": "proved"}
PACKAGE = "attnproof/"  # prefix of the files of the package's encodings
WIDE = 46
SHORTER = ((KERNEL, 0, False), (3, 0, False), (0, 0, False), (0, 0, True), (0, 500, True))
"""Settings tried in turn until a page is small enough: kernel steps, the LaTeX length from
which a formula is shown as text (0: never), and whether normal forms are shown as text."""


@dataclass(frozen=True)
class Cell:
    """A law of an encoding, with what the page shows about it."""

    law: LawRecord
    record: CellRecord

    @property
    def word(self) -> str:
        """Its verdict in words, with the condition if there is one."""
        return self.record.verdict + " under a hypothesis" * bool(self.record.conditions)

    @property
    def clauses(self) -> list[str]:
        """Every condition of the verdict, in the words of its line."""
        return clauses(self.record.conditions)

    @property
    def contrary(self) -> bool:
        """Whether what was decided is the contrary of the law, which claims a difference."""
        return (
            self.law.some
            and self.record.statement is not None
            and bool(self.record.chain or (self.record.statement.latex))
        )

    @cached_property
    def decided(self) -> CellRecord:
        """The record, with the verdict on the statement that was decided."""
        verdict = CONTRARY.get(self.record.verdict) if self.contrary else None
        return self.record.model_copy(update={"verdict": verdict}) if verdict else self.record

    @property
    def as_stated(self) -> bool:
        """Whether its proof is just the statement, as one equation: no need to print it twice."""
        stated = self.record.statement.text if self.record.statement else ""
        lines = [
            f"{link.says}: {link.left.text} {link.relation} {link.right.text}".removeprefix(": ")
            for link in self.record.chain
        ]
        return all(link.proved and not link.opens for link in self.record.chain) and (
            stated.splitlines() == lines
        )

    @property
    def longest(self) -> int:
        """The length of the longest formula of its proof, in LaTeX."""
        sides = [f for link in self.record.chain for f in (link.left, link.right)]
        return max((len(side.latex) for side in sides), default=0)

    @property
    def vouched(self) -> list[ProvedEvidence]:
        """The proofs that are not chains of equations, with what vouches for them."""
        proofs = [e for e in self.record.evidence if isinstance(e, ProvedEvidence)]
        return [] if self.record.chain else proofs

    @property
    def witnesses(self) -> list[RefutedEvidence]:
        """Where the statement that was decided fails."""
        return [e for e in self.record.evidence if isinstance(e, RefutedEvidence)]

    @property
    def reason(self) -> str:
        """The reason in a line; empty if the witness shown in full says the same."""
        return "" if self.witnesses else self.record.why


def in_words(witness: WitnessRecord) -> bool:
    """Whether a witness is described in words only, without values."""
    return not (witness.values or witness.left)


@dataclass(frozen=True)
class Place:
    """What an encoding does at one place, in words and as a formula; as text if that fails."""

    says: str
    rows: tuple[str, ...]
    text: str = ""


def _place(formula: Formula) -> Place:
    if not formula.latex:
        return Place("", (), formula.text)
    said = re.match(r"\\text\{([^{}]*?):? \}\s*", formula.latex)
    latex = formula.latex[said.end() :] if said else formula.latex
    latex = latex.replace("+ -", "- ")
    left, equals, right = latex.partition(" = ")
    rows = (left, f"= {right}") if equals and width(latex) > WIDE else (latex,)
    return Place(said[1] if said else "", rows)


@dataclass(frozen=True)
class Required:
    """A requirement, whether it is granted, and the cells that settle it."""

    requirement: RequirementRecord
    cells: Mapping[str, Cell]

    @property
    def because(self) -> list[tuple[Cell | None, str, str]]:
        """The laws that settle it: the cell if there is one, the law, its verdict."""
        return [(self.cells.get(law), law, verdict) for law, verdict in self.requirement.because]

    @property
    def under(self) -> bool:
        """Whether it is met only under a condition."""
        settled = [cell for cell, _, _ in self.because if cell is not None]
        return self.requirement.verdict == "met" and any(cell.record.conditions for cell in settled)


@dataclass(frozen=True)
class Page:
    """An encoding with its cells, grouped as the laws are."""

    encoding: EncodingRecord
    cells: tuple[Cell, ...]
    requirements: tuple[RequirementRecord, ...] = ()

    @property
    def file(self) -> str:
        """The name of its file."""
        return encoding_file(self.encoding.id)

    @property
    def places(self) -> list[Place]:
        """What it does, place by place."""
        return [_place(formula) for formula in self.encoding.formulas]

    @property
    def groups(self) -> list[tuple[str, list[Cell]]]:
        """The cells, grouped as their laws are."""
        return [(group, list(held)) for group, held in groupby(self.cells, lambda c: c.law.group)]

    @property
    def counts(self) -> list[tuple[str, int]]:
        """How many cells have each verdict."""
        return tally(cell.record for cell in self.cells)

    @property
    def required(self) -> list[Required]:
        """The requirements, with the cells that settle them."""
        known = {cell.law.id: cell for cell in self.cells}
        return [Required(requirement, known) for requirement in self.requirements]

    def cell(self, law: LawRecord) -> Cell | None:
        """Return the cell of a law, if the run reached it."""
        return next((cell for cell in self.cells if cell.law.id == law.id), None)


def tally(cells: Iterable[CellRecord]) -> list[tuple[str, int]]:
    """Return how many cells have each verdict, among those that occur."""
    found = counts((cell.verdict for cell in cells), VERDICTS)
    return [(word, count) for word, count in found if count]


def _pages(table: TableRecord) -> list[Page]:
    laws = {law.id: law for law in table.laws}
    held: dict[str, dict[str, Cell]] = {}
    for cell in table.cells:
        held.setdefault(cell.encoding, {})[cell.law] = Cell(laws[cell.law], cell)
    pages = []
    for encoding in table.encodings:
        cells = held.get(encoding.id, {})
        requirements = tuple(
            requirement for requirement in table.requirements if requirement.encoding == encoding.id
        )
        pages.append(
            Page(encoding, tuple(cells[law] for law in laws if law in cells), requirements)
        )
    return pages


def _by(key: str, records: Sequence[LawRecord | EncodingRecord]) -> list[tuple[str, list[object]]]:
    return [(str(name), list(found)) for name, found in groupby(records, lambda r: getattr(r, key))]


def render_encodings(
    table: TableRecord, kinds: Mapping[str, type[Encoding]], root: str = ""
) -> dict[str, str]:
    """Return the pages by the names of their files; ``index.html`` has the table.

    ``kinds`` has the classes by their ids, from which drawings are made; without its class, an
    encoding has a page without drawings.  ``root`` leads to the report of the theorems, if the
    pages are part of it.  A page that would be too large shows fewer kernel steps, then normal
    forms as text, then all long formulas as text.
    """
    pages = _pages(table)
    shared: dict[str, object] = {
        "table": table,
        "pages": pages,
        "tally_of": tally,
        "in_words": in_words,
        "columns": _by("group", table.laws),
        "rows": [
            (acts, [page for page in pages if page.encoding in encodings])
            for acts, encodings in _by("acts", table.encodings)
        ],
    }
    found = {"index.html": rendered("encodings.html.j2", root, **shared)}
    for before, page, after in zip([None, *pages], pages, [*pages[1:], None], strict=False):
        kind = kinds.get(page.encoding.id)
        drawn: list[Plot] = plots(kind) if kind is not None else []
        parts = {
            **shared,
            "page": page,
            "plots": drawn,
            "before": before,
            "after": after,
            "commands": list(commands(page.encoding)),
        }
        for kernel, terse, plain in SHORTER:
            parts |= {"kernel": kernel, "terse": terse, "plain_meetings": plain}
            text = rendered("encoding.html.j2", root, **parts)
            text = _lean(text) if plain else text
            if len(text.encode()) <= LARGE:
                break
        found[page.file] = text
    return found


def commands(encoding: EncodingRecord) -> Iterator[tuple[str, str]]:
    """Yield the commands that reproduce the card, and what each of them shows."""
    name = encoding.id if encoding.file.startswith(PACKAGE) else encoding.file or encoding.id
    yield f"attnproof card {name}", "the card in the terminal"
    yield f"attnproof card {name} --numeric", "the same with numbers"
    yield f"attnproof card {name} --law ID", "one law, in full"


def _lean(text: str) -> str:
    """Return the same without what a formula can spare: its source, and rows of one letter."""
    text = re.sub(r' alttext="[^"<>]*"', "", text)
    return re.sub(r"<mrow>(<(m[in])>[^<>]*</\2>)</mrow>", r"\1", text)


def write_encodings(table: TableRecord, kinds: Mapping[str, type[Encoding]], folder: Path) -> Path:
    """Write the pages of a table into a folder; return the path of its ``index.html``.

    Raises :class:`~attnproof.report.ReportError` if the folder cannot be created or written to.
    """
    return written(render_encodings(table, kinds), folder)


def card_html(record: TableRecord) -> str:
    """Return the card of one encoding."""
    laws = {law.id: law for law in record.laws}
    groups = [
        (group, [(laws[cell.law], cell) for cell in cells])
        for group, cells in groupby(record.cells, lambda cell: laws[cell.law].group)
    ]
    return _rendered("card", record, groups=groups)


def table_html(record: TableRecord) -> str:
    """Return encodings × laws, as signs that show their reason on hover."""
    cells = {(cell.encoding, cell.law): cell for cell in record.cells}
    return _rendered("table", record, cells=cells)


def _rendered(part: str, record: TableRecord, **more: object) -> str:
    """Return a part for a notebook: a macro, called with what it is about."""
    told = {"reasons": reasons, "counted": counted, "faults": faults, "because": because, **more}
    module: Any = environment().get_template("notebook.html.j2").make_module(told)
    macro: Callable[[TableRecord], str] = getattr(module, part)
    return str(macro(record))
