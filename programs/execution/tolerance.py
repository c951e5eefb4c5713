r"""Derived bounds on the rounding errors of rotary code and tables of positions.

Write U for the unit roundoff of the data and u for that of the angles (float32).

*Rotating.*  With |ĉ − cos â| <= c, |ŝ − sin â| <= c, and x ĉ − y ŝ and x ŝ + y ĉ computed from
rounded products, a rotated pair is at most η times its length away from its exact rotation by â,

    η = √2 (c + (2U + U²)(1 + √2 c)):

the errors of ĉ and ŝ rotate and scale the pair by at most √2 c, and the roundings are at most
(2U + U²)(|x ĉ| + |y ŝ|) in each entry, a vector of norm at most (2U + U²) √2 |(x, y)| |(ĉ, ŝ)|.
A cosine is computed in the dtype of the angles, within FUNCTION units, and stored in that of
the data: c = FUNCTION·u + U (1 + FUNCTION·u).  Code may do twice as many operations as are counted
here (a factor, a cast back and forth): ROOM = 2.

*Angles.*  The angle p·ω is off by at most STEPS·u·|p|·|ω|: for scaling the position, the product,
and one more operation.  In a product of two rotated vectors both have such an angle:

    |q·k − exact|  <=  |q| |k| (2η + η² + STEPS·u·Ω (|m| + |n|)).

*Frequencies.*  base^(−2i/D) computed in float32 from a power and a quotient, or as exp(y) with
y = ln ω off by two roundings, has a relative error of at most (2 |ln ω| + 8) u, the 8 for the
operations of a scaling.

*Sums.*  A sum of n products, in a chain of DEPTH such operations, is off by at most
DEPTH (4 U + n u) times the sizes that are summed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ...numeric.devices import unit_roundoff

# Error of a cosine, in unit roundoffs: 0.6 measured on the CPU, 2 by the CUDA documentation, and
# one more if the table is multiplied by a factor.
FUNCTION = 3.0
ROOM = 2.0
STEPS = 3.0
DEPTH = 8.0


@dataclass(frozen=True)
class Rounding:
    """The constants of the formulas above: ``unit`` U, ``angle_unit`` u, ``rotating`` ROOM·η."""

    unit: float
    angle_unit: float
    rotating: float

    def angle(self, positions: Tensor | float, omega: Tensor | float) -> Tensor:
        """Bound the error of an angle p·ω; the shape is that of p·ω."""
        p = torch.as_tensor(positions, dtype=torch.float64).abs()
        return STEPS * self.angle_unit * p * torch.as_tensor(omega, dtype=torch.float64).abs()

    def vector(self, size: float, omega: float, *places: float) -> float:
        """Bound the error of a vector of this length, rotated by each of these positions."""
        far = sum(abs(p) for p in places)
        return size * (
            (1 + self.rotating) ** len(places) - 1 + STEPS * self.angle_unit * omega * far
        )

    def score(self, size: float, omega: float, m: float, n: float) -> float:
        """Bound the error of q·k, |q| |k| = size, for a query rotated at m and a key at n."""
        return self.vector(size, omega, m, n)


def rotation_error(data: torch.dtype, angles: torch.dtype = torch.float32) -> float:
    """Return η for pairs of one dtype that are rotated by angles of another."""
    unit, own = unit_roundoff(data), FUNCTION * unit_roundoff(angles)
    c = own + unit * (1 + own)
    return math.sqrt(2) * (c + (2 * unit + unit**2) * (1 + math.sqrt(2) * c))


def rounding_of(dtype: torch.dtype, angles: torch.dtype = torch.float32) -> Rounding:
    """Return the rounding of code on data of one dtype with angles of another.

    >>> rounding_of(torch.float32).rotating < 2e-6 < rounding_of(torch.bfloat16).rotating
    True
    """
    eta = rotation_error(dtype, angles)
    return Rounding(unit_roundoff(dtype), unit_roundoff(angles), ROOM * eta)


def formula_error(omega: Tensor, unit: float) -> Tensor:
    """Bound the relative error of each frequency computed by its formula: (B,) -> (B,)."""
    size = omega.abs()
    logarithm = torch.where(size > 0, size, torch.ones_like(size)).log().abs()
    return (2 * logarithm + 8) * unit


def ladder_error(omega: Tensor, unit: float) -> Tensor:
    """Bound the absolute error of each frequency computed by its formula: (B,) -> (B,)."""
    return omega.abs() * formula_error(omega, unit)


def sums(terms: int, dtype: torch.dtype, size: float) -> float:
    """Bound the error of a chain of sums of so many terms, with numbers as large as ``size``.

    Sums of short dtypes are accumulated in float32; their results are rounded.
    """
    unit = unit_roundoff(dtype)
    return DEPTH * (4 * unit + terms * min(unit, unit_roundoff(torch.float32))) * size
