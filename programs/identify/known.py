"""Frequencies that were read, each within a radius, and the ladders that give them.

Code in float32 has ω = base^(−b/B) from a power and a quotient, or from exp(y) with y = ln ω off
by two roundings: both within (2|ln ω| + 8) u, u = 2⁻²⁴, the 8 for the operations of a scaling.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ...numeric.profile import unit_roundoff

__all__ = ["BASES", "Fitted", "Known", "base_interval", "formula_error", "relative_error"]

BASES = (10_000.0, 500_000.0, 1_000_000.0, 150_000.0, 100_000.0, 5_000_000.0, 8_000_000.0)


@dataclass(frozen=True)
class Known:
    """Frequencies ω_b > 0, each within its radius: (B,), (B,)."""

    omega: Tensor
    radius: Tensor

    def fits(self, formula: Tensor, stored: torch.dtype = torch.float32) -> Tensor:
        """Whether ladders (.., B) give these frequencies, stored in a dtype: (..)."""
        slack = formula_error(formula)
        if stored == torch.float32:
            off = (self.omega - formula).abs() - slack * formula
            return (off <= self.radius).all(-1)
        ends = (((1 + s * slack) * formula).to(stored).double() for s in (-1, 1))
        low, high = ends
        off = torch.minimum((self.omega - low).abs(), (self.omega - high).abs())
        return (off <= self.radius).all(-1)

    def logarithms(self, stored: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
        """ln ω and how far that may be off, rounding of the code among it: (B,), (B,)."""
        part = self.radius / self.omega + relative_error(self.omega, stored)
        return self.omega.log(), -torch.log1p(-part.clamp(max=1 - 1e-15))


@dataclass(frozen=True)
class Fitted:
    """A ladder: ``omega`` by the formula in float64, ``between`` the bases that would fit.

    ``stored``: the dtype to which the frequencies were rounded.  ``scaling`` is "", linear, ntk,
    yarn, llama3 or even, with ``values`` of its parameters and ``words``; ``others`` says what
    fits as well.
    """

    omega: Tensor
    base: float | None
    between: tuple[float, float]
    scaling: str = ""
    values: Mapping[str, float] = field(default_factory=dict)
    words: str = ""
    stored: torch.dtype = torch.float32
    others: tuple[str, ...] = ()


def formula_error(omega: Tensor) -> Tensor:
    """How far, relatively, a frequency computed in float32 may be off its formula."""
    return (2 * omega.log().abs() + 8) * unit_roundoff(torch.float32)


def relative_error(omega: Tensor, stored: torch.dtype) -> Tensor:
    """The same, once it was stored in a dtype; numbers below the normal ones lose more."""
    if stored == torch.float32:
        return formula_error(omega)
    info = torch.finfo(stored)
    return formula_error(omega) + unit_roundoff(stored) + info.smallest_normal * info.eps / omega


def base_interval(y: Tensor, off: Tensor, over: float, upto: int) -> tuple[float, float]:
    """The logarithms of bases that give the pairs 1..upto: from, to (empty where from > to)."""
    b = torch.arange(1, upto + 1, dtype=torch.float64) / over
    middle, width = -y[1 : upto + 1] / b, off[1 : upto + 1] / b
    return float((middle - width).max()), float((middle + width).min())
