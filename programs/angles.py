"""The frequencies by which rotary code rotates, read off its angles at positions.

A frequency ω is read off positions 1, 2, 4, ..: the angle at 1 is ω, the angle at 2p tells twice as
much as that at p, and which multiple of 2π is missing there is known from p.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

LAYOUTS = ("interleaved", "half")


def pairs_in(layout: str, pairs: int) -> tuple[Tensor, Tensor]:
    """The first and the second channel of each pair: interleaved (2b, 2b + 1), half (b, B + b).

    Raises ``ValueError`` for another layout.
    """
    b = torch.arange(pairs)
    if layout == "interleaved":
        return 2 * b, 2 * b + 1
    if layout == "half":
        return b, pairs + b
    raise ValueError(f"layout {layout!r} was asked for; known: {', '.join(LAYOUTS)}")


def places(furthest: int) -> Tensor:
    """0, 1, 2, 4, .., with the position after each, and an odd one between: up to ``furthest``.

    A dtype that keeps few digits keeps the powers of 2 and neither of the others.
    """
    octaves = [1 << k for k in range(furthest.bit_length())]
    found = {0, *octaves, *(p + 1 for p in octaves), *((4 * p // 3) | 1 for p in octaves)}
    return torch.tensor(sorted(p for p in found if p <= furthest))


def wrapped(angles: Tensor) -> Tensor:
    """The same angles in [−π, π)."""
    return torch.remainder(angles + math.pi, math.tau) - math.pi


def frequencies_of(positions: Tensor, angles: Tensor, radius: Tensor) -> tuple[Tensor, Tensor]:
    """ω of each pair and how far it may be off, from angles at positions: (B,), (B,).

    ``radius``: how far each angle may be off, (n, B).  A pair is followed from position to
    position, the first of which after 0 is 1, for as long as its radius leaves no doubt about
    the turns between.  A frequency is taken to be in (−π, π]: no code on whole positions can
    tell it from one that is 2π more.

    Raises ``ValueError`` where position 1 is missing.
    """
    rows = [(row, p) for row, p in enumerate(positions.tolist()) if p > 0]
    if not rows or rows[0][1] != 1:
        raise ValueError(f"frequencies are read from position 1 on; given {positions[:3]}")
    omega, off = angles[rows[0][0]], radius[rows[0][0]]
    known = off < math.pi
    for row, place in rows[1:]:
        known = known & (off * place + radius[row] < math.pi)
        seen = omega + wrapped(angles[row] - omega * place) / place
        better = known & (radius[row] / place < off)
        omega, off = torch.where(better, seen, omega), torch.where(better, radius[row] / place, off)
    return omega, off
