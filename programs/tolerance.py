r"""How far rounding alone may move what rotary code and tables of positions give, derived.

Write U for the unit roundoff of the data and u for that of the angles (float32).

*Rotating.*  With |ĉ − cos â| <= c, |ŝ − sin â| <= c, and x ĉ − y ŝ and x ŝ + y ĉ computed from
rounded products, a rotated pair is off its exact rotation by â by at most η times its length,

    η = √2 (c + (2U + U²)(1 + √2 c)):

the errors of ĉ and ŝ rotate and scale the pair by at most √2 c, and the roundings are at most
(2U + U²)(|x ĉ| + |y ŝ|) in each entry, whose root of squares is at most √2 |(x, y)| |(ĉ, ŝ)|.
A cosine is computed in the dtype of the angles, within FUNCTION units, and stored in that of
the data: c = FUNCTION·u + U (1 + FUNCTION·u).  Code may do twice as many operations as are counted
here (a factor, a cast there and back): ROOM = 2.

*Angles.*  The angle p·ω is off by at most STEPS·u·|p|·|ω|: a position that is scaled, the product,
and one operation more.  Both positions of a product of two rotated vectors have an angle:

    |q·k − exact|  <=  |q| |k| (2η + η² + STEPS·u·Ω (|m| + |n|)).

*Frequencies.*  base^(−2i/D) computed in float32 from a power and a quotient, or as exp(y) with
y = ln ω off by two roundings, is off by at most (2 |ln ω| + 8) u of itself, the 8 for the
operations of a scaling.

*Sums.*  A sum of n products, in a chain of DEPTH such operations, is off by at most
DEPTH (4 U + n u) of the sizes that are summed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..numeric.devices import unit_roundoff

# Of a cosine, in units of roundoff: measured 0.6 on the CPU, 2 by the documents of CUDA, and one
# more where the table is multiplied by a factor.
FUNCTION = 3.0
ROOM = 2.0
STEPS = 3.0
DEPTH = 8.0


@dataclass(frozen=True)
class Rounding:
    """The numbers of the formulas above: ``unit`` U, ``angle_unit`` u, ``rotating`` ROOM·η."""

    unit: float
    angle_unit: float
    rotating: float

    def angle(self, positions: Tensor | float, omega: Tensor | float) -> Tensor:
        """How far an angle p·ω may be off: the shape of p·ω."""
        p = torch.as_tensor(positions, dtype=torch.float64).abs()
        return STEPS * self.angle_unit * p * torch.as_tensor(omega, dtype=torch.float64).abs()

    def vector(self, size: float, omega: float, *places: float) -> float:
        """How far a vector of this length may be off after a turn at each of these positions."""
        far = sum(abs(p) for p in places)
        return size * (
            (1 + self.rotating) ** len(places) - 1 + STEPS * self.angle_unit * omega * far
        )

    def score(self, size: float, omega: float, m: float, n: float) -> float:
        """How far q·k may be off, |q| |k| = size, of a query rotated at m and a key at n."""
        return self.vector(size, omega, m, n)


def rotation_error(data: torch.dtype, angles: torch.dtype = torch.float32) -> float:
    """η of pairs of a dtype that are rotated by angles of another."""
    unit, own = unit_roundoff(data), FUNCTION * unit_roundoff(angles)
    c = own + unit * (1 + own)
    return math.sqrt(2) * (c + (2 * unit + unit**2) * (1 + math.sqrt(2) * c))


def rounding_of(dtype: torch.dtype, angles: torch.dtype = torch.float32) -> Rounding:
    """The rounding of code on data of a dtype whose angles are of another.

    >>> rounding_of(torch.float32).rotating < 2e-6 < rounding_of(torch.bfloat16).rotating
    True
    """
    eta = rotation_error(dtype, angles)
    return Rounding(unit_roundoff(dtype), unit_roundoff(angles), ROOM * eta)


def formula_error(omega: Tensor, unit: float) -> Tensor:
    """How far, relatively, each frequency may be off its formula: (B,) -> (B,)."""
    size = omega.abs()
    logarithm = torch.where(size > 0, size, torch.ones_like(size)).log().abs()
    return (2 * logarithm + 8) * unit


def ladder_error(omega: Tensor, unit: float) -> Tensor:
    """How far each frequency may be off its formula: (B,) -> (B,)."""
    return omega.abs() * formula_error(omega, unit)


def sums(terms: int, dtype: torch.dtype, size: float) -> float:
    """How far a chain of sums of so many terms may be off, its numbers being as large as ``size``.

    Sums of short dtypes are kept in float32; their results are rounded.
    """
    unit = unit_roundoff(dtype)
    return DEPTH * (4 * unit + terms * min(unit, unit_roundoff(torch.float32))) * size
