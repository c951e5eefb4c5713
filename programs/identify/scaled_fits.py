"""Ladders by parts that give frequencies that were read: as Llama 3.1 has them, and as YaRN.

The pairs that turn fastest are not scaled, and tell the base.  A candidate says how much γ of ω a
pair keeps; the factor follows from the pair that keeps least, and the ladder is accepted where it
gives every frequency within its radius and the rounding of the code.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from . import scalings
from .known import BASES, Fitted, Known, base_interval, relative_error
from .plain_numbers import simplest, told

__all__ = ["llama", "yarn"]

LENGTHS = tuple(2.0**k for k in range(8, 21))
PARTS = ((1.0, 4.0), (1.0, 32.0), (1.0, 2.0), (1.0, 8.0), (1.0, 16.0))
TRIED = 100  # candidates that are looked at closely; the usual ones come first


def _bases(known: Known, stored: torch.dtype) -> Iterator[tuple[float, tuple[float, float]]]:
    """Bases that the first pairs, not scaled yet, agree on; then the usual ones."""
    y, off = known.logarithms(stored)
    if abs(float(y[0])) > float(off[0]):
        return
    upto = 1
    while upto + 1 < len(y):
        low, high = base_interval(y, off, len(y), upto + 1)
        if low > high:
            break
        upto += 1
    seen: list[float] = []
    for end in range(upto, 0, -1):
        low, high = base_interval(y, off, len(y), end)
        base = simplest(math.exp(low), math.exp(high))
        if base > 1 and base not in seen and len(seen) < 3:  # of 1 nothing is a ladder
            seen.append(base)
            yield base, (math.exp(low), math.exp(high))
    for base in BASES:
        if base not in seen:
            yield base, (base, base)


def _factors(
    known: Known, pure: Tensor, kept: Tensor, stored: torch.dtype
) -> Iterator[tuple[int, float, Tensor]]:
    """Of candidates γ (C, B): which give the frequencies as γω + (1 − γ)ω/s, with s: row, s, ω.

    s is read from the pair that is scaled most.
    """
    ratio, off = known.omega / pure, known.radius / pure + relative_error(pure, stored)
    if bool((ratio > 1 + off).any()):
        return
    last = kept.argmin(-1)
    least = kept.gather(-1, last[:, None])[:, 0]
    g = (ratio[last] - least) / (1 - least)
    wide = off[last] / (1 - least)
    there = (least < 1) & (g - wide > 0) & (g - wide < 1)
    loose = (g[:, None] + (1 - g)[:, None] * kept - ratio).abs() <= off + wide[:, None]
    for row in (there & loose.all(-1)).nonzero()[:TRIED, 0].tolist():
        s = simplest(1 / float(g[row] + wide[row]), 1 / float(g[row] - wide[row]))
        omega = pure * (kept[row] + (1 - kept[row]) / s)
        if s > 1 and bool(known.fits(omega, stored)):
            yield row, s, omega


def llama(known: Known, stored: torch.dtype) -> Iterator[Fitted]:
    """By parts in the turns: low, high and the length have one common factor that is free."""
    pairs = known.omega.numel()
    for base, between in _bases(known, stored):
        pure = scalings.ladder(base, pairs)
        which = [(low, high, n) for low, high in PARTS for n in LENGTHS]
        kept = torch.stack([
            ((n * pure / math.tau - low) / (high - low)).clamp(0, 1) for low, high, n in which
        ])  # fmt: skip
        found = list(_factors(known, pure, kept, stored))
        for row, s, omega in found[:1]:
            low, high, n = which[row]
            name = "Llama 3.1" if high == 4 else "NTK by parts"
            also = (f"{len(found) - 1} other choices of low, high and length",)
            yield Fitted(
                omega, base, between, "llama3",
                {"factor": s, "low": low, "high": high, "original": n},
                f"{name} factor {told(s)}, low {told(low)}, high {told(high)}, "
                f"original length {told(n)}", stored, also if len(found) > 1 else (),
            )  # fmt: skip
        if found:
            return


def yarn(known: Known, stored: torch.dtype) -> Iterator[Fitted]:
    """By parts in the index: between which indices, and from which length those may come."""
    pairs = known.omega.numel()
    for base, between in _bases(known, stored):
        pure = scalings.ladder(base, pairs)
        usual = [(*scalings.ramp_of(base, pairs, n, 32, 1, whole=whole), n)
                 for whole in (True, False) for n in LENGTHS]  # fmt: skip
        every = [(float(low), float(high), 0.0) for low in range(pairs)
                 for high in range(low + 1, 2 * pairs) if between[0] < between[1]]  # fmt: skip
        which = torch.tensor([*(one for one in usual if one[0] < one[1]), *every],
                             dtype=torch.float64)  # fmt: skip
        b = torch.arange(pairs, dtype=torch.float64)
        kept = 1 - ((b - which[:, :1]) / (which[:, 1:2] - which[:, :1])).clamp(0, 1)
        found = list(_factors(known, pure, kept, stored))
        for row, s, omega in found[:1]:
            low, high, n = which[row].tolist()
            lengths = sorted({which[r, 2].item() for r, t, _ in found if t == s} - {0.0})
            also = tuple(f"original length {told(other)}" for other in lengths if other != n)
            length = f", original length {told(n)}" if n else ""
            yield Fitted(
                omega, base, between, "yarn",
                {"factor": s, **({"original": n, "fast": 32.0, "slow": 1.0} if n else {}),
                 "from_index": low, "to_index": high},
                f"YaRN factor {told(s)}{length}", stored,
                also if n else ("any betas and length that give these indices",),
            )  # fmt: skip
        if found:
            return
