"""The commands on real code: ``check`` and ``identify``, and the list of its laws."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..interrupt import Interrupted
from ..options import Dtype, Dtypes, JsonFile, Seed
from ..usage import UsageError, require_device, require_file, require_known
from .asked import Asked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .records import CodeRecord
    from .running import Child, Limits

__all__ = ["list_code_laws", "register"]


class Kind(StrEnum):
    """What code is looked at as."""

    rotary = "rotary"
    attention = "attention"
    bias = "bias"
    additive = "additive"
    mask = "mask"
    layer = "layer"


Targets = Annotated[
    list[str],
    typer.Argument(metavar="TARGET...", help="FILE.py::NAME or package.module::NAME; it is run."),
]
As = Annotated[
    Kind | None, typer.Option("--as", help="What it is; else that is told from its signature.")
]
Declare = Annotated[
    str,
    typer.Option(
        metavar="TEXT", help="What it is meant to be, as rope:base=500000,layout=half,width=64."
    ),
]
CodeLaws = Annotated[
    list[str] | None,
    typer.Option("--law", metavar="ID", help="This law only; repeatable; `list --code-laws`."),
]
Device = Annotated[
    str, typer.Option(metavar="auto|cpu|cuda|mps", help="Where its inputs are put.")
]
Limit = Annotated[
    float, typer.Option(min=0.1, metavar="SECONDS", help="That one law, or the import, may take.")
]
Whole = Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="That a target may take.")]


def register(app: typer.Typer) -> None:
    """Give the commands to the command line."""
    for command in (check, identify):
        app.command()(command)


def check(
    targets: Targets,
    kind: As = None,
    declare: Declare = "",
    law: CodeLaws = None,
    seed: Seed = 0,
    dtype: Dtypes = None,
    device: Device = "cpu",
    limit: Limit = 60.0,
    whole: Whole = 600.0,
    json: JsonFile = None,
) -> int:
    """Which laws your PyTorch code obeys, which it breaks and with what input, and what it is.

    This runs your code: importing the file given on the command line runs what stands in it, in
    a process of its own, with your rights.  Check no file that you would not run.

    Exit code 0: every law that was asked holds.  1: a law is broken, or undecided: what is not
    known to hold does not pass.  2: a usage error, or the code cannot be run.  With several targets
    the largest of theirs.
    """
    _require_laws(law or ())
    base = _asked(kind, declare, seed, dtype, device, json)

    def asked(target: str) -> Asked:
        return Asked(target=target, laws=tuple(dict.fromkeys(law or ())), **base)

    return _each(targets, asked, limit, whole, json, identifying=False)


def identify(
    targets: Targets,
    kind: As = None,
    seed: Seed = 0,
    dtype: Dtypes = None,
    device: Device = "cpu",
    limit: Limit = 60.0,
    whole: Whole = 600.0,
    json: JsonFile = None,
) -> int:
    """What your PyTorch code is: layout, base, scaling, slopes, mask, each with its evidence.

    This runs your code, as `check` does.  Exit code 0: it was identified.  1: it was not.
    2: a usage error, or the code cannot be run.
    """
    base = _asked(kind, "", seed, dtype, device, json)

    def asked(target: str) -> Asked:
        return Asked(target=target, legs=("identity",), **base)

    return _each(targets, asked, limit, whole, json, identifying=True)


def list_code_laws() -> int:
    """Print the laws of code, by the kind of code they are about."""
    from ..numeric.programs.laws import laws_of

    for kind in Kind:
        print(f"laws of {kind.value} code")
        for law in laws_of(kind.value):
            print(f"  {law.id:<26} {law.says}")
    return 0


def _require_laws(names: Sequence[str]) -> None:
    if names:
        from ..numeric.programs.laws import CODE_LAWS

        known = [law.id for law in CODE_LAWS]
        require_known(names, known, "the id of a law of code", "`attnproof list --code-laws`")


def _asked(
    kind: Kind | None, declare: str, seed: int, dtype: list[Dtype] | None, device: str,
    json: Path | None,
) -> dict[str, Any]:  # fmt: skip
    """What is asked of every target alike.  Raises :class:`UsageError`."""
    require_device(device)
    if declare:
        from ..numeric.programs.declared import parse

        try:
            parse(declare)
        except ValueError as error:
            raise UsageError(str(error)) from None
    if json is not None:
        require_file(json)
    dtypes = tuple(dict.fromkeys(one.value for one in dtype or ())) or ("float32",)
    return {
        "kind": kind.value if kind else "", "declared": declare, "seed": seed, "dtypes": dtypes,
        "device": device,
    }  # fmt: skip


def _each(
    targets: Sequence[str], asked: Callable[[str], Asked], limit: float, whole: float,
    json: Path | None, *, identifying: bool,
) -> int:  # fmt: skip
    """Run the targets, one after the other; what one does stops no other.  The exit code."""
    from .loading import CannotLoad, require_target
    from .running import Child, Limits

    start = monotonic()
    done: list[CodeRecord] = []
    codes: list[int] = []
    left = list(dict.fromkeys(targets))
    while left and 130 not in codes:
        one, child, why = asked(left[0]), None, ""
        try:
            require_target(one.target)
            child = Child(one)  # it loads its libraries while this process loads its own
        except CannotLoad as error:
            why = str(error)
        print("\n" * bool(done), end="")
        record, code = _one(one, child, why, Limits(limit, whole), identifying=identifying)
        if record is None and not done:
            raise Interrupted("interrupted before any law was decided; nothing written")
        codes.append(code)
        if record is not None:
            done.append(record)
            left.pop(0)
    if json is not None:
        _write(done, left, monotonic() - start, json)
    return max(codes, key=lambda code: (code == 130, code))


def _one(
    asked: Asked, child: Child | None, why: str, limits: Limits, *, identifying: bool
) -> tuple[CodeRecord | None, int]:
    """Run and print one target; no record where an interrupt left nothing of it."""
    from rich.console import Console

    from .collecting import Collected
    from .progress import code_progress
    from .running import run
    from .table import code_page, identity_page
    from .words import exit_code, stopped_told

    start = monotonic()
    heard, stopped, said, code = Collected(asked), "", "", None
    if child is None:
        heard.hear({"event": "refused", "why": why})
    else:
        try:
            with code_progress(Console(stderr=True), asked.target) as tell:
                cause, said = run(heard, limits, tell, child)
            stopped = stopped_told(heard, cause) if cause is not None else ""
        except KeyboardInterrupt:
            if not heard.findings:
                return None, 130
            stopped, code = f"{asked.target} was interrupted; what was found is kept.", 130
    record = heard.record(monotonic() - start, stopped=stopped, said=said)
    console = Console()
    page = (identity_page if identifying else code_page)(record, console.width)
    console.print(page, highlight=False, markup=False, crop=False)  # a command stays whole
    return record, exit_code(record, identifying=identifying) if code is None else code


def _write(done: Sequence[CodeRecord], left: Sequence[str], seconds: float, file: Path) -> None:
    from ..output import write_json
    from .records import codes_record

    print(f"wrote {write_json(codes_record(done, left, seconds), file)}")
    sys.stdout.flush()
