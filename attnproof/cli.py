"""The command line.  Its commands load what they need when they run, so that help is quick."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from . import __version__
from .interrupt import Interrupted, held_back
from .usage import (
    UsageError,
    require_device,
    require_file,
    require_id,
    require_known,
    require_theorems,
    require_writable,
)

try:
    import typer
except KeyboardInterrupt:  # before there is a command that could tell of it
    print("attnproof: interrupted", file=sys.stderr)
    raise SystemExit(130) from None

if TYPE_CHECKING:
    from .catalogue import Catalogue, Source
    from .runner import Options

__all__ = ["app", "main"]

app = typer.Typer(
    name="attnproof",
    help="Theorems on attention and positional encodings: proved for every size, and measured.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


class Scale(StrEnum):
    """How large the numbers' arrays are."""

    small = "small"
    default = "default"
    large = "large"


class Dtype(StrEnum):
    """What the numbers are computed in."""

    float64 = "float64"
    float32 = "float32"
    bfloat16 = "bfloat16"
    float16 = "float16"


Folders = Annotated[
    list[Path] | None,
    typer.Option("--theorems", metavar="DIR", help="Your own theorem files: a folder or a file."),
]
ScaleOption = Annotated[Scale, typer.Option(help="Size of the arrays that are measured.")]
DeviceOption = Annotated[
    str, typer.Option(metavar="auto|cpu|cuda|mps", help="Where numbers are computed.")
]
Dtypes = Annotated[
    list[Dtype] | None, typer.Option("--dtype", help="Measure in this dtype only; repeatable.")
]
Seed = Annotated[int, typer.Option(min=0, help="Of every random input.")]
NoNumeric = Annotated[bool, typer.Option("--no-numeric", help="Prove and refute only.")]


def _version(asked: bool) -> None:
    if asked:
        print(f"attnproof {__version__}")
        raise typer.Exit


@app.callback()
def _app(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="The version.")
    ] = False,
) -> None:
    """Theorems on attention and positional encodings: proved for every size, and measured."""


@app.command("list")
def list_theorems(theorems: Folders = None) -> int:
    """The theorems, by subject."""
    from .listing import list_catalogue

    catalogue = _catalogue(theorems)
    print(list_catalogue(catalogue))
    return 1 if catalogue.broken else 0


@app.command()
def show(
    names: Annotated[list[str], typer.Argument(metavar="ID...", help="Of a theorem, or several.")],
    steps: Annotated[bool, typer.Option("--steps", help="Every kernel step as well.")] = False,
    scale: ScaleOption = Scale.small,
    device: DeviceOption = "auto",
    dtype: Dtypes = None,
    seed: Seed = 0,
    no_numeric: NoNumeric = False,
    theorems: Folders = None,
) -> int:
    """Theorems: statement, proof, assumptions, numbers, twin."""
    catalogue = _catalogue(theorems)
    for name in names:
        chosen = catalogue.select([name])
        members = [member.id for part in (chosen.entries, chosen.broken) for member in part]
        require_id(name, catalogue.ids, members)
    options = _options(not no_numeric, scale, device, dtype, seed)
    codes = []
    for place, name in enumerate(names):
        print("\n" * place, end="")
        codes.append(_shown(catalogue.only(name), options, steps=steps))
    return max(codes)


def _shown(chosen: Catalogue, options: Options, *, steps: bool) -> int:
    """Print the page of one theorem; the exit code."""
    from .page import kernel_steps, page
    from .records import BrokenFile
    from .runner import check
    from .symbolic.prove import decide

    for broken in chosen.broken:
        return _told(broken.source, broken.error)
    (entry,) = chosen.entries
    outcome = check(entry.theorem, entry.source, options)
    if isinstance(outcome, BrokenFile):
        return _told(entry.source, outcome.error)
    print(page(outcome, kernel_steps(decide(entry.theorem.statement)) if steps else ()))
    return 0 if outcome.ok else 1


@app.command()
def run(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[ID or subject]...", help="All, if none.")
    ] = None,
    scale: ScaleOption = Scale.default,
    device: DeviceOption = "auto",
    dtype: Dtypes = None,
    seed: Seed = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Theorems checked at once.")] = 1,
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the record.")] = None,
    html: Annotated[Path | None, typer.Option(metavar="DIR", help="Write the report.")] = None,
    no_numeric: NoNumeric = False,
    theorems: Folders = None,
) -> int:
    """Check theorems; the exit code is 0 if all is as expected."""
    catalogue = _catalogue(theorems)
    require_known(names or (), catalogue.names)
    if json is not None:
        require_file(json)
    if html is not None:
        require_writable(html)

    from rich.console import Console

    from .output import write_html, write_json
    from .runner import run as run_catalogue
    from .terminal import progress, table

    options = _options(not no_numeric, scale, device, dtype, seed, jobs)
    chosen = catalogue.select(names or ())
    coming = [member.id for part in (chosen.broken, chosen.entries) for member in part]
    with progress(Console(stderr=True), coming) as tell:
        results = run_catalogue(chosen, options, tuple(names or ()), tell)
    if results.unfinished and not results.theorems:
        raise Interrupted("interrupted before any theorem was finished; nothing written")
    table(results, Console())
    for wanted, write in ((json, write_json), (html, write_html)):
        if wanted is not None:
            print(f"wrote {write(results, wanted)}")
    if results.unfinished:
        return 130
    return 0 if results.ok else 1


@app.command()
def schema() -> int:
    """The JSON schema of the record."""
    from .records import schema_text

    print(schema_text(), end="")
    return 0


def _told(source: Source, error: str) -> int:
    print(f"attnproof: {source.path}: {error}", file=sys.stderr)
    return 1


def _options(
    numeric: bool, scale: Scale, device: str, dtypes: list[Dtype] | None, seed: int, jobs: int = 1
) -> Options:
    from .machine import default_dtypes
    from .runner import Options

    require_device(device)
    with held_back():
        present = default_dtypes(device) if numeric else ()
        for side in ("symbolic.prove", *["numeric.check"] * numeric):
            import_module(f".{side}", __package__)
    asked = tuple(dtype.value for dtype in dtypes or ())
    return Options(numeric, scale.value, device, asked or present, seed, jobs)


def _catalogue(theorems: list[Path] | None) -> Catalogue:
    from .catalogue import load_catalogue, theorem_files

    for place in theorems or ():
        require_theorems(place, theorem_files(place))
    return load_catalogue(theorems or ())


def main(arguments: list[str] | None = None) -> int:
    """Run a command; the exit code.  A usage error is one line on standard error."""
    given = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    try:
        code = app(given, prog_name="attnproof", standalone_mode=False)
    except UsageError as error:
        print(f"attnproof: {error}", file=sys.stderr)
        return 2
    except typer.TyperException as error:
        told = " ".join(error.format_message().split()).rstrip(".").replace("Value error, ", "")
        came = " ".join(["attnproof", *given])
        where = getattr(getattr(error, "ctx", None), "command_path", "attnproof")
        print(f"attnproof: {told}; got `{came}`; see `{where} --help`", file=sys.stderr)
        return 2
    except Interrupted as left:
        print(f"attnproof: {left}", file=sys.stderr)
        return 130
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except BrokenPipeError:
        # A reader such as `head` has seen enough; nothing may be flushed to it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if code == 130:  # typer returns it for Ctrl-C, and says nothing
        print("attnproof: interrupted", file=sys.stderr)
    return code if isinstance(code, int) else 0
