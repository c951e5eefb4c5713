"""The commands on real code: ``check`` and ``identify``, and the list of its laws."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..options import Dtype, Dtypes, JsonFile, Seed
from ..usage import UsageError, require_device, require_file, require_known
from .asked import KINDS, LIMIT, Asked
from .targets import in_turn

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["list_code_laws", "register"]


Targets = Annotated[
    list[str],
    typer.Argument(metavar="TARGET...", help="FILE.py::NAME or package.module::NAME; it is run."),
]
As = Annotated[
    str,
    typer.Option(
        "--as", metavar="|".join(KINDS), help="What it is; else that is told from its signature."
    ),
]
Declare = Annotated[
    str,
    typer.Option(
        metavar="TEXT", help="What it is meant to be, as rope:base=500000,layout=half,width=64."
    ),
]
Called = Annotated[
    str,
    typer.Option(
        "--call", metavar="SIGNATURE",
        help="How it is called, in axis letters, as 'q: B H n D, k: B H n D -> q, k'.",
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
    kind: As = "",
    declare: Declare = "",
    call: Called = "",
    law: CodeLaws = None,
    seed: Seed = 0,
    dtype: Dtypes = None,
    device: Device = "cpu",
    limit: Limit = LIMIT,
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
    base = _asked(kind, declare, call, seed, dtype, device, limit, json)

    def asked(target: str) -> Asked:
        return Asked(target=target, laws=tuple(dict.fromkeys(law or ())), **base)

    return in_turn(targets, asked, whole, json, identifying=False)


def identify(
    targets: Targets,
    kind: As = "",
    call: Called = "",
    seed: Seed = 0,
    dtype: Dtypes = None,
    device: Device = "cpu",
    limit: Limit = LIMIT,
    whole: Whole = 600.0,
    json: JsonFile = None,
) -> int:
    """What your PyTorch code is: layout, base, scaling, slopes, mask, each with its evidence.

    This runs your code, as `check` does.  Exit code 0: it was identified.  1: it was not.
    2: a usage error, or the code cannot be run.
    """
    base = _asked(kind, "", call, seed, dtype, device, limit, json)

    def asked(target: str) -> Asked:
        return Asked(target=target, legs=("identity",), **base)

    return in_turn(targets, asked, whole, json, identifying=True)


def list_code_laws() -> int:
    """Print the laws of code, by the kind of code they are about."""
    from ..numeric.programs.laws import laws_of

    for kind in KINDS:
        print(f"laws of {kind} code")
        for law in laws_of(kind):
            print(f"  {law.id:<26} {law.says}")
    return 0


def _require_laws(names: Sequence[str]) -> None:
    if names:
        from ..numeric.programs.laws import CODE_LAWS

        known = [law.id for law in CODE_LAWS]
        require_known(names, known, "the id of a law of code", "`attnproof list --code-laws`")


def _asked(
    kind: str, declare: str, call: str, seed: int, dtype: list[Dtype] | None, device: str,
    limit: float, json: Path | None,
) -> dict[str, Any]:  # fmt: skip
    """What is asked of every target alike.  Raises :class:`UsageError`."""
    require_device(device)
    if kind:
        require_known([kind], KINDS, "a kind of code", ", ".join(KINDS))
    if declare:
        from ..numeric.programs.declared import declares, parse

        try:
            parse(declare)
        except ValueError as error:
            raise UsageError(str(error)) from None
        if kind not in ("", *(of := declares(declare))):
            raise UsageError(f"wanted what is declared of {kind} code, got {declare!r}, which is "
                             f"declared of {' or '.join(of)} code")  # fmt: skip
    if call:
        from ..programs import signature

        try:
            signature.parse(call)
        except signature.SignatureError as error:
            raise UsageError(str(error)) from None
    if json is not None:
        require_file(json)
    dtypes = tuple(dict.fromkeys(one.value for one in dtype or ())) or ("float32",)
    return {
        "kind": kind, "declared": declare, "seed": seed, "dtypes": dtypes,
        "device": device, "limit": limit, "call": call,
    }  # fmt: skip
