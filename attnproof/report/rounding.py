"""How the score of an encoding rounds, position by position, format by format, with its bound."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..encoding import Encoding
from .bounding import NotBounded, bounds
from .precision import FORMATS, Rounded, encoding_in, wide_kind
from .sampled import at, content, reach

FAR = 10**6
PER_DECADE = 8
SLOW = 0.02  # seconds for one score


@dataclass(frozen=True)
class Line:
    """The error of the score at each place in one format, and its bound if there is one.

    ``together`` says where a position and the one before it are one number; ``first`` is the
    first position where they are, 0 if there is none.
    """

    error: Any
    together: Any
    bound: Any | None
    first: int


@dataclass(frozen=True)
class Rounding:
    """The places, a line for each format, and what is said of them."""

    places: Any
    lines: dict[str, Line]
    says: str


def rounding(numeric: Encoding) -> Rounding:
    """The error of the score of a query with the key before it, in each format, to position 10⁶."""
    with np.errstate(all="ignore"):
        return _rounding(numeric)


def _rounding(numeric: Encoding) -> Rounding:
    end, further = reach(numeric, FAR, SLOW)
    formats = dict(FORMATS)
    kinds = {given.kind for given in type(numeric).declared().values()}
    if numeric.whole and not any(map(wide_kind, kinds)):
        formats = {says: form for says, form in formats.items() if form.wide() is form}
    every = np.arange(1, end + 1)
    firsts = {says: int(every[_together(numeric, every, form)][:1].sum())
              for says, form in formats.items()}  # fmt: skip
    decades = np.log10(max(end, 2))
    places = np.geomspace(1, max(end, 2), int(PER_DECADE * decades) + 1).astype(int)
    places = np.unique([*places[places <= max(end, 1)], *(p for p in firsts.values() if p)])
    exact = np.array([_neighbours(numeric, p) for p in places])
    lines: dict[str, Line] = {}
    unbounded: dict[str, str] = {}
    for says, form in formats.items():
        low = encoding_in(numeric, form)
        error = np.abs(np.array([_neighbours(low, p, form) for p in places]) - exact)
        bound = None
        try:
            bound = np.where(np.isfinite(error), bounds(numeric, places, form, says), np.inf)
        except NotBounded as why:
            unbounded[says] = str(why)
        lines[says] = Line(error, _together(numeric, places, form), bound, firsts[says])
    kept = "; with angles in float32, positions and frequencies are as well" * (
        len(formats) == len(FORMATS)
    )
    told = (f"The score of a query with the key one position before it, computed in each format, "
            f"against float64; parameters{'' if numeric.whole else ', positions'} and every "
            f"operation are rounded{kept}.{_ended(end, further=further)}"
            f"{_bounded(unbounded, lines)} {' '.join(_remarks(places, lines))}")  # fmt: skip
    return Rounding(places, lines, told.strip())


def _ended(end: int, *, further: bool) -> str:
    """Where the drawing ends before its time, and why."""
    if end == FAR:
        return ""
    if further:
        return f" Drawn up to position {end}, as its code takes a step for each position."
    return f" It is defined up to position {end}."


def _bounded(unbounded: dict[str, str], lines: dict[str, Line]) -> str:
    """What is to be known of the bounds."""
    if len(unbounded) == len(lines):
        return f" No bounds are drawn: {next(iter(unbounded.values()))}."
    told = (" Dashed: a bound on the error, derived from its code operation by operation, as long "
            "as nothing overflows and the same branches are taken.")  # fmt: skip
    drawn = [line.bound for line in lines.values() if line.bound is not None]
    if any(np.isinf(bound).any() for bound in drawn):
        told += " Where it ends no digit of the score is left by it, or nothing finite."
    if any(np.isnan(bound).any() for bound in drawn):
        told += " It is not computed for positions that would take too long."
    for says, why in unbounded.items():
        told += f" None is drawn in {says}: {why}."
    return told


def _neighbours(numeric: Encoding, place: int, form: type[Rounded] | None = None) -> float:
    """The score of a query at a position with the key one before it."""
    token = content(numeric, 1, form)
    m, n = (at(numeric, [p], form) for p in (place, place - 1))
    return float(np.asarray(numeric.scores(token, token, m, n))[0, 0])


def _remarks(places: Any, lines: dict[str, Line]) -> Iterator[str]:
    """What lines of errors cannot show, each remark once for all formats of which it is true."""
    found: dict[str, list[str]] = {}
    for says, line in lines.items():
        if line.first:
            told = f"neighbours fall together from {line.first} on (circles)"
            found.setdefault(told, []).append(says)
        if not np.isfinite(line.error).all():
            first = places[~np.isfinite(line.error)][0]
            told = f"there is no finite score from {first} on, of the positions drawn"
            found.setdefault(told, []).append(says)
        if (line.error == 0).all():
            found.setdefault("every score drawn is exact", []).append(says)
    for told, formats in found.items():
        yield f"In {', '.join(formats)} {told}."


def _together(numeric: Encoding, places: Any, form: type[Rounded]) -> Any:
    """Where a position and the one before it are one number in a format."""
    keys, queries = at(numeric, places - 1, form), at(numeric, places, form)
    return np.asarray(keys == queries).reshape(len(places), -1).all(axis=1)
