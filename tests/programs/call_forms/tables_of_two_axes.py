"""Tables of two coordinates, and two functions of which only one rotates by them as they are made.

Each coordinate has its own half of the channels, and within it pairs half-split channels.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class PatchRotaryEmbedding(nn.Module):
    def __init__(self, dim: int = 16) -> None:
        super().__init__()
        self.steps = 100.0 ** -(torch.arange(0, dim // 2, 2) / (dim // 2))

    def forward(self, x: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
        parts = []
        for axis in range(2):
            angles = position_ids[..., axis, None].to(x) * self.steps.to(x)
            parts += [angles, angles]
        both = torch.cat(parts, -1)
        return both.cos(), both.sin()


def apply_rotary(x: Tensor, cos: Tensor, sin: Tensor, head_axis: int = 1) -> Tensor:
    a, b = x.chunk(2, -1)
    cos, sin = cos.unsqueeze(head_axis), sin.unsqueeze(head_axis)
    return x * cos + torch.cat((-b, a), -1) * sin


def apply_rotary_of_axes(x: Tensor, cos: Tensor, sin: Tensor, position_ids: Tensor) -> Tensor:
    axes = position_ids.shape[-1]
    if x.shape[-1] % (2 * axes):
        raise ValueError("the channels do not divide into pairs of each axis")
    parts = zip(*(one.chunk(axes, -1) for one in (x, cos, sin)), strict=True)
    return torch.cat([apply_rotary(a, c, s, head_axis=2) for a, c, s in parts], -1)
