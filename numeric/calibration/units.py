"""Small facts about dtypes, which need no profile."""

from __future__ import annotations

from math import log2

import torch

__all__ = ["bits_of", "least_of", "name_of", "normal_of", "unit_of", "wide_of"]


def name_of(dtype: torch.dtype) -> str:
    """``"float32"`` and its like."""
    return str(dtype).removeprefix("torch.")


def unit_of(dtype: torch.dtype) -> float:
    """The unit roundoff."""
    return torch.finfo(dtype).eps / 2


def wide_of(dtype: torch.dtype) -> torch.dtype:
    """What functions and sums of a dtype are to be computed in: at least float32."""
    return torch.float32 if torch.finfo(dtype).bits == 16 else dtype


def normal_of(dtype: torch.dtype) -> float:
    """The least normal number."""
    return torch.finfo(dtype).smallest_normal


def least_of(dtype: torch.dtype) -> float:
    """The least positive number."""
    return torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps


def bits_of(dtype: torch.dtype) -> int:
    """The binary digits of the mantissa, the leading one among them."""
    return 1 - round(log2(torch.finfo(dtype).eps))
