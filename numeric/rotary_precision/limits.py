"""Where rotary encoding in a format breaks, where positions collide, how frequencies drift."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from .formats import Format, declared, float32_formula
from .scores import Pairs, errors

__all__ = ["BASES", "SHIFTS", "Break", "Collision", "Drift", "breaks", "collision", "drift"]

BASES = (1e4, 5e5, 1e6)
SHIFTS = (0, 10**3, 10**4, 10**5, 10**6)
LIMIT = 1e-2  # of the error of a score, in units of |q||k|/√d
OFF = 0.1  # radians
FURTHEST = 1 << 26
PER_OCTAVE = 2
CHUNK = 1 << 20


@dataclass(frozen=True)
class Break:
    """The first position drawn at which scores are off by more than ``limit``; None: nowhere.

    A query there, keys less than 256 before it; positions are drawn two to an octave up to
    ``furthest``.  ``rms`` and ``largest`` are those of the root mean square and of one score.
    """

    form: str
    base: float
    limit: float
    rms: int | None
    largest: int | None
    furthest: int


@dataclass(frozen=True)
class Collision:
    """The first position of 0, 1, 2, .. that a dtype keeps as the one before it.

    ``infinite`` is the first that it does not keep at all; None: none up to ``searched``.
    """

    dtype: str
    first: int | None
    infinite: int | None
    searched: int


@dataclass(frozen=True)
class Drift:
    """Frequencies of a base rounded to a dtype.

    ``relative`` is the largest relative error, ``at`` the first position at which some angle is
    off by ``off`` radians for that reason alone, ``subnormal`` how many frequencies the dtype
    keeps with fewer digits.
    """

    dtype: str
    base: float
    relative: float
    off: float
    at: int
    subnormal: int


def breaks(
    pairs: Pairs, form: Format, base: float, *, limit: float = LIMIT, furthest: int = FURTHEST,
    device: torch.device | None = None,
) -> Break:  # fmt: skip
    """Where scores of a format begin to be off by more than a limit."""
    first: dict[str, int | None] = {"rms": None, "largest": None}
    for place in grid(furthest):
        found = errors(pairs.at(place), form, base, device=device)
        for name, value in (("rms", found.rms), ("largest", found.largest)):
            if first[name] is None and not value <= limit:  # NaN is above every limit
                first[name] = place
        if None not in first.values():
            break
    return Break(form.name, base, limit, first["rms"], first["largest"], furthest)


def grid(furthest: int) -> Iterator[int]:
    """1, 2, 3, 4, 6, 8, ..: whole positions, two to an octave."""
    steps = range(PER_OCTAVE * round(math.log2(furthest)) + 1)
    yield from dict.fromkeys(round(2 ** (k / PER_OCTAVE)) for k in steps)


def collision(dtype: torch.dtype, searched: int = (1 << 24) + CHUNK) -> Collision:
    """The first position kept as its predecessor, found by looking at every one.

    >>> collision(torch.bfloat16, searched=1000).first
    257
    """
    first = infinite = None
    for start in range(0, searched, CHUNK):
        places = torch.arange(max(start - 1, 0), min(start + CHUNK, searched))
        kept = places.to(dtype)
        for found in (kept[1:] == kept[:-1]).nonzero()[:1].flatten().tolist():
            first = int(places[found + 1]) if first is None else first
        for found in kept.isinf().nonzero()[:1].flatten().tolist():
            infinite = int(places[found]) if infinite is None else infinite
    return Collision(str(dtype).removeprefix("torch."), first, infinite, searched)


def drift(dtype: torch.dtype, base: float, pairs: int = 64, *, off: float = OFF) -> Drift:
    """How frequencies drift that the float32 formula makes and a dtype keeps."""
    omega = declared(base, pairs)
    kept = float32_formula(base, pairs).to(dtype).double()
    wrong = (kept - omega).abs()
    subnormal = int((kept < torch.finfo(dtype).smallest_normal).sum())
    return Drift(
        str(dtype).removeprefix("torch."), base, float((wrong / omega).max()), off,
        math.ceil(off / float(wrong.max())), subnormal,
    )  # fmt: skip
