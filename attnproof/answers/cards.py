"""Cards and tables in Python and notebooks.

>>> from attnproof.encodings.bias import Alibi
>>> card(Alibi).cell("relative").verdict
'proved'
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import RenderableType

from ..cards.page import card_page, table_page
from ..cards.records import CellRecord, EncodingRecord, RequirementRecord, TableRecord
from ..cards.registry import in_order, load_encodings, load_file
from ..cards.table import Tell, tabulate
from ..cards.verdicts import LIMIT
from ..documents.document import Shown
from ..encoding.base import Encoding
from ..encoding.conformance import require_shapes
from ..encoding.law import EncodingLaw
from ..errors import require_known
from ..laws import LAWS

Wanted = type[Encoding] | Encoding | Path | str


class _OfTable(Shown):
    """A table, or the part of it about one encoding."""

    def __init__(self, record: TableRecord) -> None:
        self.record = record

    def to_json(self) -> str:
        """Return the record as JSON; ``attnproof schema --table`` prints its schema."""
        return self.record.model_dump_json(indent=1) + "\n"


class Card(_OfTable):
    """One encoding and every law: what it obeys, what it breaks, and how that is known."""

    @property
    def encoding(self) -> EncodingRecord:
        """What the encoding is."""
        return self.record.encodings[0]

    @property
    def requirements(self) -> tuple[RequirementRecord, ...]:
        """What the documents require of an encoding, and whether this one satisfies it."""
        return self.record.requirements

    @property
    def cells(self) -> tuple[CellRecord, ...]:
        """What is known about each law, in the order of the laws."""
        return self.record.cells

    def cell(self, law: str) -> CellRecord:
        """Return what is known about the law with this id."""
        require_known([law], [known.id for known in self.record.laws], "the id of a law")
        return self.record.cell(self.encoding.id, law)

    def page(self, width: int) -> RenderableType:
        """Return what ``attnproof card`` prints."""
        return card_page(self.record, width)

    def _repr_html_(self) -> str:
        from ..report.encodings import card_html

        return card_html(self.record)


class Table(_OfTable):
    """Encodings × laws."""

    def cell(self, encoding: str, law: str) -> CellRecord:
        """Return what is known about the encoding and the law with these ids."""
        require_known([encoding], [e.id for e in self.record.encodings], "the id of an encoding")
        require_known([law], [known.id for known in self.record.laws], "the id of a law")
        return self.record.cell(encoding, law)

    def card(self, encoding: str) -> Card:
        """Return the card of one encoding of the table."""
        require_known([encoding], [e.id for e in self.record.encodings], "the id of an encoding")
        return Card(only(self.record, encoding))

    def page(self, width: int) -> RenderableType:
        """Return what ``attnproof table`` prints."""
        return table_page(self.record, width)

    def _repr_html_(self) -> str:
        from ..report.encodings import table_html

        return table_html(self.record)


def only(record: TableRecord, encoding: str) -> TableRecord:
    """Return the part of a table about one encoding."""
    cells = tuple(c for c in record.cells if c.encoding == encoding)
    return record.model_copy(
        update={
            "encodings": tuple(e for e in record.encodings if e.id == encoding),
            "cells": cells,
            "requirements": tuple(w for w in record.requirements if w.encoding == encoding),
            "broken": (),
            "unfinished": tuple(name for name in record.unfinished if name == encoding),
            "seconds": sum(c.seconds for c in cells),
        }
    )


def card(
    encoding: Wanted,
    laws: Iterable[str | EncodingLaw] = (),
    *,
    numeric: bool = False,
    tell: Tell | None = None,
    limit: float = LIMIT,
) -> Card:
    """Return the card of an encoding: a class, an instance, an id such as ``"rope"``, or a file.

    An instance with values for its parameters is checked at these values.  ``laws`` are laws or
    their ids, by default all; ``limit`` is what each may take, in seconds of the thread.  Raises
    what the code of the encoding raises when it is made, and
    :class:`attnproof.testing.NotAnEncoding` if a method returns an array of a wrong shape; what the
    code raises in a law is reported in that law's cell.
    """
    (kind,) = kinds_of([encoding])
    kind()  # an encoding that cannot be made has no card: its error propagates
    require_shapes(kind)
    return Card(tabulate([kind], laws_of(laws), numeric=numeric, tell=tell, limit=limit))


def table(
    encodings: Iterable[Wanted] = (),
    laws: Iterable[str | EncodingLaw] = (),
    *,
    jobs: int = 1,
    numeric: bool = False,
    tell: Tell | None = None,
    limit: float = LIMIT,
) -> Table:
    """Return a table of laws for these encodings, or for all that :func:`load_encodings` finds.

    ``jobs`` is the number of processes, ``limit`` what a law may take, in seconds of the thread.
    """
    named = list(encodings)
    found = load_encodings() if not named else None
    kinds = found.kinds if found else in_order(kinds_of(named))
    broken = found.broken if found else ()
    chosen = laws_of(laws)
    return Table(
        tabulate(kinds, chosen, broken=broken, jobs=jobs, numeric=numeric, tell=tell, limit=limit)
    )


def laws_of(wanted: Iterable[str | EncodingLaw]) -> Sequence[EncodingLaw]:
    """Return these laws, or all; an unknown id is refused with the nearest."""
    asked = list(wanted)
    names = [law for law in asked if isinstance(law, str)]
    known = {law.id: law for law in LAWS}
    require_known(names, list(known), "the id of a law", "`attnproof list --encodings`")
    return [known[law] if isinstance(law, str) else law for law in asked] or LAWS


def kinds_of(wanted: Iterable[Wanted]) -> list[type[Encoding]]:
    """Return the class of each encoding; an unknown id is refused with the nearest."""
    return [_kind(one) for one in wanted]


def _kind(wanted: object) -> type[Encoding]:
    if isinstance(wanted, type) and issubclass(wanted, Encoding):
        return wanted
    if isinstance(wanted, Encoding):
        return _with(wanted) if wanted.parameters else type(wanted)
    if isinstance(wanted, Path) or (isinstance(wanted, str) and is_file_name(wanted)):
        kinds = load_file(Path(wanted))
        if len(kinds) != 1:
            told = ", ".join(kind.__name__ for kind in kinds)
            raise TypeError(f"wanted a file with one encoding; {wanted} has {told}: name a class")
        return kinds[0]
    if not isinstance(wanted, str):
        raise TypeError(
            f"wanted a subclass of Encoding, an instance, an id or a file; got {wanted!r}"
        )
    found = load_encodings()
    require_known([wanted], found.ids, "the id of an encoding", "`attnproof list --encodings`")
    return found.only(wanted)


def is_file_name(name: str) -> bool:
    """Whether a name on the command line means a file and not an id."""
    return name.endswith(".py") or "/" in name or "\\" in name


def _with(made: Encoding) -> type[Encoding]:
    """Return the class of encodings with these values for their parameters."""
    kind, values = type(made), dict(made.parameters)

    def start(self: Encoding, **more: object) -> None:
        kind.__init__(self, **{**values, **more})

    told = ", ".join(f"{name} = {value}" for name, value in values.items())
    body = {
        "__init__": start,
        "__module__": kind.__module__,
        "__doc__": kind.__doc__,
        "title": f"{kind.title or kind.__name__} with {told}",
        "fixed": frozenset(values),
    }
    return type(kind.__name__, (kind,), body)
