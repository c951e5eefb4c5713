"""Everything that goes wrong: usage errors, Ctrl-C, what a file raised, and errors of attnproof.

A part of a record that could not be made because code of attnproof raised has a ``traceback``, and
nothing else has one.  So errors of attnproof are found in any record, and no command counts them.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic import BaseModel


DEVICES = ("cpu", "cuda", "mps", "auto")


class UsageError(ValueError):
    """What was wanted, what came, and what to do, in one line; the exit code is 2.

    In Python it is the ``ValueError`` of an invalid argument.
    """


def require_known(
    names: Sequence[str],
    known: Sequence[str],
    wanted: str = "the id or subject of a theorem, a claim or a document",
    where: str = "`attnproof list`",
) -> None:
    """Refuse a name that is not known; name the nearest ones, or where all are listed.

    A name with a different number is not a misspelling: 009 is not close to 004.
    """
    for name in names:
        if name in known:
            continue
        parts = [other for other in known if name in other] if len(name) > 2 else []
        near = sorted(parts, key=len)[:3]  # the shortest adds the least
        near = near or [other for other in known if name and name.lower() == other.lower()]
        close = get_close_matches(name, known, n=len(known) or 1, cutoff=0.55)
        near = near or [other for other in close if _same_number(name, other)][:3]
        told = f"nearest: {', '.join(near)}" if near else f"see {where}"
        numbers = [other for other in known if other.isdigit()]
        if not near and name.isdigit() and numbers:
            told = f"the numbers are {', '.join(numbers)}; {told}"
        raise UsageError(f"wanted {wanted}, got {name!r}; {told}")


def _same_number(name: str, other: str) -> bool:
    """Whether their digits are the same, except for some that one of them lacks at the end.

    >>> _same_number("009", "004"), _same_number("G2.33", "G2.3"), _same_number("sofmax", "softmax")
    (False, True, True)
    """
    ours, theirs = ("".join(filter(str.isdigit, text)) for text in (name, other))
    return bool(ours) == bool(theirs) and (ours.startswith(theirs) or theirs.startswith(ours))


def require_id(name: str, ids: Sequence[str], members: Sequence[str], kind: str) -> None:
    """Refuse what is not an id; for a subject or a document, ``members`` are the ids in it."""
    if name not in ids and members:
        told = ", ".join(members)
        raise UsageError(
            f"wanted the id of a theorem or a claim, got the {kind} {name!r}; its ids are {told}"
        )
    where = "`attnproof list` for theorems, `attnproof claims` for claims"
    require_known([name], ids, "the id of a theorem or a claim", where)


def chosen_verdicts(asked: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Return the verdicts that start with the given words; all of them if none are given.

    >>> chosen_verdicts(["false"], ["true as written", "false as written"])
    ('false as written',)
    """
    for text in asked:
        if not text or not any(verdict.startswith(text) for verdict in known):
            raise UsageError(
                f"wanted a verdict or its first words ({', '.join(known)}), got {text!r}"
            )
    return tuple(v for v in known if not asked or any(v.startswith(text) for text in asked))


def require_device(name: str) -> None:
    """Refuse what names no device at all; whether a device is present is checked later."""
    if name.partition(":")[0] not in DEVICES or name.startswith("auto:"):
        raise UsageError(f"wanted a device ({', '.join(DEVICES)}), got {name!r}, which is not one")


def require_file(*paths: Path | None) -> None:
    """Refuse to start if the results cannot be written to these files."""
    for path in filter(None, paths):
        if path.is_dir():
            raise UsageError(f"wanted a file to write to, got the folder {path}; name a file in it")
        if path.exists() and not os.access(path, os.W_OK):
            raise UsageError(f"wanted a file to write to, got {path}, which is read-only")
        require_writable(path.parent)


