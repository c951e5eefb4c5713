"""The rotary embedding of transformers' Llama, if transformers is installed.

Its table of cosines is computed in float32 for every dtype of the data: positions and frequencies
are cast and multiplied there, and cosines and sines are then stored in the dtype.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

import torch
from torch import Tensor

from ..devices import unit_roundoff
from ..error_analysis import Rounded
from ..row_selection import Replacement, never
from . import DoesNotFit, Implementation

TABLE = unit_roundoff(torch.float32)
ROW_AXIS = (-2, -1, None)


def implementations(_device: torch.device) -> Sequence[Implementation]:
    """Return one implementation if transformers is installed; the first call imports it."""
    if find_spec("transformers") is None:
        return []
    return [
        Implementation(
            "transformers Llama rotary embedding",
            {"rotate_half": Replacement(_rotate_half, ROW_AXIS)},
            {"rotate_half": Replacement(_bound, ROW_AXIS, never)},
        )
    ]


def _rotate_half(x: Tensor, positions: Tensor, frequencies: Tensor) -> Tensor:
    from transformers.models.llama.configuration_llama import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    if positions.ndim != 1:
        raise DoesNotFit(f"wanted one position for each row, got shape {tuple(positions.shape)}")
    width = x.shape[-1]
    config = LlamaConfig(
        hidden_size=width,
        head_dim=width,
        num_attention_heads=1,
        num_key_value_heads=1,
        max_position_embeddings=1 << 21,
    )
    embedding = LlamaRotaryEmbedding(config).to(x.device)
    embedding.register_buffer("inv_freq", frequencies.to(torch.float32), persistent=False)
    heads = x.reshape(1, -1, *x.shape[-2:])
    cos, sin = embedding(heads, positions[None])
    rotated, _ = apply_rotary_pos_emb(heads, heads, cos, sin)
    result: Tensor = rotated.reshape(x.shape)
    return result


def _bound(x: Rounded, positions: Rounded, frequencies: Rounded) -> Rounded:
    """x cos + x' sin with angles rounded to float32: the error grows with the position."""
    arithmetic = x.arithmetic
    p, w = _as_float32(positions), _as_float32(frequencies)
    product = p[..., None] * w
    # One shared radius: a cosine and its sine, and all calls at a position, have the same error.
    angles = Rounded(arithmetic, product.value, product.radius, product.unit)
    half = frequencies.shape[0]
    cos, sin = (
        arithmetic.stored(part, arithmetic.profile.store)
        for part in (arithmetic.cos(angles), arithmetic.sin(angles))
    )
    first, second = x[..., :half], x[..., half:]
    halves = (first * cos - second * sin, second * cos + first * sin)
    rotated: Rounded = arithmetic.concat(halves, axis=-1)
    return rotated


def _as_float32(a: Rounded) -> Rounded:
    """The same numbers cast to float32."""
    cast = a.value.float().double()
    moved = (cast - a.value).abs() + a.error()
    return Rounded(a.arithmetic, a.value, moved, TABLE)
