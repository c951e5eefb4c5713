r"""Error bounds of rotary encoding in a format, with derivation.

Write u_p, u_ω, u_a, U for the roundings of positions, frequencies, angles and data, and m, n for
two positions.

*Angles.*  The code rotates by â_m = m(1 + p_m)·ω(1 + w)·(1 + a_m) with |p_m| <= u_p (0 where m is a
number of the dtype), |w| <= ε, the error of the frequencies, and |a_m| <= u_a.  With
E = u_p + u_a + u_p u_a, as w is the same for both,

    |â_m − mω|               <=  ω (ε + (1 + ε) E) |m|                                    (angle)
    |(â_m − â_n) − (m − n)ω|  <=  ω (ε |m − n| + (1 + ε) E (|m| + |n|))                   (offset)

In float32 whole positions below 2^24 are exact and ε <= 1.5 u, so that this is
1.5 u |m − n| ω + u (m + n) ω.  Vectors rotated by angles that are α apart are 2 |sin(α/2)| apart.

*Rotating.*  A rotated pair is off its exact rotate by â by at most η times its length, see
:mod:`attnproof.programs.execution.tolerance`.

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

from attnproof.numeric.devices import unit_roundoff
from attnproof.programs.execution.tolerance import rotation_error

# The dtype of each quantity of a rotary encoding

TF32_BITS = 10  # of the fraction of what a TF32 matrix unit reads
FORMULA_ERROR = 1.5 * 2.0**-24  # of the float32 formula, relative; see float32_formula


@dataclass(frozen=True)
class Format:
    """The dtypes of one rotary encoding.

    The name is that of the dtype of the data; positions and angles are float32 unless it states
    another.
    ``data``: queries, keys, cosines and sines.  ``positions`` and ``angles``: p and the product
    p·ω.  ``frequencies``: ω; float64 is the declared value, anything else that of the float32
    formula, rounded.  ``operand_bits``: bits of the fraction that the product q·k reads, 0 for all.
    """

    name: str
    data: torch.dtype
    positions: torch.dtype = torch.float32
    frequencies: torch.dtype = torch.float32
    angles: torch.dtype = torch.float32
    operand_bits: int = 0

    def rounded_frequencies(self, base: float, pairs: int) -> Tensor:
        """Return ω_0, .., ω_(B−1) in this format: (B,)."""
        if self.frequencies == torch.float64:
            return declared(base, pairs)
        return float32_formula(base, pairs).to(self.frequencies)

    def angle(self, positions: Tensor, frequencies: Tensor) -> Tensor:
        """Return p·ω, with position, frequency and product rounded: (n,), (B,) -> (n, B)."""
        p = positions.to(self.positions).to(self.angles)
        return p[:, None] * frequencies.to(p.device, self.angles)

    def operand(self, x: Tensor) -> Tensor:
        """Return x rounded as an operand of the product q·k."""
        return tf32(x) if self.operand_bits else x


def declared(base: float, pairs: int) -> Tensor:
    """Return ω_b = base^(−b/B) in float64: (B,).  Su et al. 2021, section 3.2.2."""
    return torch.tensor([float(base) ** (-b / pairs) for b in range(pairs)], dtype=torch.float64)


def float32_formula(base: float, pairs: int) -> Tensor:
    """Return ω_b as transformers does: 1 / base^(2b/d), with all operations in float32: (B,).

    The exponent 2b/d is off by at most u = 2^-24 of it where d is not a power of 2, the power by
    its own error, the quotient by u.  For d = 128 and the bases of :mod:`limits` all together
    stay below 1.5 u; the table of drifts has their actual values.
    """
    width = 2 * pairs
    exponents = torch.arange(0, width, 2, dtype=torch.int64).to(torch.float32) / width
    return 1.0 / (base**exponents)


def tf32(x: Tensor) -> Tensor:
    """Round float32 to 10 fraction bits, to nearest, ties to even, which emulates TF32.

    >>> tf32(torch.tensor([1 + 2**-10, 1 + 2**-11, 1 + 3 * 2**-11])).tolist()
    [1.0009765625, 1.0, 1.001953125]
    """
    cut = 23 - TF32_BITS
    bits = x.to(torch.float32).contiguous().view(torch.int32)
    up = (1 << (cut - 1)) - 1 + ((bits >> cut) & 1)
    return ((bits + up) & ~((1 << cut) - 1)).view(torch.float32)


HALF, BRAIN = torch.float16, torch.bfloat16
FORMATS = (
    Format("float32", torch.float32),
    Format("float32, float64 angles", torch.float32, *(torch.float64,) * 3),
    Format("float32, tf32 operands", torch.float32, operand_bits=TF32_BITS),
    Format("float16", HALF),
    Format("bfloat16", BRAIN),
    Format("bfloat16, frequencies too", BRAIN, frequencies=BRAIN),
    Format("bfloat16 throughout", BRAIN, BRAIN, BRAIN, BRAIN),
    Format("float16 throughout", HALF, HALF, HALF, HALF),
)


def format_named(name: str) -> Format:
    """Return the format of a name.  Raises ``ValueError``, with all names, if unknown."""
    found = {one.name: one for one in FORMATS}
    if name not in found:
        raise ValueError(f"wanted a format, one of {', '.join(found)}; got {name!r}")
    return found[name]


def integers_exact(dtype: torch.dtype) -> int:
    """Return the bound up to which a dtype represents every integer.

    >>> integers_exact(torch.bfloat16)
    256
    """
    return round(1 / unit_roundoff(dtype))


# Error bounds


@dataclass(frozen=True)
class Bound:
    """The numbers of the module's formulas for one format and one list of frequencies ω.

    ``frequency`` is ε of each frequency: (B,), ``rotating`` η, ``operand`` t, ``least`` and
    ``least_angle`` the smallest positive numbers of data and angles.
    """

    omega: Tensor
    form: Format
    frequency: Tensor
    rotating: float
    operand: float
    least: float
    least_angle: float

    def step(self, *positions: Tensor) -> float:
        """Return E for integer positions up to the largest of these; infinity on overflow."""
        largest = max(float(p.abs().max()) for p in positions)
        if largest > torch.finfo(self.form.positions).max:
            return math.inf
        whole = largest <= integers_exact(self.form.positions)
        p, a = 0.0 if whole else unit_roundoff(self.form.positions), unit_roundoff(self.form.angles)
        return p + a + p * a

    def offset(self, m: Tensor, n: Tensor, *, own: bool = False) -> Tensor:
        """Return a bound on the error of the difference of two angles: (k,), (k,) -> (k, B).

        ``own``: relative to the rounded frequencies, which an identity between scores cannot
        distinguish from the declared ones.
        """
        both = (1 + self.frequency) * self.step(m, n) * (m.abs() + n.abs())[:, None]
        shared = 0.0 if own else self.frequency * (m - n).abs()[:, None]
        return self.omega.abs() * (shared + both) + 2 * self.least_angle

    def score(self, q: Tensor, k: Tensor, m: Tensor, n: Tensor, *, own: bool = False) -> Tensor:
        """Return a bound on the error of q·k from the norms of pairs: (k, B), (k, B) -> (k,)."""
        eta, t = self.rotating, self.operand
        rotated = self.offset(m, n, own=own).clamp(max=2).nan_to_num(nan=2, posinf=2)
        rotated = rotated + 2 * eta + eta**2 + (2 * t + t**2) * (1 + eta) ** 2
        lost = 4 * self.least * (1 + eta) * (q + k + 4 * self.least).sum(-1)
        return (q * k * rotated).sum(-1) + lost


def bound_of(form: Format, omega: Tensor) -> Bound:
    """Return the bound of a format for the declared frequencies ω: (B,)."""
    omega = omega.to("cpu", torch.float64)
    frequency = torch.zeros_like(omega)
    if form.frequencies != torch.float64:
        frequency = frequency + FORMULA_ERROR
        if form.frequencies != torch.float32:
            size = omega.abs()
            stored = unit_roundoff(form.frequencies) + _least(form.frequencies) / 2 / size
            frequency = torch.where(size > 0, frequency + stored * (1 + frequency), 0.0)
    rotating = rotation_error(form.data, form.angles)
    operand = 2.0 ** -(form.operand_bits + 1) if form.operand_bits else 0.0
    return Bound(omega, form, frequency, rotating, operand, _least(form.data), _least(form.angles))


def _least(dtype: torch.dtype) -> float:
    """Return the smallest positive number of a dtype."""
    info = torch.finfo(dtype)
    return info.smallest_normal * info.eps
