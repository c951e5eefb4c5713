"""Check every law on what public libraries ship: ``python -m benchmarks.zoo``.

Each line of ``subjects.toml`` is checked as a user would, in a process of its own.  After every
subject the results are written, and the log says which verdicts are others than those stored; at
the end docs/zoo/<library>.md is written.  ``--only`` checks some subjects again and ``--continue``
those whose line has not been run; the others keep their results, with their date and versions.
``--pages`` writes the pages from stored results, for which no library needs to be installed.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

from .judging import judgements
from .pages import overview, page
from .results import Row, checked, head, read, write
from .subjects import Library, libraries, with_rotary_classes


def run(
    library: Library,
    out: Path,
    *,
    seconds: int,
    only: Sequence[str] = (),
    going_on: bool = False,
) -> None:
    """Check the subjects of one library, and write its page."""
    path = out / f"{library.name}.json"
    told = head(
        library.name, library.packages, f"python -m benchmarks.zoo --library {library.name}"
    )
    stamp = {"made": told["made"], "versions": told["versions"]}
    known = {*library.lines, *library.uncalled}
    rows = {name: one for name, one in read(path)[1].items() if name in known}
    chosen = [
        (name, line)
        for name, line in library.lines.items()
        if any(word in name for word in only or ("",))
        and not (going_on and rows.get(name, {}).get("line") == line)
    ]
    for done, (name, line) in enumerate(chosen, 1):
        target, _, flags = line.partition(" ")
        found = {**checked(target, flags, seconds), "name": name, "line": line, **stamp}
        before = rows.get(name, {}).get("laws", {})
        rows[name] = {**found, "same": list(library.same.get(name, ()))}
        write(path, told, rows)
        lines = (_line(rows[name]), *changes(before, rows[name]["laws"]))
        print(f"{done}/{len(chosen)}", "\n  ".join(lines), flush=True)
    written(library, out)


def _line(one: Row) -> str:
    """Return the line of a subject in the log."""
    counts = " ".join(f"{len(laws)} {verdict}" for verdict, laws in one["laws"].items() if laws)
    return f"{one['name']}: {(one['why'] or counts)[:200]} ({one['user']} s)"


def changes(before: Mapping[str, Sequence[str]], now: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a line for each law whose verdict is another one than in the stored results.

    >>> changes({"proved": ["norm"], "exact": ["linear"]}, {"exact": ["norm", "linear"]})
    ['norm: was proved, is exact']
    """
    known = {law: verdict for verdict, laws in before.items() for law in laws}
    found = {law: verdict for verdict, laws in now.items() for law in laws}
    return [
        f"{law}: was {known[law]}, is {verdict}"
        for law, verdict in found.items()
        if known.get(law, verdict) != verdict
    ]


def written(library: Library, out: Path) -> None:
    """Write the page of a library from its results."""
    text = page(*read(out / f"{library.name}.json"), judgements(), library.uncalled)
    (out / f"{library.name}.md").write_text(text, encoding="utf-8")


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
    parser.add_argument(
        "--limit", type=int, default=120, metavar="SECONDS", help="processor time of one check"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        default=(),
        metavar="NAME",
        help="subjects whose name contains one of these",
    )
    parser.add_argument(
        "--continue", dest="going_on", action="store_true", help="lines that have not been run"
    )
    parser.add_argument(
        "--pages", action="store_true", help="only write the pages, from stored results"
    )
    asked = parser.parse_args(arguments)
    for name in asked.library or known:
        library = known[name]
        if asked.pages:
            written(library, asked.out)
            continue
        try:
            if name == "transformers":
                library = with_rotary_classes(library)
            run(library, asked.out, seconds=asked.limit, only=asked.only, going_on=asked.going_on)
        except (ImportError, metadata.PackageNotFoundError) as error:
            print(f"{name}: not looked at: {error}")
    asked.out.with_suffix(".md").write_text(overview_of(asked.out), encoding="utf-8")


if __name__ == "__main__":
    main()
