"""Rotary code that does not keep norms: longer in the second head, or late in a sequence."""

import torch
from torch import Tensor


def rotate(x: Tensor, positions: Tensor) -> Tensor:
    """x (B, H, T, D), positions (B, T)"""
    rate = 10000.0 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    angle = positions[:, None, :, None] * rate
    u, v = x.chunk(2, -1)
    y = torch.cat((u * angle.cos() - v * angle.sin(), u * angle.sin() + v * angle.cos()), -1)
    head = torch.arange(x.shape[1])[None, :, None, None]
    return y * (1 + head)


def rotate_late(x: Tensor, positions: Tensor) -> Tensor:
    """x (B, H, T, D), positions (B, T); from the 600th token of a call on vectors are doubled."""
    rate = 10000.0 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    angle = positions[:, None, :, None] * rate
    u, v = x.chunk(2, -1)
    y = torch.cat((u * angle.cos() - v * angle.sin(), u * angle.sin() + v * angle.cos()), -1)
    place = torch.arange(x.shape[2])[None, None, :, None]
    return torch.where(place >= 600, 2 * y, y)
