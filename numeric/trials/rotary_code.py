"""Rotary encodings written out: half-split, interleaved, complex, and the steps of angles.

x: (.., n, 2B), positions: (n,), frequencies: (B,), in the half-split layout of
:func:`rotate_half`; positions and frequencies are float32 where x is lower.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..profile import wide_dtype

__all__ = ["Step", "complex_turn", "half_split", "interleaved", "same"]

Step = Callable[[Tensor], Tensor]


def same(x: Tensor) -> Tensor:
    """x as it is."""
    return x


def _turns(positions: Tensor, frequencies: Tensor, angle: Step, like: Tensor) -> Any:
    angles = angle(positions[..., None] * frequencies)
    return angles.cos().to(like.dtype), angles.sin().to(like.dtype)


def half_split(x: Tensor, positions: Tensor, frequencies: Tensor, angle: Step = same) -> Tensor:
    """Channels (b, B + b) turn together, as in GPT-NeoX and Llama; ``angle`` rounds the angles."""
    cos, sin = _turns(positions, frequencies, angle, x)
    first, second = x.chunk(2, -1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


def interleaved(x: Tensor, positions: Tensor, frequencies: Tensor) -> Tensor:
    """Channels (2b, 2b + 1) turn together, as in RoFormer; of an array in that layout."""
    cos, sin = _turns(positions, frequencies, same, x)
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, odd * cos + even * sin), -1).flatten(-2)


def complex_turn(x: Tensor, positions: Tensor, frequencies: Tensor) -> Tensor:
    """x as complex numbers times exp(i·angle), as in Meta's Llama: float32, rounded once."""
    wide = wide_dtype(x.dtype)
    pairs = torch.complex(*(part.to(wide).contiguous() for part in x.chunk(2, -1)))
    angles = (positions[..., None] * frequencies).to(wide)
    turned = pairs * torch.polar(torch.ones_like(angles), angles)
    return torch.cat((turned.real, turned.imag), -1).to(x.dtype)
