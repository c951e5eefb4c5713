"""The commands on encodings: ``new``, ``card`` and ``table``, and their list."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .interrupt import Interrupted, held_back
from .options import JsonFile
from .usage import UsageError, require_file, require_known, require_writable

if TYPE_CHECKING:
    from .card_records import BrokenEncoding, TableRecord
    from .encoding import Encoding
    from .encoding_law import EncodingLaw
    from .registry import Encodings

EncodingFiles = Annotated[
    list[Path] | None,
    typer.Option("--encoding", metavar="FILE", help="A file with encodings of yours; repeatable."),
]
LawIds = Annotated[
    list[str] | None, typer.Option("--law", metavar="ID", help="This law only; repeatable.")
]
Limit = Annotated[
    float | None,
    typer.Option(min=0.1, metavar="SECONDS", help="That one law of one encoding may take; 20."),
]
Numeric = Annotated[bool, typer.Option("--numeric", help="Measure in torch as well.")]
KNOWN = "the id of an encoding or a .py file"
WHERE = "`attnproof list --encodings`"


def register(app: typer.Typer) -> None:
    """Give the commands to the command line."""
    for command in (new, card, table):
        app.command()(command)


def new(name: Annotated[str, typer.Argument(metavar="NAME")]) -> int:
    """Write NAME.py, an encoding that works and has a card, to be changed into yours."""
    from .new_encoding import new_encoding

    file = new_encoding(name, Path())
    print(f"wrote {file}; its card: attnproof card {file}")
    return 0


def card(
    names: Annotated[list[str], typer.Argument(metavar="NAME|FILE...")],
    law: LawIds = None,
    json: JsonFile = None,
    numeric: Numeric = False,
    limit: Limit = None,
    encoding: EncodingFiles = None,
) -> int:
    """What encodings do, and each law: proved, refuted, or proved under a hypothesis."""
    from .cards import Card, is_file_name, only

    files = [Path(name) for name in names if is_file_name(name)]
    found, laws = _loaded([*files, *(encoding or ())], law or ())
    ids = [name for name in names if not is_file_name(name)]
    kinds, broken = _chosen(ids, found) if ids else ([], [])
    given = {str(file) for file in (*files, *(encoding or ()))}
    kinds += [k for k in _of_files(files, found) if k not in kinds]
    broken += [fault for fault in found.broken if fault.name in given]
    record = _decide(kinds, laws, broken, json, numeric=numeric, limit=limit)

    from rich.console import Console
    from rich.text import Text

    console = Console()
    for place, one in enumerate(record.encodings):
        print("\n" * bool(place), end="")
        console.print(Card(only(record, one.id)))
    for fault in record.broken:
        console.print(Text(f"! broken: {fault.name}: {fault.error}", "red"), soft_wrap=True)
    return _ended(record, json)


def cores() -> int:
    """How many processes may run at once."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def table(
    encodings: Annotated[
        list[str] | None,
        typer.Option("--encodings", metavar="ID,ID..", help="These only; repeatable."),
    ] = None,
    law: LawIds = None,
    json: JsonFile = None,
    html: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write a page for each encoding.")
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=0, help="Encodings decided at once; 0: one for each core.")
    ] = 0,
    numeric: Numeric = False,
    limit: Limit = None,
    encoding: EncodingFiles = None,
) -> int:
    """Encodings × laws: which encoding obeys which law."""
    from .cards import Table

    found, laws = _loaded(encoding or (), law or ())
    named = [name for part in encodings or () for name in part.split(",")]
    kinds, broken = _chosen(named, found)
    kinds += [kind for kind in _of_files(encoding or (), found) if kind not in kinds]
    if not named or encoding:
        broken = list(found.broken)
    if html is not None:
        require_writable(html)
    record = _decide(
        kinds, laws, broken, json, jobs=jobs or cores(), numeric=numeric, limit=limit, lines=True
    )

    from rich.console import Console

    Console().print(Table(record))
    if html is not None:
        from .report.encodings import write_encodings

        print(f"wrote {write_encodings(record, {kind.id(): kind for kind in kinds}, html)}")
    return _ended(record, json)


