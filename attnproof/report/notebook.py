"""Cards and tables as parts of a notebook: their own style, nothing fetched, no script."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from ..card_page import CELL_SIGNS, REQUIREMENT_SIGNS, because, counted, faults, reasons
from ..card_records import CellRecord, TableRecord
from .formula import formula_html
from .words import linked, paragraphs, prose


def card_html(record: TableRecord) -> str:
    """The card of one encoding."""
    laws = {law.id: law for law in record.laws}
    groups = [
        (group, [(laws[cell.law], cell) for cell in cells])
        for group, cells in groupby(record.cells, lambda cell: laws[cell.law].group)
    ]
    return _rendered("card", record, groups=groups)


def table_html(record: TableRecord) -> str:
    """Encodings × laws, as signs that say why when they are pointed at."""
    cells = {(cell.encoding, cell.law): cell for cell in record.cells}
    return _rendered("table", record, cells=cells)


def _rendered(part: str, record: TableRecord, **more: object) -> str:
    environment = Environment(
        loader=PackageLoader("attnproof.report"),
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters.update(
        display=lambda latex: formula_html(latex, display=True),
        math=formula_html, prose=prose, paragraphs=paragraphs, linked=linked,
    )  # fmt: skip
    module: Any = environment.get_template("notebook.html.j2").make_module({
        "signs": CELL_SIGNS, "reasons": _reasons, "counted": counted, "faults": faults,
        "because": because, "requirement_signs": REQUIREMENT_SIGNS,
        **more,
    })  # fmt: skip
    macro: Callable[[TableRecord], str] = getattr(module, part)
    return str(macro(record))


def _reasons(cell: CellRecord) -> list[str]:
    return list(reasons(cell))
