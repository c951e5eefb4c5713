"""The angles and frequencies that rotary code rotates by, read off what it does to unit vectors.

Whatever the code is, it is a function ``rotate(x, positions)`` from (n, d) and (n,) to (n, d).  A
pair of channels is rotated by α if it takes the unit vectors of the pair to (cos α, sin α) and
(−sin α, cos α).  A frequency ω is read off positions 1, 2, 4, ..: the angle at 1 is ω, the angle
at 2p tells twice as much as that at p, and which multiple of 2π is missing there is known from p.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Rotate = Callable[[Tensor, Tensor], Tensor]
LAYOUTS = ("interleaved", "half")
LARGEST = 1 << 22  # entries that are rotated at once


@dataclass(frozen=True)
class Rotated:
    """What pairs of unit vectors became at each position.

    ``angles``: by how much each pair rotated, in (−π, π].  ``away``: how far the two rotated
    vectors of a pair are from those rotated by that angle, what left the pair among it.  ``rest``:
    how far channels of no pair moved.  All in float64: (n,), (n, B), (n, B), (n,).
    """

    positions: Tensor
    angles: Tensor
    away: Tensor
    rest: Tensor
    layout: str


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


def rotated_units(
    rotate: Rotate,
    positions: Tensor,
    pairs: int,
    layout: str,
    *,
    width: int | None = None,
    dtype: torch.dtype = torch.float32,
    scale: float = 1.0,
) -> Rotated:
    """Rotate every unit vector at every position, and read what became of the pairs.

    The channels from 2B to ``width`` are those of no pair.  ``scale`` is by how much the code
    makes rotated vectors longer (YaRN's attention factor).

    Raises ``ValueError`` where the code gives another shape than it was given, or where there are
    more pairs than channels.
    """
    width = 2 * pairs if width is None else width
    if width < 2 * pairs:
        raise ValueError(f"{pairs} pairs need {2 * pairs} channels; the width is {width}")
    found = []
    for part in torch.split(positions, max(1, LARGEST // width**2)):
        units = torch.eye(width, dtype=dtype).repeat(len(part), 1)
        result = rotate(units, part.repeat_interleave(width))
        if result.shape != units.shape:
            raise ValueError(
                f"rotary code was given vectors {tuple(units.shape)} and gave "
                f"{tuple(result.shape)}; it should give as many of the same width"
            )
        found.append(result.detach().to("cpu", torch.float64).reshape(len(part), width, width))
    images = torch.cat(found) / scale  # (n, unit vector, channel)
    first, second = pairs_in(layout, pairs)
    cos = images[:, first, first] + images[:, second, second]
    sin = images[:, first, second] - images[:, second, first]
    angles = torch.atan2(sin, cos)
    want = torch.zeros(len(positions), 2 * pairs, width, dtype=torch.float64)
    b = torch.arange(pairs)
    want[:, b, first], want[:, b, second] = torch.cos(angles), torch.sin(angles)
    want[:, pairs + b, first], want[:, pairs + b, second] = -torch.sin(angles), torch.cos(angles)
    off = (images[:, torch.cat((first, second))] - want).norm(dim=-1)
    away = torch.maximum(off[:, :pairs], off[:, pairs:])
    others = torch.arange(2 * pairs, width)
    left = (images[:, others] * scale - torch.eye(width, dtype=torch.float64)[others]).abs()
    rest = left.flatten(1).amax(1) if len(others) else torch.zeros(len(positions)).double()
    return Rotated(positions, angles, away, rest, layout)


def wrapped(angles: Tensor) -> Tensor:
    """The same angles in [−π, π)."""
    return torch.remainder(angles + math.pi, math.tau) - math.pi


def frequencies_of(found: Rotated, radius: Tensor) -> tuple[Tensor, Tensor]:
    """ω of each pair and how far it may be off: (B,), (B,).

    ``radius``: how far each angle may be off, (n, B).  A pair is followed from position to
    position, the first of which after 0 is 1, for as long as its radius leaves no doubt about
    the rotates between.  A frequency is taken to be in (−π, π]: no code on whole positions can
    tell it from one that is 2π more.

    Raises ``ValueError`` where position 1 is missing.
    """
    rows = [(row, p) for row, p in enumerate(found.positions.tolist()) if p > 0]
    if not rows or rows[0][1] != 1:
        raise ValueError(f"frequencies are read from position 1 on; given {found.positions[:3]}")
    omega, off = found.angles[rows[0][0]], radius[rows[0][0]]
    known = off < math.pi
    for row, place in rows[1:]:
        known = known & (off * place + radius[row] < math.pi)
        seen = omega + wrapped(found.angles[row] - omega * place) / place
        better = known & (radius[row] / place < off)
        omega, off = torch.where(better, seen, omega), torch.where(better, radius[row] / place, off)
    return omega, off


def by_table(table: Callable[[Tensor], tuple[Tensor, Tensor]], layout: str) -> Rotate:
    """Rotary code from a table of cosines and sines, (n,) -> (n, B) or (n, 2B) twice.

    Of a table with a cosine for each channel those of the pairs' first channels are taken.
    """

    def rotate(x: Tensor, positions: Tensor) -> Tensor:
        pairs = x.shape[-1] // 2
        first, second = (i.to(x.device) for i in pairs_in(layout, pairs))
        cos, sin = table(positions)
        if cos.shape[-1] == 2 * pairs:
            cos, sin = cos[..., first], sin[..., first]
        a, b = x[..., first], x[..., second]
        result = torch.empty_like(x, dtype=torch.promote_types(x.dtype, cos.dtype))
        result[..., first], result[..., second] = a * cos - b * sin, b * cos + a * sin
        return result

    return rotate