def _loaded(files: Sequence[Path], laws: Sequence[str]) -> tuple[Encodings, Sequence[EncodingLaw]]:
    """The encodings with those of these files, and the laws that are asked for."""
    for file in files:
        if not file.exists():
            raise UsageError(f"wanted {KNOWN}, got {file}, which is not there; check the path")
        if file.is_dir() or file.suffix != ".py":
            raise UsageError(f"wanted a .py file with encodings, got {file}; name the file")
    with held_back():
        for part in ("encoding_table", "laws", "cells"):
            import_module(f".{part}", __package__)
    from .cards import laws_of
    from .registry import load_encodings

    return load_encodings(files), laws_of(laws)


def _chosen(
    names: Sequence[str], found: Encodings
) -> tuple[list[type[Encoding]], list[BrokenEncoding]]:
    """The encodings with these ids, or all; of ids that broken modules would have, the faults."""
    if not names:
        return list(found.kinds), []
    lost = {fault.name.rpartition(".")[2].replace("_", "-"): fault for fault in found.broken}
    for name in set(names) - {*found.ids, *lost}:
        if Path(f"{name}.py").is_file():
            raise UsageError(f"wanted {KNOWN}, got {name!r}; the file is {name}.py")
    require_known(names, (*found.ids, *lost), KNOWN, WHERE)
    chosen = dict.fromkeys(names)
    return (
        [found.only(name) for name in chosen if name in found.ids],
        [lost[name] for name in chosen if name not in found.ids],
    )


def _of_files(files: Sequence[Path], found: Encodings) -> list[type[Encoding]]:
    from .descriptions import source_of

    wanted = {file.resolve() for file in files}
    return [kind for kind in found.kinds if source_of(kind) in wanted]


def _decide(
    kinds: Sequence[type[Encoding]], laws: Sequence[EncodingLaw],
    broken: Sequence[BrokenEncoding], json: Path | None, *,
    jobs: int = 1, numeric: bool = False, limit: float | None = None,
    lines: bool = False,
) -> TableRecord:  # fmt: skip
    """Decide with a bar; an interrupt before anything was decided leaves nothing."""
    if json is not None:
        require_file(json)
    if numeric:
        _require_torch()
    from rich.console import Console

    from .encoding_table import LIMIT, tabulate
    from .table_progress import table_progress

    with table_progress(Console(stderr=True), len(kinds), len(laws), lines=lines) as tell:
        record = tabulate(
            kinds, laws, broken=broken, jobs=jobs, numeric=numeric, tell=tell,
            limit=LIMIT if limit is None else limit,
        )
    if record.unfinished and not record.cells:
        raise Interrupted("interrupted before any law was decided; nothing written")
    return record


def _require_torch() -> None:
    try:
        with held_back():
            import_module(".measuring", __package__)
            import_module(".numeric.check", __package__)
    except ImportError as error:
        told = f"--numeric needs torch ({error}); leave it out, or install torch"
        raise UsageError(told) from None


def _ended(record: TableRecord, json: Path | None) -> int:
    """Write the record if it is asked for; the exit code."""
    from .faults import exit_code, tell_faults

    if json is not None:
        from .output import write_json

        print(f"wrote {write_json(record, json)}")
    tell_faults(record, json)
    if record.unfinished:
        return 130
    return exit_code([record], 0 if record.ok else 1)


def list_encodings(files: Sequence[Path]) -> int:
    """Print the encodings, by where they act, and the laws; the exit code."""
    from itertools import groupby

    from .registry import place_words

    found, laws = _loaded(files, ())
    for acts, kinds in groupby(found.kinds, place_words):
        print(f"encodings {acts}" if acts.startswith("added") else f"encodings that act {acts}")
        for kind in kinds:
            print(f"  {kind.id():<24} {kind.title or kind.__name__}")
    for group, told in groupby(laws, lambda law: law.group):
        print(f"laws about {group}")
        for law in told:
            print(f"  {law.id:<24} {law.title}")
    for fault in found.broken:
        print(f"! broken: {fault.name}\n      {fault.error}", file=sys.stdout)
    return 1 if found.broken else 0
