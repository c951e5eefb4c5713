"""Attention written out: the honest programs of the trials, and what faults are planted in.

Numbers of bfloat16 and float16 are multiplied and summed in float32, weights stored in the dtype
before they meet the values, as fused kernels do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..profile import wide_dtype

__all__ = ["Step", "attend", "complex_turn", "eager", "half_split", "interleaved", "online", "same"]


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


def _scores(query: Tensor, key: Tensor, scale: float | None, mask: tuple[Tensor, ...]) -> Tensor:
    wide = wide_dtype(query.dtype)
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = query.to(wide) @ key.to(wide).mT * factor
    return scores.masked_fill(~mask[0], -math.inf) if mask else scores


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *mask: Tensor,
    scale: float | None = None,
    sink: bool = False,
    shifted: bool = True,
) -> Tensor:
    """softmax(Q Kᵀ·scale) V, all keys at once.

    ``sink`` adds 1 to the denominator Σ exp(s), a key of score and value 0; without ``shifted``
    the row maximum is not subtracted.
    """
    scores = _scores(query, key, scale, mask)
    top = scores.amax(-1, keepdim=True) if shifted else torch.zeros_like(scores[..., :1])
    weights = torch.exp(scores - top)
    total = weights.sum(-1, keepdim=True)
    if sink:
        total = total + torch.exp(-top)
    product = weights.to(value.dtype).to(weights.dtype) @ value.to(weights.dtype)
    return (product / total).to(value.dtype)


def online(
    query: Tensor, key: Tensor, value: Tensor, *mask: Tensor, block: int, forget: bool = False
) -> Tensor:
    """The same in one pass over blocks of keys, with a running maximum.

    At a block with maximum m' the sum l and the output o of the blocks before are scaled by
    exp(m − m'); with ``forget`` the sum is not, at the last block.

    Milakov and Gimelshein 2018, algorithm 3; Dao et al. 2022, algorithm 1.
    """
    scores = _scores(query, key, None, mask)
    top = torch.full_like(scores[..., :1], -math.inf)
    total, output = torch.zeros_like(top), torch.zeros_like(top)
    last = (key.shape[-2] - 1) // block
    for place, part in enumerate(torch.split(scores, block, -1)):
        higher = torch.maximum(top, part.amax(-1, keepdim=True))
        shift = torch.where(higher.isinf(), 0.0, higher)  # where no key was seen yet
        rescale, weights = torch.exp(top - shift), torch.exp(part - shift)
        values = value[..., place * block : (place + 1) * block, :].to(scores.dtype)
        kept = 1.0 if forget and place == last else rescale
        total = total * kept + weights.sum(-1, keepdim=True)
        output = output * rescale + weights.to(value.dtype).to(scores.dtype) @ values
        top = higher
    return (output / total).to(value.dtype)


def eager(query: Tensor, key: Tensor, value: Tensor, *mask: Tensor) -> Tensor:
    """Attention as ``eager_attention_forward`` of transformers: scores stored in the dtype.

    softmax takes them in float32 where the dtype is lower (there, in float64 as well).
    """
    scores = query @ key.mT * query.shape[-1] ** -0.5
    if mask:
        bias = torch.zeros_like(mask[0], dtype=scores.dtype)
        scores = scores + bias.masked_fill(~mask[0], torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1, dtype=wide_dtype(query.dtype)).to(query.dtype)
    return weights @ value
