r"""How far rotary encoding may be off in a format, derived.

Write u_p, u_ω, u_a, U for the roundings of positions, frequencies, angles and data, and m, n for
two positions.

*Angles.*  The code turns by â_m = m(1 + p_m)·ω(1 + w)·(1 + a_m) with |p_m| <= u_p (0 where m is a
number of the dtype), |w| <= ε, the error of the frequencies, and |a_m| <= u_a.  With
E = u_p + u_a + u_p u_a, as w is the same for both,

    |â_m − mω|               <=  ω (ε + (1 + ε) E) |m|                                    (angle)
    |(â_m − â_n) − (m − n)ω|  <=  ω (ε |m − n| + (1 + ε) E (|m| + |n|))                   (offset)

In float32 whole positions below 2^24 are exact and ε <= 1.5 u, so that this is
1.5 u |m − n| ω + u (m + n) ω.  Vectors turned by angles that are α apart are 2 |sin(α/2)| apart.

*Turning.*  With |ĉ − cos â| <= c, |ŝ − sin â| <= c, and x ĉ − y ŝ and x ŝ + y ĉ computed from
rounded products, a turned pair is off its exact turn by â by at most η times its length,

    η = √2 (c + (2U + U²)(1 + √2 c)):

the errors of ĉ and ŝ turn and scale the pair by at most √2 c, and the roundings are at most
(2U + U²)(|x ĉ| + |y ŝ|) in each entry, whose root of squares is at most √2 |(x, y)| |(ĉ, ŝ)|.
A cosine is computed in the dtype of the angles, within FUNCTION units, and stored in that of
the data: c = FUNCTION·u_a + U (1 + FUNCTION·u_a).

*Scores.*  With pairs of lengths |q_b| and |k_b|, and the product summed in float64,

    |error of q·k|  <=  Σ_b |q_b| |k_b| ( min(2, offset_b) + 2η + η² + (2t + t²)(1 + η)² ),

where t is the rounding of what a matrix unit reads (2^-11 for TF32).  Underflow adds the
smallest number of the dtype for each rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..profile import unit_roundoff
from .formats import FORMULA_ERROR, Format, integers_exact

__all__ = ["Bound", "bound_of"]

# Of a cosine, in units of roundoff: measured 0.6 on the CPU, 2 by the documents of CUDA, and one
# more where the table is multiplied by a factor.
FUNCTION = 3.0


@dataclass(frozen=True)
class Bound:
    """The numbers of the module's formulas for one format and one list of frequencies ω.

    ``frequency`` is ε of each frequency: (B,), ``turning`` η, ``operand`` t, ``least`` and
    ``least_angle`` the smallest positive numbers of data and angles.
    """

    omega: Tensor
    form: Format
    frequency: Tensor
    turning: float
    operand: float
    least: float
    least_angle: float

    def step(self, *positions: Tensor) -> float:
        """E, for whole positions up to the largest of these; infinite if that overflows."""
        largest = max(float(p.abs().max()) for p in positions)
        if largest > torch.finfo(self.form.positions).max:
            return math.inf
        whole = largest <= integers_exact(self.form.positions)
        p, a = 0.0 if whole else unit_roundoff(self.form.positions), unit_roundoff(self.form.angles)
        return p + a + p * a

    def angle(self, positions: Tensor) -> Tensor:
        """How far the angle of a pair at a position may be off: (n,) -> (n, B)."""
        rate = self.omega.abs() * (self.frequency + (1 + self.frequency) * self.step(positions))
        return positions.abs()[:, None] * rate + self.least_angle

    def offset(self, m: Tensor, n: Tensor, *, own: bool = False) -> Tensor:
        """How far the difference of two angles may be off: (k,), (k,) -> (k, B).

        ``own``: against the rounded frequencies, which an identity between scores cannot tell
        from the declared ones.
        """
        both = (1 + self.frequency) * self.step(m, n) * (m.abs() + n.abs())[:, None]
        shared = 0.0 if own else self.frequency * (m - n).abs()[:, None]
        return self.omega.abs() * (shared + both) + 2 * self.least_angle

    def score(
        self, q: Tensor, k: Tensor, m: Tensor, n: Tensor, *, own: bool = False
    ) -> Tensor:
        """How far q·k may be off, from the lengths of their pairs: (k, B), (k, B) -> (k,)."""
        eta, t = self.turning, self.operand
        turned = self.offset(m, n, own=own).clamp(max=2).nan_to_num(nan=2, posinf=2)
        turned = turned + 2 * eta + eta**2 + (2 * t + t**2) * (1 + eta) ** 2
        lost = 4 * self.least * (1 + eta) * (q + k + 4 * self.least).sum(-1)
        return (q * k * turned).sum(-1) + lost


def bound_of(form: Format, omega: Tensor) -> Bound:
    """The bound of a format for the declared frequencies ω: (B,)."""
    omega = omega.to("cpu", torch.float64)
    frequency = torch.zeros_like(omega)
    if form.frequencies != torch.float64:
        frequency = frequency + FORMULA_ERROR
        if form.frequencies != torch.float32:
            size = omega.abs()
            stored = unit_roundoff(form.frequencies) + _least(form.frequencies) / 2 / size
            frequency = torch.where(size > 0, frequency + stored * (1 + frequency), 0.0)
    unit, own = unit_roundoff(form.data), FUNCTION * unit_roundoff(form.angles)
    c = own + unit * (1 + own)
    turning = math.sqrt(2) * (c + (2 * unit + unit**2) * (1 + math.sqrt(2) * c))
    operand = 2.0 ** -(form.operand_bits + 1) if form.operand_bits else 0.0
    return Bound(omega, form, frequency, turning, operand, _least(form.data), _least(form.angles))


def _least(dtype: torch.dtype) -> float:
    """The smallest positive number of a dtype."""
    info = torch.finfo(dtype)
    return info.smallest_normal * info.eps
