"""Codes of positions as people write them, for finite fields."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from attnproof.programs.subjects import Bias, Rotary

D, H = 8, 4
FREQUENCIES = 10000.0 ** (-torch.arange(0, D, 2, dtype=torch.float32) / D)


def half(x: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return torch.cat([-b, a], -1)


def neighbours(x: Tensor) -> Tensor:
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack([-b, a], -1).flatten(-2)


def rotate(x: Tensor, positions: Tensor) -> Tensor:
    angles = positions[:, None, :, None].float() * FREQUENCIES
    angles = torch.cat([angles, angles], -1)
    return x * angles.cos() + half(x) * angles.sin()


def interleaved(x: Tensor, positions: Tensor) -> Tensor:
    angles = torch.einsum("bt,f->btf", positions.float(), FREQUENCIES)[:, None]
    angles = angles.repeat_interleave(2, -1)
    return x * angles.cos() + neighbours(x) * angles.sin()


def into_halves(x: Tensor, positions: Tensor) -> Tensor:
    """Neighbours rotated, and given as halves, as DeepSeek-V3 does."""
    rotated = interleaved(x, positions)
    return torch.cat([rotated[..., 0::2], rotated[..., 1::2]], -1)


def complex_numbers(x: Tensor, positions: Tensor) -> Tensor:
    angles = positions[:, None, :, None] * FREQUENCIES
    points = torch.polar(torch.ones_like(angles), angles)
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * points).flatten(-2).type_as(x)


def written_in(x: Tensor, positions: Tensor) -> Tensor:
    angles = positions[:, None, :, None].float() * FREQUENCIES
    found = torch.empty_like(x)
    found[..., ::2] = x[..., ::2] * angles.cos() - x[..., 1::2] * angles.sin()
    found[..., 1::2] = x[..., ::2] * angles.sin() + x[..., 1::2] * angles.cos()
    return found


def part(x: Tensor, positions: Tensor) -> Tensor:
    rotated = rotate_of(x[..., :4], positions, FREQUENCIES[:2])
    return torch.cat([rotated, x[..., 4:]], -1)


def rotate_of(x: Tensor, positions: Tensor, frequencies: Tensor) -> Tensor:
    angles = positions[:, None, :, None].float() * frequencies
    angles = torch.cat([angles, angles], -1)
    return x * angles.cos() + half(x) * angles.sin()


def rotary(how: Any = rotate, **more: Any) -> Rotary:
    return Rotary(name="rotary", rotate=how, width=D, heads=H, **more)


def table(x: Tensor, positions: Tensor) -> Tensor:
    angles = torch.tensor([[float(p) for p in range(64)]]).T * FREQUENCIES
    cos, sin = (torch.cat([t, t], -1)[positions][:, None] for t in (angles.cos(), angles.sin()))
    return x * cos + half(x) * sin


class Kept(nn.Module):
    cos: Tensor
    sin: Tensor

    def __init__(self, wrong: bool = False) -> None:
        super().__init__()
        t = torch.arange(64, dtype=torch.float32)
        angles = torch.outer(t, FREQUENCIES)
        angles = torch.cat([angles, angles * (2 if wrong else 1)], -1)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        cos, sin = self.cos[positions][:, None], self.sin[positions][:, None]
        return x * cos + half(x) * sin


def kept(wrong: bool = False) -> Rotary:
    module = Kept(wrong)
    return rotary(module, module=module, most=63, make=lambda: kept(wrong))


def slopes(queries: int, keys: int, *, start: bool = False) -> Tensor:
    rows = torch.arange(queries) + (0 if start else keys - queries)
    gap = torch.arange(keys)[None, :] - rows[:, None]
    return gap[None] * (2.0 ** -torch.arange(1, H + 1))[:, None, None]


def bias(how: Any = slopes) -> Bias:
    return Bias(name="slopes", heads=H, bias=how)


class Sinusoid(nn.Module):
    """The table of the Transformer; ``fault``: sin and cos of a pair differ in frequency."""

    pe: Tensor

    def __init__(self, fault: bool = False) -> None:
        super().__init__()
        positions = torch.arange(64).unsqueeze(1)
        steps = torch.exp(torch.arange(0, D, 2) * (-torch.log(torch.tensor(10000.0)) / D))
        pe = torch.zeros(64, D)
        pe[:, 0::2] = torch.sin(positions * steps)
        pe[:, 1::2] = torch.cos(positions * steps * (1.1 if fault else 1))
        self.register_buffer("pe", pe.unsqueeze(0))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.pe[:, : x.size(1)]
