"""``attnproof report``: pages from records in files; nothing is run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict, TypeVar, cast

import typer

from ..errors import UsageError, require_writable
from .options import app

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import BaseModel

    from ..cards.records import TableRecord
    from ..sweeping.records import SweepRecord
    from ..sweeping.scale import ScaleRecord
    from ..theorem_runs.records import Results

    class Records(TypedDict, total=False):
        """The record of each kind, under a key that only it has."""

        theorems: Results
        engine: SweepRecord
        cells: TableRecord
        ways: ScaleRecord


R = TypeVar("R", bound="BaseModel")
RECORD = Path("report", "results.json")
WANTED = "the record of `attnproof run --json FILE`, or of `table`, `sweep` or `scale`"
KINDS = {
    "theorems": "a run",
    "engine": "a sweep, or of theorems at scale",
    "cells": "a table",
    "ways": "kernels at scale",
}


@app.command()
def report(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE]...", help=f"JSON records; default: {RECORD}."),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder for the pages; default: that of the first record."
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the report in a browser.")] = False,
) -> int:
    """Write HTML pages from the records of earlier commands.

    The records are those that `run`, `table`, `sweep` and `scale` write with --json.  Nothing is
    run.
    """
    found = files or [RECORD]
    records = _records(found)
    folder = html or found[0].parent
    require_writable(folder)
    first = _written(records, folder)
    print(f"wrote {first}")
    if show:
        import webbrowser

        if not webbrowser.open(first.resolve().as_uri()):
            print(f"no browser was found; open {first.resolve().as_uri()}")
    return 0


def _records(files: Sequence[Path]) -> Records:
    """Return the contents of the files, by kind.  Raises :class:`UsageError` for two of a kind."""
    from ..cards.records import TableRecord
    from ..sweeping.records import SweepRecord
    from ..sweeping.scale import ScaleRecord
    from ..theorem_runs.records import Results

    kinds: dict[str, type[BaseModel]] = {
        "theorems": Results,
        "engine": SweepRecord,
        "cells": TableRecord,
        "ways": ScaleRecord,
    }
    found: dict[str, BaseModel] = {}
    for file in files:
        told = _told(file)
        key = next((key for key in kinds if key in told), None)
        if key is None:
            raise UsageError(f"wanted {WANTED}, got {file}, which is not one")
        if key in found:
            raise UsageError(f"wanted one record of {KINDS[key]}, got two; the second is {file}")
        found[key] = _read(kinds[key], file)
    return cast("Records", found)


def _told(file: Path) -> dict[str, object]:
    """Return the contents of a record, by name, whatever kind it is."""
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not JSON"
        hint = f"; `attnproof run --json {file}` writes it" if not file.exists() else ""
        raise UsageError(f"wanted {WANTED}, got {file} ({why}){hint}") from None
    if not isinstance(told, dict):
        raise UsageError(f"wanted {WANTED}, got {file}, which is not one")
    return told


def _read(kind: type[R], file: Path) -> R:
    """Return a record of that kind.  Raises :class:`UsageError` if another version wrote it."""
    from pydantic import ValidationError

    try:
        return kind.model_validate_json(file.read_bytes())
    except ValidationError as error:
        why = " ".join(str(error).split("\n")[1:3])
        raise UsageError(
            f"{file} is not a record of this version ({why}); run the command again"
        ) from None


def _written(records: Records, folder: Path) -> Path:
    """Write the pages of all of them; return the first.  Code that a record names is not loaded.

    So encodings of your own files have no drawings here; `attnproof table --html` draws them.
    """
    results, table = records.get("theorems"), records.get("cells")
    far = [record for record in (records.get("engine"), records.get("ways")) if record is not None]
    kinds = {}
    if table is not None:
        from ..cards.registry import load_encodings

        kinds = {kind.id(): kind for kind in load_encodings().kinds}
    if results is not None:
        from ..report import write_report

        return write_report(results, folder, table, kinds, far)
    if table is not None and far:
        raise UsageError(
            "pages of a table and of measurements at scale are part of a report of a run: name the "
            "record of `attnproof run --json FILE` as well"
        )
    if table is not None:
        from ..report.encodings import write_encodings

        return write_encodings(table, kinds, folder)
    from ..report.plots import write_growths

    return write_growths(far, folder)