def require_theorems(place: Path, files: Sequence[Path]) -> None:
    """Refuse a place without theorem files, or that does not exist; ``files`` are its files."""
    wanted = "wanted a folder or a .py file of theorems"
    if not place.exists():
        raise UsageError(f"{wanted}, got {place}, which does not exist; check the path")
    if not place.is_dir() and place.suffix != ".py":
        raise UsageError(f"{wanted}, got {place}, which is neither; check the path")
    if not files:
        raise UsageError(
            f"no theorem file in {place} or its folders; "
            f"one stands at {place / '<name>.py'} or {place / '<subject>' / '<name>.py'}"
        )


def require_writable(folder: Path) -> None:
    """Refuse to start if the results could not be kept: make the folder and try it."""
    probe = folder / ".attnproof-can-write"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        why = "a file" if folder.is_file() else error.strerror or error
        raise UsageError(
            f"wanted a folder that can be written to, got {folder} ({why}); choose another"
        ) from None


class Interrupted(Exception):
    """A command was interrupted; one line says what is left.  The exit code is 130."""


@contextmanager
def interrupts_delayed() -> Iterator[None]:
    """Delay Ctrl-C until the block is done, then raise the ``KeyboardInterrupt``.

    A half-imported library stays so, and what is then computed with it is wrong.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # Python delivers interrupts to the main thread only
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt


FAULT = 2  # the exit code


def broken_by(error: BaseException, path: Path) -> dict[str, str]:
    """Return what a file raised, as fields of a record; ``traceback`` only if the fault is ours.

    >>> sorted(broken_by(ValueError("no"), Path("mine.py")))
    ['error', 'traceback']
    """
    from .symbolic.faults import fault_of  # a check that is answered from the store raises nothing

    fault = fault_of(error, (path,))
    if fault is None:
        return {"error": failure(error, path), "traceback": ""}
    return {"error": fault.message, "traceback": fault.traceback}


def internal_errors(record: object) -> Iterator[str]:
    """Yield every error of attnproof in a record, one line each."""
    fields = getattr(type(record), "model_fields", None)
    if fields is not None:
        if getattr(record, "traceback", ""):
            yield str(getattr(record, "error", "") or getattr(record, "why", ""))
        parts = (getattr(record, name) for name in fields)
        for part in parts:
            if not isinstance(part, str | int | float):  # most are
                yield from internal_errors(part)
    elif isinstance(record, dict):
        yield from internal_errors(tuple(record.values()))
    elif isinstance(record, tuple | list):
        for part in record:
            yield from internal_errors(part)


def exit_code(records: Iterable[BaseModel], otherwise: int) -> int:
    """Return 2 if some record has an error of attnproof, else the command's own exit code."""
    return FAULT if any(True for one in records for _ in internal_errors(one)) else otherwise


def tell_faults(record: BaseModel, json: Path | None) -> bool:
    """Report on standard error, once, where tracebacks are; return whether there are any."""
    count = len(dict.fromkeys(internal_errors(record)))
    if count:
        where = f"in {json}" if json is not None else "in the record: --json FILE keeps it"
        told = "1 internal error" if count == 1 else f"{count} internal errors"
        whose = "its traceback is" if count == 1 else "the tracebacks are"
        print(f"attnproof: {told}; {whose} {where}", file=sys.stderr)
    return bool(count)


def failure(error: BaseException, path: Path) -> str:
    """Describe in one line what a theorem file raised, and where in it.

    If no line of the file was running, no place is given, as its author could not fix it there.
    """
    text = " ".join(str(error).split())
    if isinstance(error, SyntaxError):
        text, file, line = error.msg, error.filename, error.lineno
    else:
        frames = traceback.extract_tb(error.__traceback__)
        mine = [frame for frame in frames if _same(frame.filename, path)]
        file, line = (mine[-1].filename, mine[-1].lineno) if mine else (None, None)
    told = f"{type(error).__name__}: {text}" if text else type(error).__name__
    where = "" if file is None or _same(file, path) else f"{Path(file).name}, "
    return told + (f" ({where}line {line})" if line else "")


def _same(file: str | None, path: Path) -> bool:
    return file is not None and Path(file).resolve() == path.resolve()
