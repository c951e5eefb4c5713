"""The command line.  Its commands load what they need when they run, so that help is quick."""

from __future__ import annotations

import io
import os
import sys
from copy import copy
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from . import __version__
from .interrupt import Interrupted
from .usage import (
    UsageError,
    chosen_verdicts,
    require_file,
    require_id,
    require_known,
    require_writable,
)

try:
    import typer
except KeyboardInterrupt:  # before there is a command that could tell of it
    print("attnproof: interrupted", file=sys.stderr)
    raise SystemExit(130) from None

from .calibrate_commands import register as register_calibrate
from .encoding_commands import EncodingFiles, list_encodings, register
from .options import (
    DeviceOption,
    Dtypes,
    Folders,
    Fresh,
    Jobs,
    JsonFile,
    NoNumeric,
    Scale,
    ScaleOption,
    Seed,
    StoreFile,
    kept_in,
    loaded,
    options_of,
)  # fmt: skip
from .precision_commands import register as register_precision
from .real_code.commands import list_code_laws
from .real_code.commands import register as register_real_code
from .scale_commands import register as register_scale
from .sharded_command import register as register_sharded
from .sweep_commands import register as register_sweep
from .trials_commands import register as register_trials

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .catalogue import Catalogue
    from .checking import Options
    from .ledger import Ledger
    from .records import Results
    from .sweeping.kept import Kept

app = typer.Typer(
    name="attnproof",
    help="Theorems on attention and positional encodings: proved for every size, and measured.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


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
def list_theorems(
    encodings: Annotated[
        bool, typer.Option("--encodings", help="The encodings and the laws instead.")
    ] = False,
    encoding: EncodingFiles = None,
    code_laws: Annotated[
        bool, typer.Option("--code-laws", help="The laws of real code instead.")
    ] = False,
    theorems: Folders = None,
) -> int:
    """The theorems, by subject, and the documents; or encodings, or the laws of code."""
    if code_laws and (encodings or encoding):
        raise UsageError("wanted one list, got --code-laws and encodings; give one of them")
    if code_laws:
        return list_code_laws()
    if encodings or encoding:
        return list_encodings(encoding or ())
    from .listing import list_catalogue

    catalogue, ledger = loaded(theorems)
    print(list_catalogue(catalogue, ledger))
    return 1 if catalogue.broken or ledger.broken else 0


@app.command()
def show(
    names: Annotated[list[str], typer.Argument(metavar="ID...", help="Of theorems or claims.")],
    steps: Annotated[bool, typer.Option("--steps", help="Every kernel step as well.")] = False,
    sympy: Annotated[
        bool, typer.Option("--sympy", help="Both sides as SymPy expressions instead.")
    ] = False,
    scale: ScaleOption = Scale.small,
    device: DeviceOption = "auto",
    dtype: Dtypes = None,
    seed: Seed = 0,
    no_numeric: NoNumeric = False,
    theorems: Folders = None,
) -> int:
    """Theorems: statement, proof, assumptions, numbers, control.  Claims: what decides them."""
    catalogue, ledger = loaded(theorems)
    ids = (*catalogue.ids, *ledger.ids)
    for name in names:
        chosen, claims = catalogue.select([name]), ledger.select([name])
        members = [member.id for part in (chosen.entries, chosen.broken) for member in part]
        if members or not claims.claims:
            require_id(name, ids, members, "subject")
        else:
            require_id(name, ids, claims.ids, "document")
    from .show_command import show_claim, show_sides, show_theorem

    options = options_of(not no_numeric, scale, device, dtype, seed)
    codes = []
    for place, name in enumerate(names):
        print("\n" * place, end="")
        if name in catalogue.ids and sympy:
            codes.append(show_sides(catalogue.only(name)))
        elif name in catalogue.ids:
            codes.append(show_theorem(catalogue.only(name), options, steps=steps))
        else:
            codes.append(show_claim(catalogue, ledger.select([name]), options))
    return max(codes)


@app.command()
def claims(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[ID or document]...", help="All, if none.")
    ] = None,
    verdict: Annotated[
        list[str] | None,
        typer.Option(help="Show only this one, by its first words; repeatable."),
    ] = None,
    numeric: Annotated[
        bool, typer.Option("--numeric/--no-numeric", help="Measure the statements as well.")
    ] = False,
    scale: ScaleOption = Scale.small,
    device: DeviceOption = "auto",
    dtype: Dtypes = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    json: JsonFile = None,
    store: StoreFile = None,
    fresh: Fresh = False,
    theorems: Folders = None,
) -> int:
    """Claims of the documents: each with its verdict, derived from what decides it.

    A table should be quick, so nothing is measured unless --numeric asks for it.
    """
    from .ledger import VERDICTS

    wanted = chosen_verdicts(verdict or (), VERDICTS)
    catalogue, ledger = loaded(theorems)
    require_known(
        names or (), ledger.names, "the id of a claim or a document", "`attnproof claims`"
    )
    if json is not None:
        require_file(json)

    from rich.console import Console

    from .claims_table import claims_table
    from .terminal import from_store

    options = options_of(numeric, scale, device, dtype, seed, jobs)
    chosen = ledger.select(names or ())
    kept = kept_in(store, fresh=fresh)
    parts = catalogue.having(chosen.theorems)
    results = _run(parts, chosen, options, names or (), kept, lines=False)
    claims_table(results, Console(), wanted)
    if told := from_store(results):
        print(told)
    return _ended(results, json, None)


