"""Rotary encoding in short formats: errors and their bounds, and where it breaks and drifts.

``python -m benchmarks.precision --markdown docs/precision.md`` writes that page.  The exit code is
1 if an error is above its bound.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from attnproof.documents.document import bar
from attnproof.documents.evidence import write_json
from attnproof.numeric.devices import devices
from benchmarks.markdown import markdown
from benchmarks.precision.record import document, sheets
from benchmarks.precision.survey import survey


def main(arguments: list[str] | None = None) -> int:
    """Measure everything, print the tables, and write them to files if requested."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.precision", description=__doc__)
    parser.add_argument("--device", default="cpu", choices=["auto", *devices()])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the record")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables")
    asked = parser.parse_args(arguments)
    with bar() as shown:
        task = shown.add_task("", total=None)

        def tell(says: str, done: int, total: int) -> None:
            shown.update(task, description=says, completed=done, total=total)

        record = survey(device=asked.device, seed=asked.seed, tell=tell)
    for sheet in sheets(record):
        Console().print(sheet.shown(), "")
    if asked.json is not None:
        print(f"wrote {write_json(record, asked.json)}")
    if asked.markdown is not None:
        asked.markdown.write_text(markdown(document(record)), encoding="utf-8")
        print(f"wrote {asked.markdown}")
    return int(record.violations > 0)


if __name__ == "__main__":
    raise SystemExit(main())
