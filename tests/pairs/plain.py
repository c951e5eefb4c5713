"""Attention as it is written down in a few lines; what the pairs are measured by."""

from __future__ import annotations

import math

import torch
from torch import Tensor

D = 4  # features of a head
SCALE = D**-0.5
LOG2E = 1 / math.log(2)

# Calls that several pairs have.
QKV = "q: B H r 4, k: B H n 4, v: B H n 4 -> B H r 4"
SELF = "q: B H n 4, k: B H n 4, v: B H n 4 -> B H n 4"
TWO_SHARDS = "q: B H r 4, k1: B H n 4, v1: B H n 4, k2: B H m 4, v2: B H m 4 -> B H r 4"


def attention(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None = None) -> Tensor:
    scores = q @ k.transpose(-1, -2) * SCALE
    return torch.softmax(scores if bias is None else scores + bias, dim=-1) @ v


def masked(q: Tensor, k: Tensor, v: Tensor, keep: Tensor) -> Tensor:
    scores = q @ k.transpose(-1, -2) * SCALE
    return torch.softmax(scores.masked_fill(~keep, float("-inf")), dim=-1) @ v


def causal(queries: int, keys: int) -> Tensor:
    """True where a query sees a key; the last query sees all keys."""
    return torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)


def heads(x: Tensor, count: int) -> Tensor:
    """(B, n, H D) as (B, H, n, D)."""
    batch, length, width = x.shape
    return x.view(batch, length, count, width // count).transpose(1, 2)


def joined(x: Tensor) -> Tensor:
    """(B, H, n, D) as (B, n, H D)."""
    return x.transpose(1, 2).flatten(2)


def rotate_half(x: Tensor, angles: Tensor) -> Tensor:
    """Channel i is rotated with channel i + D/2."""
    x1, x2 = x.chunk(2, dim=-1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((x1 * cos - x2 * sin, x2 * cos + x1 * sin), dim=-1)


def rotate_pairs(x: Tensor, angles: Tensor) -> Tensor:
    """Channel 2i is rotated with channel 2i + 1."""
    x1, x2 = x[..., 0::2], x[..., 1::2]
    cos, sin = angles.cos(), angles.sin()
    return torch.stack((x1 * cos - x2 * sin, x1 * sin + x2 * cos), dim=-1).flatten(-2)
