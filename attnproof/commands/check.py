"""The commands on real code: ``check`` and ``identify``, and the list of its laws."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import UsageError, require_file, require_known
from ..real_code.request import KINDS, LIMIT, CodeRequest, code_request
from .options import (
    Dtype,
    Dtypes,
    Fresh,
    JsonFile,
    Seed,
    StoreFile,
    app,
    completed,
    store_in,
)

SETTING = re.compile(r"[^\W\d][\w.]*=")


def _law_ids() -> list[str]:
    from ..theorems.laws import LAWS as CODE_LAWS

    return [law.id for law in CODE_LAWS]


Targets = Annotated[
    list[str],
    typer.Argument(
        metavar="TARGET...", help="FILE.py::NAME or package.module::NAME; the code is run."
    ),
]
As = Annotated[
    str,
    typer.Option(
        "--as", metavar="|".join(KINDS), help="Kind of code; default: inferred from its signature."
    ),
]
Declare = Annotated[
    str,
    typer.Option(
        metavar="TEXT", help="What the code should be, e.g. rope:base=500000,layout=half,width=64."
    ),
]
Called = Annotated[
    str,
    typer.Option(
        "--call",
        metavar="SIGNATURE",
        help="Call signature in axis letters, e.g. 'q: B H n D, k: B H n D -> q, k'.",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Constructor argument, e.g. hidden_size=64; repeatable, or several in a row.",
    ),
]
CodeLaws = Annotated[
    list[str] | None,
    typer.Option(
        "--law",
        metavar="ID",
        help="Check only this law (see `list --code-laws`); repeatable.",
        autocompletion=completed(_law_ids),
    ),
]
Device = Annotated[str, typer.Option(metavar="auto|cpu|cuda|mps", help="Device of the inputs.")]
Limit = Annotated[
    float,
    typer.Option(min=0.1, metavar="SECONDS", help="Time limit for each law, and for the import."),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Exit with code 1 also if a law is undecided.")
]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", help="Also show laws that were not checked, and reasons in full."),
]
Card = Annotated[
    bool,
    typer.Option("--card", help="Also decide the laws of encodings on the graph of rotary code."),
]
Whole = Annotated[
    float, typer.Option(min=0.1, metavar="SECONDS", help="Time limit for each target.")
]


@app.command()
def check(
    targets: Targets,
    kind: As = "",
    declare: Declare = "",
    call: Called = "",
    settings: Settings = None,
    law: CodeLaws = None,
    seed: Seed = 0,
    dtype: Dtypes = None,
    device: Device = "cpu",
    limit: Limit = LIMIT,
    whole: Whole = 600.0,
    strict: Strict = False,
    card: Card = False,
    verbose: Verbose = False,
    store: StoreFile = None,
    fresh: Fresh = False,
    json: JsonFile = None,
) -> int:
    """Check which laws your PyTorch code obeys.

    A broken law is shown with an input that breaks it, and the code is identified.

    This runs your code: the file named on the command line is imported in a separate process, with
    your permissions.  Do not check a file that you would not run.

    Exit code 0: no law is broken; the laws that were checked hold or are undecided (not known to
    hold), as the last lines say.  1: a law is broken, or a declaration was not checked; with
    `--strict` also if a law is undecided.  2: a usage error, or the code cannot be run.  With
    several targets, it is the largest of their exit codes.

    For unchanged code the stored result is shown and nothing is run; `--fresh` runs it again.
    """
    from ..real_code.targets import run_targets

    laws = _known_laws(law or ())
    targets, given = _settings(targets, settings or [])
    base = _asked(kind, declare, call, given, seed, dtype, device, limit, json)

    def asked(target: str) -> CodeRequest:
        return code_request(target, laws=laws, strict=strict, card=card, **base)

    return run_targets(
        targets,
        asked,
        whole,
        json,
        identifying=False,
        verbose=verbose,
        store=store_in(store),
        fresh=fresh,
    )


@app.command()
def identify(
    targets: Targets,
    kind: As = "",
    call: Called = "",
    settings: Settings = None,
    seed: Seed = 0,
    dtype: Dtypes = None,
    device: Device = "cpu",
    limit: Limit = LIMIT,
    whole: Whole = 600.0,
    json: JsonFile = None,
) -> int:
    """Identify what your PyTorch code computes.

    Shows its layout, base, scaling, slopes or mask, each with its evidence.  This runs your code,
    as `check` does.

    Exit code 0: it was identified.  1: it was not.  2: a usage error, or the code cannot be run.
    """
    from ..real_code.targets import run_targets

    targets, given = _settings(targets, settings or [])
    base = _asked(kind, "", call, given, seed, dtype, device, limit, json)

    def asked(target: str) -> CodeRequest:
        return code_request(target, methods=("identity",), **base)

    return run_targets(targets, asked, whole, json, identifying=True)


def list_code_laws() -> int:
    """Print the laws of code, grouped by the kind of code that they are about."""
    from ..theorems.laws import laws_of

    for kind in KINDS:
        print(f"laws of {kind} code")
        for law in laws_of(kind):
            print(f"  {law.id:<26} {law.says}")
    return 0


def _known_laws(names: Sequence[str]) -> tuple[str, ...]:
    """Return the ids of laws, each once; a former id is replaced, and a line says so."""
    if not names:
        return ()
    from ..theorems.laws import renamed

    laws, notes = renamed(names)
    require_known(laws, _law_ids(), "the id of a law of code", "`attnproof list --code-laws`")
    for note in notes:
        print(f"attnproof: {note}", file=sys.stderr)
    return laws


def _settings(targets: list[str], settings: list[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return the targets and the settings: after ``--set a=1`` others may follow as ``b=2``.

    Raises :class:`UsageError`.
    """
    from ..real_code.request import settings_of

    more = [one for one in targets if settings and SETTING.match(one) and "::" not in one]
    words = tuple(settings) + tuple(more)
    try:
        settings_of(words)
    except ValueError as error:
        raise UsageError(str(error)) from None
    left = [one for one in targets if one not in more]
    if not left:
        raise UsageError(f"wanted a target, FILE.py::NAME or module::NAME, got {' '.join(words)}")
    return left, words


def _asked(
    kind: str,
    declare: str,
    call: str,
    settings: tuple[str, ...],
    seed: int,
    dtype: list[Dtype] | None,
    device: str,
    limit: float,
    json: Path | None,
) -> dict[str, Any]:
    """Return the options common to all targets, validated before any is run.

    Raises :class:`UsageError`.
    """
    base: dict[str, Any] = {
        "kind": kind,
        "declared": declare,
        "seed": seed,
        "dtypes": [one.value for one in dtype or (Dtype.float32,)],
        "device": device,
        "limit": limit,
        "call": call,
        "settings": settings,
    }
    try:
        _ = code_request("", **base)
    except ValueError as error:
        raise UsageError(str(error)) from None
    require_file(json)
    return base
