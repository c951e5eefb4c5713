"""The commands on encodings: ``new``, ``card`` and ``table``, and the list of encodings."""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..documents.document import Line, show
from ..errors import (
    Interrupted,
    UsageError,
    interrupts_delayed,
    require_file,
    require_known,
    require_writable,
)
from .options import EncodingFiles, JsonFile, app, cores, finish, load

if TYPE_CHECKING:
    from ..cards.records import BrokenEncoding, TableRecord
    from ..cards.registry import Encodings
    from ..encoding.base import Encoding
    from ..encoding.law import EncodingLaw


LawIds = Annotated[
    list[str] | None, typer.Option("--law", metavar="ID", help="Decide only this law; repeatable.")
]
Limit = Annotated[
    float | None,
    typer.Option(
        min=0.1, metavar="SECONDS", help="Time limit for one law of one encoding; default: 20."
    ),
]
Numeric = Annotated[bool, typer.Option("--numeric", help="Also measure in torch.")]
KNOWN = "the id of an encoding or a .py file"
WHERE = "`attnproof list --encodings`"


@app.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the class and its file.")],
) -> int:
    """Write NAME.py, a working example encoding to adapt."""
    file = new_encoding(name, Path())
    print(f"wrote {file}; its card: attnproof card {file}")
    return 0


@app.command()
def card(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME|FILE...", help="Ids of encodings, or .py files.")
    ],
    law: LawIds = None,
    json: JsonFile = None,
    numeric: Numeric = False,
    limit: Limit = None,
    encoding: EncodingFiles = None,
) -> int:
    """Show encodings, and which laws each of them obeys.

    Each law is proved, refuted, or proved under a hypothesis; otherwise it is undecided, or does
    not apply.
    """
    from ..answers.cards import Card, is_file_name, only

    files = [Path(name) for name in names if is_file_name(name)]
    found, laws = _loaded([*files, *(encoding or ())], law or ())
    ids = [name for name in names if not is_file_name(name)]
    kinds, broken = _chosen(ids, found) if ids else ([], [])
    given = {str(file) for file in (*files, *(encoding or ()))}
    kinds += [k for k in _of_files(files, found) if k not in kinds]
    broken += [fault for fault in found.broken if fault.name in given]
    record = _decide(kinds, laws, broken, json, numeric=numeric, limit=limit)

    for place, one in enumerate(record.encodings):
        show([*[""] * bool(place), Card(only(record, one.id))])
    show(Line(f"! broken: {fault.name}: {fault.error}", "red") for fault in record.broken)
    return finish(record, json, ok=record.ok)


@app.command()
def table(
    encodings: Annotated[
        list[str] | None,
        typer.Option("--encodings", metavar="ID,ID..", help="Only these encodings; repeatable."),
    ] = None,
    law: LawIds = None,
    json: JsonFile = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write an HTML page for each encoding to this folder."),
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=0, help="Number of parallel workers; 0: one per core.")
    ] = 0,
    numeric: Numeric = False,
    limit: Limit = None,
    encoding: EncodingFiles = None,
) -> int:
    """Show which encodings obey which laws, as a table."""
    from ..answers.cards import Table

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

    show([Table(record)])
    if html is not None:
        from ..report.encodings import write_encodings

        print(f"wrote {write_encodings(record, {kind.id(): kind for kind in kinds}, html)}")
    return finish(record, json, ok=record.ok)


def _loaded(files: Sequence[Path], laws: Sequence[str]) -> tuple[Encodings, Sequence[EncodingLaw]]:
    """Return the encodings, including those of these files, and the laws that were asked for."""
    for file in files:
        if not file.exists():
            raise UsageError(f"wanted {KNOWN}, got {file}, which does not exist; check the path")
        if file.is_dir() or file.suffix != ".py":
            raise UsageError(f"wanted a .py file with encodings, got {file}; name the file")
    with interrupts_delayed():
        for part in ("cards.table", "laws", "cards.verdicts"):
            import_module(f"attnproof.{part}")
    from ..answers.cards import laws_of
    from ..cards.registry import load_encodings

    return load_encodings(files), laws_of(laws)


def _chosen(
    names: Sequence[str], found: Encodings
) -> tuple[list[type[Encoding]], list[BrokenEncoding]]:
    """Return the encodings with these ids, or all; and faults of modules that would have them."""
    if not names:
        return list(found.kinds), []
    from ..cards.registry import ids_lost

    lost = {name: fault for fault in found.broken for name in ids_lost(fault)}
    for name in set(names) - {*found.ids, *lost}:
        if Path(f"{name}.py").is_file():
            raise UsageError(f"wanted {KNOWN}, got {name!r}; the file is {name}.py")
    require_known(names, (*found.ids, *lost), KNOWN, WHERE)
    chosen = dict.fromkeys(names)
    missing = {lost[name].name: lost[name] for name in chosen if name not in found.ids}
    return [found.only(name) for name in chosen if name in found.ids], [*missing.values()]


