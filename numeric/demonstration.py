"""Demonstrations: what a source's code prints, computed again and set beside it.

A demonstration is a function under ``@demonstration`` in a file of ``theorems/demonstrations/``; it
returns rows.  Its id is its name, or that of a file in which it stands alone.  Nothing is computed
when the file is imported.
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
    """One value: ours, and the one the source prints, if it prints any.

    Numbers and arrays are compared at the ``digits`` after the point that the source shows;
    without ``digits`` the two must be the same.  ``expected_to_differ`` marks a printed value
    that is known to be wrong or out of date: then agreement would be the surprise.

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
            raise TypeError(f"'{self.says}' is expected to differ, but from what? give printed=..")
        if self.printed is not None and self.digits is None and _inexact(self.printed):
            raise TypeError(f"'{self.says}' compares decimals; say to how many digits=..")

    @property
    def agrees(self) -> bool | None:
        """Whether ours is what is printed; None if nothing is."""
        if self.printed is None:
            return None
        if self.digits is None:
            return _same(self.ours, self.printed)
        ours, printed = (np.asarray(a, dtype=float) for a in (self.ours, self.printed))
        if ours.shape != printed.shape:
            return False
        # Half a unit of the last printed digit, and the rounding of the subtraction.
        room = 0.5 * 10.0**-self.digits + 1e-12 * np.abs(printed)
        return bool(np.all(np.abs(ours - printed) <= room))

    @property
    def as_expected(self) -> bool:
        """Whether the comparison came out as its author says it does."""
        return self.agrees is None or self.agrees != self.expected_to_differ

    @property
    def ours_text(self) -> str:
        """Our value, at the digits of the comparison; a matrix has one line a row."""
        return _text(self.ours, self.digits)

    @property
    def printed_text(self) -> str:
        """The printed value, written the same way; empty if there is none."""
        return "" if self.printed is None else _text(self.printed, self.digits)


@dataclass(frozen=True, eq=False)
class Demonstration:
    """A worked example of a source and the function that computes it again.

    ``remark`` says what a reader must know: that the source's code cannot run, or has no seed.
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
    """Whether every printed value is ours, and there is one.

    >>> reproduced([Row("the sum", 3, printed=3), Row("by the way", 4)])
    True
    >>> reproduced([Row("by the way", 4)])
    False
    """
    compared = [row.agrees for row in rows if row.agrees is not None]
    return bool(compared) and all(compared)


@dataclass(frozen=True)
class Demonstrations:
    """Every demonstration by id, and for every file that cannot be used, what it raised."""

    found: Mapping[str, Demonstration]
    broken: Mapping[str, str]


def load_demonstrations(folder: Path | None = None) -> Demonstrations:
    """The demonstrations of the package, or of a folder; nothing is computed yet.

    A file that cannot be imported, or that declares no demonstration, is reported by the ids that
    its text shows, or else by its name, and stops no other.
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
        except (Exception, SystemExit) as error:  # noqa: BLE001 (one file stops no other)
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
    """One number, a row of numbers, or a line for each row of a matrix."""
    if isinstance(value, str):
        return value
    array = np.asarray(value)
    if array.ndim == 0:
        item = array.item()
        if digits is None or isinstance(item, bool | str):
            return str(item)
        return f"{round(item, digits) + 0.0:.{digits}f}"  # + 0.0: never −0
    return ("\n" if array.ndim > 1 else ", ").join(_text(part, digits) for part in array)
