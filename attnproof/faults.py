"""Errors of attnproof itself, in every record and command alike.

A part of a record that could not be made because code of attnproof raised has a ``traceback``, and
nothing else has one.  So this page finds them in any record, and no command counts them itself.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic import BaseModel

FAULT = 2  # the exit code


def broken_by(error: BaseException, path: Path) -> dict[str, str]:
    """What a file raised, as fields of a record: ``error``, and ``traceback`` where it is ours.

    >>> sorted(broken_by(ValueError("no"), Path("mine.py")))
    ['error', 'traceback']
    """
    from .symbolic.faults import fault_of  # a check that is answered from the store raises nothing

    fault = fault_of(error, (path,))
    if fault is None:
        return {"error": failure(error, path), "traceback": ""}
    return {"error": fault.told, "traceback": fault.traceback}


def internal_errors(record: object) -> Iterator[str]:
    """Every error of attnproof in a record, a line each."""
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
    """2 where some record tells of an error of attnproof, else what the command says."""
    return FAULT if any(True for one in records for _ in internal_errors(one)) else otherwise


def tell_faults(record: BaseModel, json: Path | None) -> None:
    """Say once, on standard error, where the tracebacks of a command are."""
    count = len(dict.fromkeys(internal_errors(record)))
    if count:
        where = f"in {json}" if json is not None else "in the record: --json FILE keeps it"
        told = "1 internal error" if count == 1 else f"{count} internal errors"
        whose = "its traceback is" if count == 1 else "the tracebacks are"
        print(f"attnproof: {told}; {whose} {where}", file=sys.stderr)


def failure(error: BaseException, path: Path) -> str:
    """One line that says what a theorem file raised, and where in it.

    What was raised without a line of the file at work has no place that its author could mend.
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
