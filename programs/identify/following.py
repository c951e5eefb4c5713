"""By how much a pair turns from one position to the next, and in which precision it is computed.

The frequency is followed as in :mod:`..rotary_precision.extraction`, with what the code is seen
to do for a radius: first as if angles were computed in float32, then coarser.  Once a formula for
the frequencies is known, every way of rounding positions, frequencies and angles is tried, the
finest first, and the first that gives all angles that were read is told.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ...numeric.profile import unit_roundoff
from ...numeric.rotary_precision.extraction import Turned, frequencies_of, wrapped
from .known import formula_error

__all__ = ["Followed", "Rounding", "exact_to", "follow", "roundings"]

SINGLE, HALF, BRAIN, DOUBLE = torch.float32, torch.float16, torch.bfloat16, torch.float64
LEVEL = 1e-2


@dataclass(frozen=True)
class Followed:
    """Frequencies with their sign and radius, (B,), (B,), and in which dtype they were followed.

    ``steady``: whether the angle at every position is position times frequency, within that.
    """

    omega: Tensor
    radius: Tensor
    dtype: torch.dtype
    steady: bool


def follow(positions: Tensor, angles: Tensor, noise: float, step: float = 1.0) -> Followed:
    """Frequencies of angles (n, B) read within ``noise`` at positions (n,), multiples of ``step``.

    The radius of the angle A at a position is 2uA and the noise, for the finest u with which all
    positions agree.

    >>> follow(torch.tensor([1, 2, 3]), torch.tensor([[0.5], [1.0], [1.5]]), 1e-7).omega.tolist()
    [0.5]
    """
    best: Followed | None = None
    whole = (positions.double() / step).round()
    for dtype in (SINGLE, HALF, BRAIN):
        u = unit_roundoff(dtype)
        # the first guess of a frequency sets its radius: the angle at the first place after 0
        size = angles[int((whole > 0).nonzero()[0])].abs() + noise
        radius = whole[:, None] * size * (2 * u if dtype == SINGLE else 3 * u) + noise
        found = Turned(whole.long(), angles, radius, whole, "")
        omega, off = frequencies_of(found, radius)
        rest = wrapped(angles - whole[:, None] * omega).abs()
        known = radius + whole[:, None] * off
        steady = bool(((rest <= known) | (known >= math.pi)).all())
        best = Followed(omega / step, off / step, dtype, steady)
        if steady:
            return best
    assert best is not None  # the loop ran
    return best


@dataclass(frozen=True)
class Rounding:
    """In which dtypes positions, frequencies and angles are."""

    positions: torch.dtype
    frequencies: torch.dtype
    angles: torch.dtype

    @property
    def words(self) -> str:
        """As one would say it."""
        short = [f"{name} rounded to {str(dtype).removeprefix('torch.')}"
                 for name, dtype in (("positions", self.positions),
                                     ("frequencies", self.frequencies), ("angles", self.angles))
                 if dtype in (HALF, BRAIN)]  # fmt: skip
        if short:
            return " and ".join(short)
        return f"angles computed in {str(self.angles).removeprefix('torch.')}"

    def error(self, positions: Tensor, angles: Tensor, omega: Tensor) -> Tensor:
        """How far angles that were read are from this way to compute p·ω, what it allows aside.

        ω: (B,) by the formula, signed.  A rounding to a short dtype is taken to either side where
        the number before it is so near the middle that float32 decides.
        """
        size = omega.abs()
        slack = formula_error(size) if self.frequencies != DOUBLE else torch.zeros_like(size)
        own = 0.0 if self.angles == DOUBLE else unit_roundoff(SINGLE)
        p = _in(positions.double(), self.positions)[:, None]
        error = torch.full_like(angles, math.inf)
        whole = self.frequencies in (SINGLE, DOUBLE)  # then any number within the slack may be
        for one in (0,) if whole else (-1, 1):
            stored = _in(omega * (1 + one * slack), self.frequencies)
            within = p.abs() * stored.abs() * (own + (slack if whole else 0.0))
            if self.angles in (SINGLE, DOUBLE):
                off = (wrapped(angles - p * stored).abs() - within).clamp(min=0)
                error = torch.minimum(error, off)
                continue
            for other in (-1, 1):
                angle = _in(p * stored + other * within, self.angles)
                error = torch.minimum(error, wrapped(angles - angle).abs())
        return error


def _in(x: Tensor, dtype: torch.dtype) -> Tensor:
    """x as a dtype has it; float32 is left to the slack of who asks."""
    return x if dtype in (SINGLE, DOUBLE) else x.to(dtype).double()


WAYS = tuple(
    Rounding(p, f, a)
    for a, f, p in (
        (DOUBLE, DOUBLE, DOUBLE), (SINGLE, SINGLE, SINGLE),
        (SINGLE, SINGLE, HALF), (SINGLE, HALF, SINGLE), (HALF, SINGLE, SINGLE),
        (SINGLE, HALF, HALF), (HALF, HALF, SINGLE), (HALF, SINGLE, HALF), (HALF, HALF, HALF),
        (SINGLE, SINGLE, BRAIN), (SINGLE, BRAIN, SINGLE), (BRAIN, SINGLE, SINGLE),
        (SINGLE, BRAIN, BRAIN), (BRAIN, BRAIN, SINGLE), (BRAIN, SINGLE, BRAIN),
        (BRAIN, BRAIN, BRAIN),
    )
)  # fmt: skip


def roundings(positions: Tensor, angles: Tensor, omega: Tensor, noise: float) -> list[Rounding]:
    """Every way of rounding that gives the angles (n, B) that were read, the finest first."""
    return [way for way in WAYS if bool((way.error(positions, angles, omega) <= noise).all())]


def exact_to(
    positions: Tensor, angles: Tensor, omega: Tensor, noise: float, level: float = LEVEL
) -> int | None:
    """The last position before an angle is more than the level off p·ω; None if none is.

    What reading an angle leaves open is not held against the code.  −1 where the first is.
    """
    off = wrapped(angles - positions.double()[:, None] * omega).abs().amax(-1)
    bad = (off > level + noise).nonzero()[:, 0]
    if not len(bad):
        return None
    return int(positions[int(bad[0]) - 1]) if int(bad[0]) else -1
