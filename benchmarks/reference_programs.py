"""Correct torch programs, small enough to be changed anywhere, and the laws that each obeys."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

SOURCE = Path(__file__)


@dataclass(frozen=True)
class Reference:
    """A function of this file: its kind, its call in axis letters, and the laws it obeys."""

    name: str
    kind: str
    call: str
    laws: tuple[str, ...]
    declared: str = ""


def one_head(x: Tensor) -> Tensor:
    """Single-head self-attention, with the tokens as queries, keys and values."""
    scores = x @ x.transpose(1, 2) / math.sqrt(x.shape[-1])
    weights = torch.softmax(scores, -1)
    return x + weights @ x


def mean_pooled(x: Tensor) -> Tensor:
    """A layer on sets: each token, plus the mean of all."""
    mean = x.mean(1, keepdim=True)
    return torch.tanh(x) + 2 * torch.tanh(mean)


def normalised(x: Tensor) -> Tensor:
    """Each token divided by its root mean square, then gated."""
    size = torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)
    y = x * size
    return y * torch.sigmoid(y)


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention with scores divided by the root of the width."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = torch.softmax(scores, -1)
    return weights @ v


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention with later keys hidden; the last query is at the last key."""
    r, n = q.shape[-2], k.shape[-2]
    later = torch.ones(r, n, dtype=torch.bool, device=q.device).triu(n - r + 1)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = torch.softmax(scores.masked_fill(later, -math.inf), -1)
    return weights @ v


def rotate_halves(x: Tensor, positions: Tensor) -> Tensor:
    """Rotary encoding, channel i paired with i + D/2."""
    half = x.shape[-1] // 2
    index = torch.arange(half, device=x.device, dtype=x.dtype)
    angles = positions[:, None, :, None] * 10000.0 ** (-index / half)
    cos, sin = torch.cos(angles), torch.sin(angles)
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)


def rotate_neighbours(x: Tensor, positions: Tensor) -> Tensor:
    """Rotary encoding, channel 2i paired with 2i + 1."""
    index = torch.arange(0, x.shape[-1], 2, device=x.device, dtype=x.dtype)
    angles = positions[:, None, :, None] * 500.0 ** (-index / x.shape[-1])
    cos, sin = torch.cos(angles), torch.sin(angles)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)


def linear_bias(queries: int, keys: int) -> Tensor:
    """A bias that decreases linearly with the distance, with a slope for each of 4 heads."""
    rows = torch.arange(queries)[:, None] + keys - queries
    offset = rows - torch.arange(keys)[None, :]
    slopes = 2.0 ** (-2 * torch.arange(1, 5))
    return -slopes[:, None, None] * offset.abs()


OF_TOKENS = ("permutation", "rows-of-batch-apart")
OF_ATTENTION = ("order-of-keys", "permutation", "rows-sum-to-one", "rows-of-batch-apart")
OF_ROTARY = (
    "relative",
    "norm",
    "composition",
    "linear",
    "every-head-alike",
    "follows-its-ids",
    "rows-of-batch-apart",
)
QKV = "q: B H r D, k: B H n D, v: B H n D -> B H r D"
ROTARY = "x: B H n D, positions: B n -> x"

REFERENCES = (
    Reference("one_head", "layer", "x: B n E -> x", OF_TOKENS),
    Reference("mean_pooled", "layer", "x: B n E -> x", OF_TOKENS),
    Reference("normalised", "layer", "x: B n E -> x", OF_TOKENS),
    Reference("attention", "attention", QKV, OF_ATTENTION),
    Reference(
        "causal_attention", "attention", QKV, ("causal", "rows-of-batch-apart"), "attention:causal"
    ),
    Reference("rotate_halves", "rotary", ROTARY, OF_ROTARY),
    Reference("rotate_neighbours", "rotary", ROTARY, OF_ROTARY),
    Reference("linear_bias", "bias", "queries = r, keys = n -> H r n", ("offset-only",)),
)
