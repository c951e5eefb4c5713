"""``attnproof report``: pages from records that stand in files; nothing is run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from .options import app
from .usage import UsageError, require_writable

if TYPE_CHECKING:
    from pydantic import BaseModel

    from .card_records import TableRecord
    from .records import Results

R = TypeVar("R", bound="BaseModel")
RECORD = Path("report", "results.json")
WANTED = "the record of `attnproof run --json FILE` or of `attnproof table --json FILE`"


@app.command()
def report(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE]...", help=f"Records; {RECORD} if none."),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Where the pages go; beside the first record if not told."
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Show them in a browser.")] = False,
) -> int:
    """Pages from the records of a run and of a table: written anew, with nothing run."""
    from .card_records import TableRecord
    from .records import Results

    found = files or [RECORD]
    results: Results | None = None
    table: TableRecord | None = None
    for file in found:
        told = _told(file)
        if "theorems" in told:
            if results is not None:
                raise UsageError(f"wanted one record of a run, got two; the second is {file}")
            results = _read(Results, file)
        elif "cells" in told:
            if table is not None:
                raise UsageError(f"wanted one record of a table, got two; the second is {file}")
            table = _read(TableRecord, file)
        else:
            raise UsageError(f"wanted {WANTED}, got {file}, which is not one")
    folder = html or found[0].parent
    require_writable(folder)
    first = _written(results, table, folder)
    print(f"wrote {first}")
    if show:
        import webbrowser

        if not webbrowser.open(first.resolve().as_uri()):
            print(f"no browser was found; open {first.resolve().as_uri()}")
    return 0


def _told(file: Path) -> dict[str, object]:
    """What a record holds, by name, whatever kind it is."""
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
    """A record of that kind.  Raises :class:`UsageError` where another version wrote it."""
    from pydantic import ValidationError

    try:
        return kind.model_validate_json(file.read_bytes())
    except ValidationError as error:
        why = " ".join(str(error).split("\n")[1:3])
        raise UsageError(
            f"{file} is no record of this version ({why}); run it again to have one"
        ) from None


def _written(results: Results | None, table: TableRecord | None, folder: Path) -> Path:
    """The pages of either or both.  What a record names is not loaded from elsewhere.

    So encodings of one's own files have no drawings here; `attnproof table --html` draws them.
    """
    if table is None:
        from .report import write_report

        assert results is not None
        return write_report(results, folder)
    from .registry import load_encodings

    kinds = {kind.id(): kind for kind in load_encodings().kinds}
    if results is None:
        from .report.encodings import write_encodings

        return write_encodings(table, kinds, folder)
    from .report import write_report

    return write_report(results, folder, table, kinds)
