"""The command line.  Commands load what they need when they run, so that help is fast."""

from __future__ import annotations

import io
import os
import sys
from copy import copy
from importlib import import_module
from inspect import signature
from itertools import pairwise
from typing import Annotated

from . import __version__
from .errors import Interrupted, UsageError

try:
    import typer
except KeyboardInterrupt:  # before there is a command that could report it
    print("attnproof: interrupted", file=sys.stderr)
    raise SystemExit(130) from None

from .commands.options import app

PARTS = (
    "commands.theorems",
    "commands.report",
    "commands.encodings",
    "commands.check",
    "commands.scale",
    "commands.equal",
    "commands.sweep",
    "commands.calibration",
)
for part in PARTS:  # in the order of the help
    import_module(f".{part}", __package__)


def _version(asked: bool) -> None:
    if asked:
        print(f"attnproof {__version__}")
        raise typer.Exit


@app.callback()
def _app(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_version, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Theorems on attention and positional encodings: proved for every size, and measured."""


SYMPY_CACHE_SIZE = 20_000
"""Results that SymPy caches per function; with its default, 1,000, most are evicted before use."""

RECORDS = {
    "": ("theorem_runs.records", "Results"),
    "--table": ("cards.records", "TableRecord"),
    "--sweep": ("sweeping.records", "SweepRecord"),
    "--code": ("real_code.records", "CodesRecord"),
    "--equal": ("real_code.equal_records", "EqualRecord"),
    "--classes": ("real_code.equal_records", "ClassesRecord"),
    "--proof": ("theorem_runs.records", "ProofRecord"),
    "--calibration": ("numeric.calibration.record", "Calibration"),
}


@app.command()
def schema(
    table: Annotated[
        bool, typer.Option("--table", help="The record of `table` and `card`.")
    ] = False,
    of_sweep: Annotated[bool, typer.Option("--sweep", help="The record of `sweep`.")] = False,
    code: Annotated[bool, typer.Option("--code", help="The record of `check`.")] = False,
    equal: Annotated[bool, typer.Option("--equal", help="The record of `equal`.")] = False,
    classes: Annotated[bool, typer.Option("--classes", help="The record of `classes`.")] = False,
    proof: Annotated[bool, typer.Option("--proof", help="The record of attnproof.prove.")] = False,
    calibration: Annotated[
        bool, typer.Option("--calibration", help="The record of `calibrate` (needs torch).")
    ] = False,
) -> int:
    """Print the JSON schema of a record.

    Without an option, this is the record of `run`.
    """
    asked = (False, table, of_sweep, code, equal, classes, proof, calibration)
    given = [flag for flag, on in zip(RECORDS, asked, strict=True) if on]
    if len(given) > 1:
        raise UsageError(f"wanted one record, got {' and '.join(given)}; give one of them at most")
    from .documents.evidence import schema_text

    home, name = RECORDS[given[0] if given else ""]
    print(schema_text(getattr(import_module(f".{home}", __package__), name)), end="")
    return 0


WRITTEN = ("--html", "--json", "--store")  # options with a file or folder that is written


def _require_files(given: list[str]) -> None:
    """Refuse ``--json --fresh``, which would write to a file of that name."""
    for option, file in pairwise(given):
        if option in WRITTEN and file.startswith("--"):
            raise UsageError(
                f"wanted a file or folder behind {option}, got the option {file}; "
                f"see `attnproof {given[0]} --help`"
            )


def main(arguments: list[str] | None = None) -> int:
    """Run a command; return the exit code.  A usage error is one line on standard error."""
    os.environ.setdefault("SYMPY_CACHE_SIZE", str(SYMPY_CACHE_SIZE))
    given = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal may have no sign for ✓
    try:
        _require_files(given)
        code = _called(given)
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
    except Exception as error:  # noqa: BLE001 (no command lets an exception of its own pass)
        return _failed(error)
    if code == 130:  # typer returns it for Ctrl-C, and says nothing
        print("attnproof: interrupted", file=sys.stderr)
    return code if isinstance(code, int) else 0


def _called(given: list[str]) -> object:
    """Run a command; typer gets an app with this command only, as it reads the options of all.

    A command without arguments runs with its defaults: even to parse no options, typer loads
    pydantic, which takes as long as a list of all theorems.
    """
    named = [
        one
        for one in app.registered_commands
        if one.callback is not None and given[0] == (one.name or one.callback.__name__)
    ]
    found = copy(app)
    found.registered_commands = named or app.registered_commands
    if len(given) == 1 and len(named) == 1 and "_ATTNPROOF_COMPLETE" not in os.environ:
        command = named[0].callback
        assert command is not None
        if all(p.default is not p.empty for p in signature(command).parameters.values()):
            return command()
    return found(given, prog_name="attnproof", standalone_mode=False)


def _failed(error: Exception) -> int:
    """Print the traceback of an unhandled error, with whose fault it is in the last line."""
    from .symbolic.faults import fault_of, traceback_of

    fault = fault_of(error, refusals=())
    print(traceback_of(error), file=sys.stderr)
    told = fault.message if fault is not None else f"{type(error).__name__}: {error}"
    print(f"attnproof: {' '.join(told.split())}", file=sys.stderr)
    return 2
