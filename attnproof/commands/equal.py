"""The commands ``equal`` and ``classes``: whether programs are the same function."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..documents.document import show
from ..errors import FAULT, UsageError, require_file
from .options import JsonFile, Seed, app, finish

if TYPE_CHECKING:
    from ..programs.equal.deciding import Verdict
    from ..programs.equal.sides import Operand
    from ..real_code.equal_records import EqualRecord

FOR_ONE = re.compile(r"([12])\.(.+)")
MAX_CALLS = 2

Target = Annotated[
    str,
    typer.Argument(
        metavar="TARGET", help="FILE.py::NAME or package.module::NAME; the code is run."
    ),
]
Other = Annotated[
    str,
    typer.Argument(
        metavar="TARGET",
        help="The second program, or a specification such as attention:causal.",
    ),
]
Calls = Annotated[
    list[str] | None,
    typer.Option(
        "--call",
        metavar="SIGNATURE",
        help="Call signature of both in axis letters; or one for each, if given twice.",
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TEXT",
        help="Define arguments of the second program, e.g. 'k = cat(k1, k2, dim=2)' or "
        "'K, V: joined of 2 shards along n'; repeatable.",
    ),
]
Weights = Annotated[
    str,
    typer.Option(metavar="TEXT", help="Correspondence of weights, e.g. 'wq=q_proj.weight, ..'."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Constructor argument of both, e.g. hidden_size=64; 1.NAME=VALUE for the first only.",
    ),
]
Limit = Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="Time limit for a proof.")]
Strict = Annotated[
    bool, typer.Option("--strict", help="Exit with code 1 unless equality is proved.")
]


@app.command()
def equal(
    first: Target,
    second: Other,
    call: Calls = None,
    where: Where = None,
    weights: Weights = "",
    settings: Settings = None,
    seed: Seed = 0,
    limit: Limit = 20.0,
    strict: Strict = False,
    json: JsonFile = None,
) -> int:
    """Decide whether two programs compute the same function.

    Equality is decided for all lengths; if the programs differ, a counterexample is shown.  This
    runs your code.  Modules share the weights that have the same name, or those that `--weights`
    pairs, so that a proof holds for all weights.

    Exit code 0: no difference was found; the page says how this is known.  1: there is a
    counterexample; with `--strict` also if equality is not proved.  2: a usage error, or the two
    cannot be called on the same arrays.
    """
    if len(call or ()) > MAX_CALLS:
        raise UsageError(f"wanted --call once for both or twice, got it {len(call or ())} times")
    require_file(json)
    told = _programs((first, second), call or (), settings or ())
    again = _again(first, second, call, where, weights, settings, seed)
    found = _compared(told, "; ".join(where or ()), weights, seed, limit)
    from ..real_code.equal_records import MAX_WIDTH, equal_record, page

    record = equal_record(found, (first, second), again, seed)
    show(page(record), width=MAX_WIDTH)
    if record.traceback:
        print(record.traceback, file=sys.stderr)
    if json is not None:
        from ..documents.evidence import write_json

        print(f"wrote {write_json(record, json)}")
    return exit_code(record, strict=strict)


@app.command()
def classes(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="TARGET...",
            help="FILE.py::NAME or package.module::NAME (the code is run), or a specification such "
            "as attention:causal.",
        ),
    ],
    call: Annotated[
        str, typer.Option("--call", metavar="SIGNATURE", help="Call signature of all.")
    ] = "",
    settings: Settings = None,
    seed: Seed = 0,
    limit: Limit = 20.0,
    json: JsonFile = None,
) -> int:
    """Sort programs into classes of equal functions.

    The page shows what distinguishes two classes.  This runs your code.  Each program is compared
    with the first of each class, as by `equal`; specifications come first, and are not compared
    with each other.

    Exit code 0: all are in one class.  1: there are several classes.  2: a usage error.
    """
    from time import perf_counter

    require_file(json)
    start = perf_counter()
    from ..programs.equal.deciding import classes as in_classes
    from ..programs.equal.sides import Operand
    from ..programs.equal.specification import WrongSpecification, is_specification

    told = [
        Operand(target, target)
        if is_specification(target)
        else _loaded(target, call, list(settings or ()))
        for target in dict.fromkeys(targets)
    ]
    from ..real_code.equal_records import MAX_WIDTH, classes_page, classes_record

    try:
        with _progress() as begin, contextlib.redirect_stdout(io.StringIO()):
            found = in_classes(told, seed=seed, seconds=limit, begin=begin)
    except WrongSpecification as error:
        raise UsageError(str(error)) from None
    record = classes_record(found, perf_counter() - start)
    show(classes_page(record), width=MAX_WIDTH)
    return finish(record, json, ok=len(record.classes) <= 1)


def exit_code(record: EqualRecord, *, strict: bool = False) -> int:
    """Return 1 for a counterexample, or if strict and not proved; 2 for a fault of attnproof."""
    if record.verdict == "internal error":
        return FAULT
    if record.verdict == "counterexample":
        return 1
    return int(strict and record.verdict != "proved")


def _programs(
    targets: tuple[str, str], calls: Sequence[str], settings: Sequence[str]
) -> tuple[Operand, Operand]:
    """Return both programs, loaded.  Raises :class:`UsageError`."""
    from ..programs.equal.sides import Operand
    from ..programs.equal.specification import is_specification

    found: list[Operand] = []
    for place, target in enumerate(targets):
        if place and is_specification(target):
            found.append(Operand(target, target))
            continue
        alone = [word[2:] for word in settings if word.startswith(f"{place + 1}.")]
        named = {word.partition("=")[0] for word in alone}
        own = [
            word
            for word in settings
            if not FOR_ONE.match(word) and word.partition("=")[0] not in named
        ]
        own += alone
        line = calls[min(place, len(calls) - 1)] if calls else ""
        found.append(_loaded(target, line, own))
    return found[0], found[1]


def _loaded(target: str, line: str, settings: list[str]) -> Operand:
    """Return a program by its name.  Raises :class:`UsageError`."""
    from ..programs.equal.specification import SPECIFIED
    from ..real_code.equal_records import load_program
    from ..real_code.loading import CannotLoad

    name, colon, _ = target.partition(":")
    near = get_close_matches(name, SPECIFIED, n=2) if colon and "::" not in target else []
    if near and name not in SPECIFIED:
        raise UsageError(f"there is no specification {name!r}; nearest: {', '.join(near)}")
    try:
        return load_program(target, target, line, settings)
    except (CannotLoad, ValueError) as error:
        raise UsageError(str(error)) from None


def _compared(
    told: tuple[Operand, Operand], where: str, weights: str, seed: int, limit: float
) -> Verdict:
    from ..programs.code import DoesNotFit
    from ..programs.equal.deciding import compare
    from ..programs.equal.specification import WrongSpecification
    from ..programs.signatures.signature import SignatureError

    said = io.StringIO()
    try:
        with _progress() as begin, contextlib.redirect_stdout(said):
            return compare(
                *told, where=where, weights=weights, seed=seed, seconds=limit, begin=begin
            )
    except (SignatureError, DoesNotFit, WrongSpecification) as error:
        raise UsageError(str(error)) from None


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Show what is being done on a terminal; yield the function that updates it."""
    from rich.console import Console

    console = Console(stderr=True)
    with console.status("starting") as status:
        yield status.update


def _again(
    first: str,
    second: str,
    call: list[str] | None,
    where: list[str] | None,
    weights: str,
    settings: list[str] | None,
    seed: int,
) -> str:
    words: list[Any] = ["attnproof", "equal", first, second]
    for name, values in (("--call", call), ("--where", where), ("--set", settings)):
        for value in values or ():
            words += [name, value]
    words += ["--weights", weights] * bool(weights)
    return shlex.join([*words, *["--seed", str(seed)] * bool(seed)])
