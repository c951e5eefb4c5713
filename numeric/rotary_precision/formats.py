"""Which number of a rotary encoding is kept in which dtype."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..profile import unit_roundoff

__all__ = ["FORMATS", "Format", "declared", "float32_formula", "format_named", "integers_exact",
           "tf32"]

TF32_BITS = 10  # of the fraction of what a TF32 matrix unit reads
FORMULA_ERROR = 1.5 * 2.0**-24  # of the float32 formula, relative; see float32_formula


@dataclass(frozen=True)
class Format:
    """The dtypes of one rotary encoding.

    The name is that of the data, positions and angles float32 where it does not say otherwise.
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
        """ω_0, .., ω_(B−1) as this format has them: (B,)."""
        if self.frequencies == torch.float64:
            return declared(base, pairs)
        return float32_formula(base, pairs).to(self.frequencies)

    def angle(self, positions: Tensor, frequencies: Tensor) -> Tensor:
        """p·ω, position, frequency and product each rounded to its dtype: (n,), (B,) -> (n, B)."""
        p = positions.to(self.positions).to(self.angles)
        return p[:, None] * frequencies.to(p.device, self.angles)

    def operand(self, x: Tensor) -> Tensor:
        """x as the product q·k reads it."""
        return tf32(x) if self.operand_bits else x


def declared(base: float, pairs: int) -> Tensor:
    """ω_b = base^(−b/B) in float64: (B,).  Su et al. 2021, section 3.2.2."""
    return torch.tensor([float(base) ** (-b / pairs) for b in range(pairs)], dtype=torch.float64)


def float32_formula(base: float, pairs: int) -> Tensor:
    """ω_b as transformers computes it: 1 / base^(2b/d) with every operation in float32: (B,).

    The exponent 2b/d is off by at most u = 2^-24 of it where d is no power of 2, the power by
    its own error, the quotient by u.  For d = 128 and the bases of :mod:`limits` all together
    stay below 1.5 u; the table of drifts computes what they are.
    """
    width = 2 * pairs
    exponents = torch.arange(0, width, 2, dtype=torch.int64).to(torch.float32) / width
    return 1.0 / (base**exponents)


def tf32(x: Tensor) -> Tensor:
    """float32 rounded to 10 bits of fraction, to nearest, ties to even: TF32, emulated.

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
    """The format of a name.  Raises ``ValueError`` for another, naming all."""
    found = {one.name: one for one in FORMATS}
    if name not in found:
        raise ValueError(f"format {name!r} was asked for; known: {', '.join(found)}")
    return found[name]


def integers_exact(dtype: torch.dtype) -> int:
    """Up to where every whole number is one of the dtype.

    >>> integers_exact(torch.bfloat16)
    256
    """
    return round(1 / unit_roundoff(dtype))