def _of_files(files: Sequence[Path], found: Encodings) -> list[type[Encoding]]:
    from ..cards.registry import source_of

    wanted = {file.resolve() for file in files}
    return [kind for kind in found.kinds if source_of(kind) in wanted]


def _decide(
    kinds: Sequence[type[Encoding]],
    laws: Sequence[EncodingLaw],
    broken: Sequence[BrokenEncoding],
    json: Path | None,
    *,
    jobs: int = 1,
    numeric: bool = False,
    limit: float | None = None,
    lines: bool = False,
) -> TableRecord:
    """Decide with a progress bar; interrupted before anything was decided, leave nothing."""
    require_file(json)
    if numeric:
        load(
            "--numeric needs",
            "cards.verdicts",
            "numeric.check",
            instead="leave it out, or install torch",
        )
    from rich.console import Console

    from ..cards.page import table_progress
    from ..cards.table import tabulate
    from ..cards.verdicts import LIMIT

    with table_progress(Console(stderr=True), len(kinds), len(laws), lines=lines) as tell:
        record = tabulate(
            kinds,
            laws,
            broken=broken,
            jobs=jobs,
            numeric=numeric,
            tell=tell,
            limit=LIMIT if limit is None else limit,
        )
    if record.unfinished and not record.cells:
        raise Interrupted("interrupted before any law was decided; nothing written")
    return record


def list_encodings(files: Sequence[Path]) -> int:
    """Print the encodings, by where they act, and the laws; return the exit code."""
    from itertools import groupby

    from ..cards.registry import place_words

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


TEXT = '''"""{title}: scores fall with the square of the distance.

See its card with

    attnproof card {file}
"""

from attnproof import Encoding, at_least, hypothesis, real


class {name}(Encoding):
    """−strength·(m − n)² is added to the score of a query at m with a key at n."""

    title = "{title}"
    source = ("where it was published, and the equation there",)

    # Parameters, as general as possible: laws are proved for every real strength.  Other kinds are
    # positive(), natural(), real(d, d), frequencies(B); a learned table is a function(0) that is
    # called at positions, or function(0, out=(d,)) if its rows are vectors.  Axis lengths are
    # declared by (d,) = sizes("d", "features"); a query has `width` features, by default d.
    given = {{"strength": real()}}
    # Values for plots and measurements; proofs do not use them.
    defaults = {{"strength": 0.01}}

    # What it does, in plain array code, in one or more of these methods:
    #   add(p)               is added to the token at position p
    #   rotate(x, p)           a query or key x at p; or query(q, p) and key(k, p) separately
    #   relate(q, k, m, n)   is added to the product q·k of a query at m and a key at n
    #   bias(m, n)           is added to the score, which is that product divided by √d
    #   sees(m, n)           whether the query sees the key (a mask)
    #   value(v, m, n)       the value at n, as the query at m reads it
    # Positions p are a number or a vector: for x (.., d) and p (..), rotate and add return (.., d),
    # so p[..., None] broadcasts over the features.  For pairs q is (r, 1, d), k (1, c, d), v
    # (1, c, e), m (r, 1) and n (1, c); relate, bias, sees return (r, c), value returns (r, c, e).
    # Functions of arrays: xp = array_namespace(m) from array_api_compat, then xp.exp, xp.abs,
    # xp.sum, ..; use xp.where(m > n, .., ..) instead of if, and & | ~ instead of and, or, not.
    def bias(self, m, n):
        return -self.strength * (m - n) ** 2

    # A hypothesis on the parameters.  A law that fails without it is tried with it, and the card
    # shows both the proof under the hypothesis and a witness that it is needed.
    @hypothesis("the strength is at least 0")
    def strength_not_negative(self):
        return [at_least(self.strength, 0)]
'''


def new_encoding(name: str, folder: Path) -> Path:
    """Write ``NAME.py`` into the folder; return the path.

    An existing file is never overwritten.
    """
    if not name.isidentifier() or keyword.iskeyword(name) or not name.isascii():
        raise UsageError(
            f"wanted a name for a class and its file, such as my_encoding, got {name!r}; "
            "letters, digits and _ only, and not a Python keyword"
        )
    words = [word for word in re.split(r"_+", name) if word]
    made = "".join(word[0].upper() + word[1:] for word in words)
    if not words or not made.isidentifier():
        raise UsageError(f"wanted a name that begins with a letter, got {name!r}")
    if made == "Encoding":
        raise UsageError(
            f"the name {name} is that of the base class of encodings; choose another name"
        )
    file = folder / f"{name}.py"
    text = TEXT.format(name=made, title=" ".join(words), file=file.name)
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        raise UsageError(f"{file} exists and is not overwritten; choose another name") from None
    except OSError as error:
        why = error.strerror or error
        raise UsageError(f"wanted to write {file}, but {why}; go to another folder") from None
    return file