@app.command()
def run(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID, subject or document]...", help="All, if none."),
    ] = None,
    scale: ScaleOption = Scale.default,
    device: DeviceOption = "auto",
    dtype: Dtypes = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    json: JsonFile = None,
    html: Annotated[Path | None, typer.Option(metavar="DIR", help="Write the report.")] = None,
    no_numeric: NoNumeric = False,
    store: StoreFile = None,
    fresh: Fresh = False,
    theorems: Folders = None,
) -> int:
    """Check theorems and claims; the exit code is 0 if all is as expected."""
    catalogue, ledger = loaded(theorems)
    require_known(names or (), (*catalogue.names, *ledger.names))
    if json is not None:
        require_file(json)
    if html is not None:
        require_writable(html)

    from rich.console import Console

    from .terminal import table

    options = options_of(not no_numeric, scale, device, dtype, seed, jobs)
    chosen = ledger.select(names or ())
    needed = catalogue.select([*names, *chosen.theorems]) if names else catalogue
    results = _run(needed, chosen, options, names or (), kept_in(store, fresh=fresh))
    table(results, Console())
    return _ended(results, json, html)


def _run(
    catalogue: Catalogue, ledger: Ledger, options: Options, names: Sequence[str],
    kept: Kept | None, *, lines: bool = True,
) -> Results:  # fmt: skip
    """Run with a bar; an interrupt before anything was finished leaves nothing."""
    from rich.console import Console

    from .progress import progress
    from .runner import run as run_catalogue

    broken = [*(b.id for b in catalogue.broken), *(b.file for b in ledger.broken)]
    coming = [*broken, *(entry.id for entry in catalogue.entries), *ledger.demonstrations]
    with progress(Console(stderr=True), coming, lines=lines) as tell:
        results = run_catalogue(catalogue, options, tuple(names), tell, ledger, kept)
    for line in kept.told if kept is not None else ():
        print(f"attnproof: {line}", file=sys.stderr)
    if results.unfinished and not results.theorems:
        raise Interrupted("interrupted before any theorem was finished; nothing written")
    return results


def _ended(results: Results, json: Path | None, html: Path | None) -> int:
    """Write what was asked for; the exit code."""
    from .faults import exit_code, tell_faults
    from .output import write_html, write_json

    for wanted, write in ((json, write_json), (html, write_html)):
        if wanted is not None:
            print(f"wrote {write(results, wanted)}")
    tell_faults(results, json)
    if results.unfinished:
        return 130
    return exit_code([results], 0 if results.ok else 1)


register(app)
register_calibrate(app)
register_precision(app)
register_real_code(app)
register_scale(app)
register_sharded(app)
register_sweep(app)
register_trials(app)


RECORDS = {
    "": ("records", "Results"), "--table": ("card_records", "TableRecord"),
    "--trials": ("trial_records", "TrialsRecord"), "--sweep": ("sweeping.records", "SweepRecord"),
    "--code": ("real_code.records", "CodesRecord"),
    "--calibration": ("numeric.calibration.record", "Calibration"),
}  # fmt: skip


@app.command()
def schema(
    table: Annotated[bool, typer.Option("--table", help="Of the table of encodings.")] = False,
    trials: Annotated[bool, typer.Option("--trials", help="Of the tables of trials.")] = False,
    of_sweep: Annotated[bool, typer.Option("--sweep", help="Of a sweep.")] = False,
    code: Annotated[bool, typer.Option("--code", help="Of code that was checked.")] = False,
    calibration: Annotated[
        bool, typer.Option("--calibration", help="Of a calibration; needs torch.")
    ] = False,
) -> int:
    """The JSON schema of the record."""
    asked = {
        "--table": table, "--trials": trials, "--sweep": of_sweep, "--code": code,
        "--calibration": calibration,
    }  # fmt: skip
    given = [flag for flag, on in asked.items() if on]
    if len(given) > 1:
        raise UsageError(f"wanted one record, got {' and '.join(given)}; give one of them at most")
    from .evidence import schema_text

    home, name = RECORDS[given[0] if given else ""]
    print(schema_text(getattr(import_module(f".{home}", __package__), name)), end="")
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Run a command; the exit code.  A usage error is one line on standard error."""
    given = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal may have no sign for ✓
    try:
        code = _app_for(given[0])(given, prog_name="attnproof", standalone_mode=False)
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
    except Exception as error:  # noqa: BLE001 (no command lets an exception of its own pass)
        return _failed(error)
    except BrokenPipeError:
        # A reader such as `head` has seen enough; nothing may be flushed to it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if code == 130:  # typer returns it for Ctrl-C, and says nothing
        print("attnproof: interrupted", file=sys.stderr)
    return code if isinstance(code, int) else 0


def _app_for(word: str) -> typer.Typer:
    """The app with one command, if the word names one: typer reads the options of all it has."""
    named = [
        one for one in app.registered_commands
        if one.callback is not None and word == (one.name or one.callback.__name__)
    ]  # fmt: skip
    if not named:
        return app
    found = copy(app)
    found.registered_commands = named
    return found


def _failed(error: Exception) -> int:
    """What no command heard of: the traceback, and whose fault it is in the last line."""
    from .symbolic.faults import fault_of, traceback_of

    fault = fault_of(error, refusals=())
    print(traceback_of(error), file=sys.stderr)
    told = fault.told if fault is not None else f"{type(error).__name__}: {error}"
    print(f"attnproof: {' '.join(told.split())}", file=sys.stderr)
    return 2
