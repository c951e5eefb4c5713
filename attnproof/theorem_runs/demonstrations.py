"""Run demonstrations: compute again what a document's code prints, and record the comparison."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ..errors import broken_by
from .catalogue import BUILT_IN
from .records import DemonstrationRecord, Outcome, RowRecord

if TYPE_CHECKING:
    from ..numeric.demonstration import Demonstration, Demonstrations, Row


def demonstrate(files: Mapping[str, Path]) -> Iterator[DemonstrationRecord]:
    """Yield the record of each demonstration; one that cannot be run ``failed``, and says why."""
    folders: dict[Path, Demonstrations] = {}
    for name, path in files.items():
        if path.parent not in folders:
            folders[path.parent] = _loaded(path.parent)
        loaded = folders[path.parent]
        if name in loaded.found:
            yield _run(name, path, loaded.found[name])
        else:
            yield _failed(name, None, loaded.broken.get(name, "there is no such file"), 0.0)


def _loaded(folder: Path) -> Demonstrations:
    from ..numeric.demonstration import load_demonstrations

    home = importlib.import_module(f"{BUILT_IN}.demonstrations").__path__
    return load_demonstrations(None if str(folder) in home else folder)


def _run(name: str, path: Path, shown: Demonstration) -> DemonstrationRecord:
    started = perf_counter()
    try:
        rows = tuple(shown.run())
        compared = [row.agrees for row in rows if row.agrees is not None]
        records = tuple(map(_row, rows))
    except Exception as error:  # noqa: BLE001 (any failure belongs to this file)
        return _failed(name, shown, "", perf_counter() - started, **broken_by(error, path))
    seconds = perf_counter() - started
    if not compared:
        return _failed(name, shown, "nothing printed is compared with ours", seconds)
    pairs = zip(rows, records, strict=True)
    why = tuple(_against(record) for row, record in pairs if not row.as_expected)
    outcome: Outcome = "reproduced" if all(compared) else "differs"
    return DemonstrationRecord(
        id=name,
        **_said(name, shown),
        rows=records,
        outcome=outcome,
        ok=not why,
        why=why,
        seconds=seconds,
    )


def _said(name: str, shown: Demonstration | None) -> dict[str, Any]:
    """Return what a demonstration says of itself; if it cannot be loaded, only its name."""
    if shown is None:
        return {"title": name, "says": "", "remark": "", "claims": ()}
    return {part: getattr(shown, part) for part in ("title", "says", "remark", "claims")}


def _row(row: Row) -> RowRecord:
    printed = None if row.agrees is None else row.printed_text
    return RowRecord.of(row, ours=row.ours_text, printed=printed)


def _against(row: RowRecord) -> str:
    if row.agrees:
        return f"{row.says}: printed {_line(row.printed)}, as ours, and expected to differ"
    return f"{row.says}: ours {_line(row.ours)}, printed {_line(row.printed)}"


def _line(text: str | None) -> str:
    return "; ".join((text or "").splitlines())


def _failed(
    name: str,
    shown: Demonstration | None,
    why: str,
    seconds: float,
    *,
    error: str = "",
    traceback: str = "",
) -> DemonstrationRecord:
    return DemonstrationRecord(
        id=name,
        **_said(name, shown),
        rows=(),
        outcome="failed",
        ok=False,
        why=(error or why,),
        traceback=traceback,
        seconds=seconds,
    )
