"""Check every law on every class of public libraries: ``python -m benchmarks.zoo``.

Writes docs/zoo/<library>.md and, after every class, the results; a class that fails, crashes or
never ends does not affect the others.  ``--only`` checks some classes again and keeps the results
of the others; ``--pages`` writes the pages from stored results.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType

import torch

from .examining import METHODS, examined
from .judging import judgements
from .pages import overview, page
from .results import Row, head, read, row, write

PREFIX = "subjects_"


def libraries() -> dict[str, str]:
    """Return the known libraries, and the module of each."""
    files = sorted(Path(__file__).parent.glob(f"{PREFIX}*.py"))
    return {f.stem.removeprefix(PREFIX).replace("_", "-"): f"{__package__}.{f.stem}" for f in files}


def run(
    library: str,
    module: ModuleType,
    out: Path,
    *,
    limit: float,
    jobs: int,
    only: Sequence[str],
    command: str,
    going_on: bool = False,
    methods: Sequence[str] = METHODS,
) -> None:
    """Check the subjects of one library, and write its page."""
    path = out / f"{library}.json"
    before = read(path)[1] if only or going_on else {}
    chosen = [
        one
        for one in module.subjects()
        if any(word in one[0] for word in only or ("",)) and not (going_on and one[0] in before)
    ]
    told = head(library, getattr(module, "PACKAGES", (library,)), command)
    rows = dict(before)
    for done, record in enumerate(examined(chosen, limit=limit, jobs=jobs, methods=methods), 1):
        rows[record.target] = row(record)
        write(path, told, rows)
        print(f"{done}/{len(chosen)} {_line(rows[record.target])}", flush=True)
    order = {name: k for k, (name, _) in enumerate(module.subjects())}
    rows = dict(sorted(rows.items(), key=lambda one: order.get(one[0], len(order))))
    write(path, told, rows)
    written(library, module, out)


def _line(one: Row) -> str:
    """Return the line of a subject in the log."""
    counts = " ".join(f"{len(laws)} {verdict}" for verdict, laws in one["laws"].items() if laws)
    return f"{one['name']}: {(one['why'] or one['stopped'] or counts)[:200]} ({one['seconds']} s)"


def written(library: str, module: ModuleType, out: Path) -> None:
    """Write the page of a library from its results."""
    told, rows = read(out / f"{library}.json")
    same = module.same_code() if hasattr(module, "same_code") else ()
    text = page(told, rows, judgements(), same)
    (out / f"{library}.md").write_text(text, encoding="utf-8")


def overview_of(out: Path) -> str:
    """Return the overview of all libraries that have results."""
    found = [read(path) for path in sorted(out.glob("*.json")) if path.stem != "trial"]
    return overview(found, judgements())


def main(arguments: list[str] | None = None) -> None:
    """Check the named libraries, by default all that are installed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.zoo", description=__doc__)
    known = libraries()
    parser.add_argument("--library", action="append", choices=list(known), help="by default all")
    parser.add_argument("--out", type=Path, default=Path("docs/zoo"), metavar="FOLDER")
    parser.add_argument("--limit", type=float, default=60.0, metavar="SECONDS", help="per class")
    parser.add_argument("--jobs", type=int, default=2, metavar="N")
    parser.add_argument(
        "--only",
        nargs="+",
        default=(),
        metavar="NAME",
        help="classes whose name contains one of these",
    )
    parser.add_argument(
        "--continue", dest="going_on", action="store_true", help="classes that have no results yet"
    )
    parser.add_argument(
        "--methods", nargs="+", default=METHODS, choices=METHODS, help="by default all"
    )
    parser.add_argument(
        "--pages", action="store_true", help="only write the pages, from stored results"
    )
    asked = parser.parse_args(arguments)
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    for library in asked.library or known:
        try:
            module = import_module(known[library])
            if asked.pages:
                written(library, module, asked.out)
                continue
            made = f"python -m benchmarks.zoo --library {library}"
            if set(asked.methods) != set(METHODS):
                made += f" --methods {' '.join(asked.methods)}"
            run(
                library,
                module,
                asked.out,
                limit=asked.limit,
                jobs=asked.jobs,
                only=asked.only,
                command=made,
                methods=asked.methods,
                going_on=asked.going_on,
            )
        except (ImportError, metadata.PackageNotFoundError) as error:
            print(f"{library}: not looked at: {error}")
        except Exception as error:  # noqa: BLE001 (a library may raise anything where it is loaded)
            told = f"{type(error).__name__}: {error}"
            print(f"{library}: not looked at, or not to its end: {told}")
    asked.out.with_suffix(".md").write_text(overview_of(asked.out), encoding="utf-8")


if __name__ == "__main__":
    main()
