"""Demonstrations: what the code of a source prints, recomputed and compared.

A demonstration is a function under ``@demonstration`` in a file of ``theorems/demonstrations/`` and
returns rows.  Its id is its name, or the name of the file if it is the only one there.  Importing
the file computes nothing.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .file_imports import demonstrations_in, imported

PACKAGE = "attnproof.theorems.demonstrations"


@dataclass(frozen=True)
class Row:
    """One value: ours, and the printed one of the source, if there is one.

    Numbers and arrays are compared to the ``digits`` after the decimal point that the source shows;
    without ``digits`` the two must be equal.  ``expected_to_differ`` marks a printed value known to
    be wrong or out of date, for which agreement would be the surprise.

    >>> Row("a weight", 0.18371, printed=0.1837, digits=4).agrees
    True
    >>> Row("a weight", 0.18371, printed=0.1838, digits=4).agrees
    False
    """

    says: str
    ours: Any
    printed: Any = None
    digits: int | None = None
    expected_to_differ: bool = False

    def __post_init__(self) -> None:
        if self.printed is None and self.expected_to_differ:
            raise TypeError(f"'{self.says}' is expected to differ; say from what: printed=..")
        if self.printed is not None and self.digits is None and _inexact(self.printed):
            raise TypeError(f"'{self.says}' compares decimals; say to how many digits=..")

    @property
    def agrees(self) -> bool | None:
        """Whether our value is the printed one; None if none is printed."""
        if self.printed is None:
            return None
        if self.digits is None:
            return _same(self.ours, self.printed)
        ours, printed = (np.asarray(a, dtype=float) for a in (self.ours, self.printed))
        if ours.shape != printed.shape:
            return False
        # Half a unit of the last printed digit, plus the rounding of the subtraction.
        room = 0.5 * 10.0**-self.digits + 1e-12 * np.abs(printed)
        return bool(np.all(np.abs(ours - printed) <= room))

    @property
    def as_expected(self) -> bool:
        """Whether the comparison came out as its author expects."""
        return self.agrees is None or self.agrees != self.expected_to_differ

    @property
    def ours_text(self) -> str:
        """Our value, to the digits of the comparison, with one line per row of a matrix."""
        return _text(self.ours, self.digits)

    @property
    def printed_text(self) -> str:
        """The printed value in the same format; empty if there is none."""
        return "" if self.printed is None else _text(self.printed, self.digits)


@dataclass(frozen=True, eq=False)
class Demonstration:
    """A worked example of a source and the function that recomputes it.

    ``remark`` says what a reader must know, such as that the code of the source cannot run, or has
    no seed.
    """

    title: str
    says: str
    claims: tuple[str, ...]
    remark: str
    run: Callable[[], Sequence[Row]]


def demonstration(
    title: str, *, claims: tuple[str, ...] = (), remark: str = ""
) -> Callable[[Callable[[], Sequence[Row]]], Demonstration]:
    """Declare a demonstration; the docstring of its function says what is computed."""

    def declare(run: Callable[[], Sequence[Row]]) -> Demonstration:
        says = inspect.getdoc(run)
        if not says:
            raise TypeError(f"{run.__name__} has no docstring; say what is computed")
        return Demonstration(title, says, claims, remark, run)

    return declare


def reproduced(rows: Iterable[Row]) -> bool:
    """Whether every printed value agrees with ours, and there is at least one.

    >>> reproduced([Row("the sum", 3, printed=3), Row("by the way", 4)])
    True
    >>> reproduced([Row("by the way", 4)])
    False
    """
    compared = [row.agrees for row in rows if row.agrees is not None]
    return bool(compared) and all(compared)


@dataclass(frozen=True)
class Demonstrations:
    """All demonstrations by id, and for every file that cannot be used, its exception."""

    found: Mapping[str, Demonstration]
    broken: Mapping[str, str]


def load_demonstrations(folder: Path | None = None) -> Demonstrations:
    """Load the demonstrations of the package, or of a folder, without computing anything.

    A file that cannot be imported, or declares no demonstration, is reported under the ids found in
    its text, otherwise under its name; other files are unaffected.
    """
    found: dict[str, Demonstration] = {}
    broken: dict[str, str] = {}
    package = importlib.import_module(PACKAGE)
    for path in sorted((folder or Path(package.__path__[0])).glob("*.py")):
        if path.name.startswith(("_", ".")):
            continue
        names = demonstrations_in(path)
        try:
            own = f"{PACKAGE}.{path.stem}"
            module = imported(path, "own_") if folder else importlib.import_module(own)
            declared = {
                value.run.__name__.replace("_", "-"): value
                for value in vars(module).values()
                if isinstance(value, Demonstration) and value.run.__module__ == module.__name__
            }
            if not declared:
                raise TypeError("a demonstration file declares a @demonstration; this one has none")
            alone = len(declared) == len(names) == 1
            found |= dict(zip(names, declared.values(), strict=True)) if alone else declared
        except (Exception, SystemExit) as error:  # noqa: BLE001 (other files are unaffected)
            told = f"{type(error).__name__}: {' '.join(str(error).split())}"
            broken |= dict.fromkeys(names, told)
    return Demonstrations(found, broken)


def _inexact(value: Any) -> bool:
    return not isinstance(value, str) and np.asarray(value).dtype.kind == "f"


def _same(ours: Any, printed: Any) -> bool:
    if isinstance(ours, str) or isinstance(printed, str):
        return isinstance(ours, str) and isinstance(printed, str) and ours == printed
    return bool(np.array_equal(np.asarray(ours), np.asarray(printed)))


def _text(value: Any, digits: int | None) -> str:
    """Format a number, a row of numbers, or a matrix with one line per row."""
    if isinstance(value, str):
        return value
    array = np.asarray(value)
    if array.ndim == 0:
        item = array.item()
        if digits is None or isinstance(item, bool | str):
            return str(item)
        return f"{round(item, digits) + 0.0:.{digits}f}"  # + 0.0: never −0
    return ("\n" if array.ndim > 1 else ", ").join(_text(part, digits) for part in array)
