"""Recognise stored tables of cosines and sines as formulas in the position.

Rotary code often stores cos(p ω_j) and sin(p ω_j) for positions below some length, and reads rows
of these tables.  A frequency is fitted to each pair of columns, and the tables are accepted only if
every entry of every column is m cos(p ω_j) or m sin(p ω_j) within what rounding of the angle p ω_j,
in the dtype of the table, explains.  The frequencies are then left symbolic; that the tables hold
rounded cosines, and only for so many positions, is a condition of every proof.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array
from attnproof.symbolic.givens import Given, real

MIN_POSITIONS = 4  # positions; columns of other functions could fit fewer
MAX_ENTRIES = 1 << 25  # entries of a table that is examined
FORMATS = (torch.float32, torch.float64)
MAX_BASE = 10**7  # of frequencies that are read as powers of a whole number
CLOSE = 2.0**-50


@dataclass(frozen=True)
class Angles:
    """A table whose row p is m cos(p ω) or m sin(p ω), with a frequency for each column.

    ``axis`` is the axis of positions, ``columns`` the index of each column's frequency in
    ``frequencies``, ``sines`` tells which columns are sines; ``name`` is shared by equal
    frequencies in all graphs; ``error`` is the largest difference of an entry from its formula.
    """

    name: str
    axis: int
    shape: tuple[int, ...]
    frequencies: tuple[float, ...]
    columns: tuple[int, ...]
    sines: tuple[bool, ...]
    factor: float
    error: float

    @property
    def given(self) -> Given:
        """The frequencies as arbitrary real numbers."""
        return real(len(self.frequencies), says="the frequencies of stored cosines, any numbers")

    @property
    def base(self) -> int | None:
        """N if the frequencies are N^(−j/L) as closely as the table determines them, else None."""
        last = self.shape[self.axis] - 1
        return geometric_base(self.frequencies, 2 * self.error / self.factor / last + CLOSE)

    def at(self, where: Array, factor: Array | None, frequencies: Array | None = None) -> Array:
        """Return the rows at these places: the axes of the places, then those of a row.

        ``frequencies``: what the frequencies are, if that is known.
        """
        rest = (*self.shape[: self.axis], *self.shape[self.axis + 1 :])
        half = len(self.sines) // 2
        frequencies = self.given.named(self.name) if frequencies is None else frequencies
        if self._alternates:
            angle = where[..., None] * frequencies
            both = [(xp.sin if sine else xp.cos)(angle) for sine in self.sines[:2]]
            found = xp.reshape(xp.stack(both, axis=-1), (*where.axes, len(self.columns)))
        else:
            angle = where[..., None] * _taken(frequencies, self.columns)
            if len(set(self.sines)) == 1:
                found = (xp.sin if self.sines[0] else xp.cos)(angle)
            elif self.sines == (False,) * half + (True,) * half:
                found = xp.concat((xp.cos(angle[..., :half]), xp.sin(angle[..., half:])), axis=-1)
            else:
                found = xp.stack(
                    [
                        (xp.sin if sine else xp.cos)(angle[..., k])
                        for k, sine in enumerate(self.sines)
                    ],
                    axis=-1,
                )
        found = found if factor is None else found * factor
        return found if rest == (len(self.columns),) else xp.reshape(found, (*where.axes, *rest))

    @property
    def _alternates(self) -> bool:
        """Whether cosine and sine of each frequency are adjacent."""
        count = len(self.frequencies)
        told = self.sines[:2] * count
        pairs = tuple(k for k in range(count) for _ in range(2))
        return self.sines == told and self.sines[:1] != self.sines[1:2] and self.columns == pairs


def geometric_base(values: Sequence[float], error: float) -> int | None:
    """Return the whole number N for which each value is N^(−j/L) within this error, or None.

    >>> geometric_base((1.0, 0.1, 0.01, 0.001), 1e-9), geometric_base((1.0, 0.1, 0.01), 1e-9)
    (10000, 1000)
    >>> geometric_base((1.0, 0.1, 0.02, 0.001), 1e-9) is None
    True
    """
    count = len(values)
    if count < 2 or not 0 < values[-1] < 1:
        return None
    power = values[-1] ** (-count / (count - 1))
    base = round(power) if power <= MAX_BASE else 0
    if base < 2:
        return None
    close = (abs(w - base ** (-j / count)) <= error for j, w in enumerate(values))
    return base if all(close) else None


def _taken(frequencies: Array, columns: tuple[int, ...]) -> Array:
    """Return the frequency of each column: as given, or with repeats of the whole or of each."""
    count = max(columns) + 1
    times = len(columns) // count
    if columns == tuple(range(count)) * times:
        return frequencies if times == 1 else xp.concat((frequencies,) * times)
    if columns == tuple(k for k in range(count) for _ in range(times)):
        return xp.reshape(xp.broadcast_to(frequencies[:, None], (count, times)), (len(columns),))
    return xp.stack([frequencies[k] for k in columns])


def angles_of(tables: Mapping[str, Tensor]) -> dict[str, Angles]:
    """Return the tables that hold cosines and sines, by name.

    Parameters, which training changes, are excluded, as are cosines whose sine is missing.

    >>> angle = torch.outer(torch.arange(16.0), torch.tensor([1.0, 0.1]))
    >>> found = angles_of({"cos": angle.cos(), "sin": angle.sin()})
    >>> [round(w, 6) for w in found["sin"].frequencies], found["sin"].columns
    ([1.0, 0.1], (0, 1))
    """
    flat = {name: told for name, table in tables.items() if (told := _columns(table)) is not None}
    found: dict[str, Angles] = {}
    for length in dict.fromkeys(columns.shape[0] for _, columns in flat.values()):
        own = {name: one for name, one in flat.items() if one[1].shape[0] == length}
        found |= _of_one_length(own, tables)
    return found


def _columns(table: Tensor) -> tuple[int, Tensor] | None:
    """Return the axis of positions, and the table with that axis first and the others flattened."""
    if isinstance(table, nn.Parameter) or table.dtype not in FORMATS or table.numel() > MAX_ENTRIES:
        return None
    axis = next((k for k, n in enumerate(table.shape) if n > 1), None)
    if axis is None or table.ndim < 2 or table.shape[axis] < MIN_POSITIONS:
        return None
    return axis, table.detach().double().movedim(axis, 0).reshape(table.shape[axis], -1)


def _of_one_length(
    flat: Mapping[str, tuple[int, Tensor]], tables: Mapping[str, Tensor]
) -> dict[str, Angles]:
    columns: dict[bytes, Tensor] = {}
    keys: dict[str, list[bytes]] = {}
    for name, (_, told) in flat.items():
        keys[name] = [column.contiguous().numpy().tobytes() for column in told.T]
        columns |= dict(zip(keys[name], told.T, strict=True))
    kinds = _paired(columns, max((torch.finfo(tables[name].dtype).eps for name in flat), default=0))
    found: dict[str, Angles] = {}
    for name, own in keys.items():
        if any(key not in kinds for key in own) or len({kinds[key][2] for key in own}) != 1:
            continue
        ladder = sorted({kinds[key][1] for key in own}, reverse=True)
        digest = hashlib.sha256(repr(ladder).encode()).hexdigest()[:8]
        found[name] = Angles(
            f"freq_{digest}",
            flat[name][0],
            tuple(tables[name].shape),
            tuple(ladder),
            tuple(ladder.index(kinds[key][1]) for key in own),
            tuple(kinds[key][0] for key in own),
            kinds[own[0]][2],
            max(kinds[key][3] for key in own),
        )
    return found


Kind = tuple[bool, float, float, float]  # whether a sine, its frequency, its factor, its error


def _paired(columns: Mapping[bytes, Tensor], eps: float) -> dict[bytes, Kind]:
    """Return the columns that are cosines or sines, each paired with the other for its angle."""
    found: dict[bytes, Kind] = {}
    cosines = {key: c for key, c in columns.items() if c[0] > 0}
    sines = {key: s for key, s in columns.items() if s[0] == 0}
    for key, c in cosines.items():
        for other, s in sines.items():
            told = _fitted(c, s, eps)
            if told is not None:
                frequency, factor, off = told
                found[key] = (False, frequency, factor, off)
                found.setdefault(other, (True, frequency, factor, off))
                break
    return found


def _fitted(c: Tensor, s: Tensor, eps: float) -> tuple[float, float, float] | None:
    """Fit ω and m such that c = m cos(p ω) and s = m sin(p ω) at every row p; return the error too.

    The angle of row 1 is refined at rows 2, 4, 8, .., each of which halves its error.
    """
    factor, last = float(c[0]), len(c) - 1
    for few in (slice(8), slice(None)):  # the first rows rule out most pairs
        if not bool(((c[few] ** 2 + s[few] ** 2 - factor**2).abs() <= 8 * eps * factor**2).all()):
            return None
    frequency, p = 0.0, 1
    while p <= last:
        seen = math.atan2(float(s[p]), float(c[p]))
        gap = math.remainder(seen - p * frequency, 2 * math.pi)
        frequency += gap / p
        p = p * 2 if p * 2 <= last or p == last else last
    rows = torch.arange(len(c), dtype=torch.float64)
    angle = rows * frequency
    allowed = eps * factor * (2 + angle.abs())
    off = torch.maximum((c - factor * angle.cos()).abs(), (s - factor * angle.sin()).abs())
    return (frequency, factor, float(off.max())) if bool((off <= allowed).all()) else None
