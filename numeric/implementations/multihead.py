"""``torch.nn.MultiheadAttention`` with one head and identity projections."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ..attention_bound import AttentionBound
from ..row_selection import Lengths
from . import DoesNotFit, Implementation
from .scaled_dot_product import FUSED_SCORES, STORED_SCORES, bounded, four_axes, pairs, replacing


def implementations(_device: torch.device) -> Sequence[Implementation]:
    """Return one implementation, on every device."""
    name = "torch.nn.MultiheadAttention"
    return [Implementation(name, replacing(_call, _whole), bounded(AttentionBound()))]


def _whole(lengths: Sequence[Lengths]) -> bool:
    held = pairs(lengths) if len(lengths) > 3 else 0
    return held <= STORED_SCORES and pairs(lengths) <= FUSED_SCORES


def _module(width: int, columns: int, like: Tensor) -> nn.MultiheadAttention:
    """The module with identity projections; values are padded with zeros to the width."""
    if columns > width:
        raise DoesNotFit(
            f"values of width {columns} do not fit: the module gives outputs as wide as its "
            f"queries, {width}"
        )
    module = nn.MultiheadAttention(
        width, 1, bias=False, vdim=columns, batch_first=True, device=like.device, dtype=like.dtype
    ).eval()
    identity = torch.eye(width, dtype=like.dtype, device=like.device)
    with torch.no_grad():
        if module.in_proj_weight is not None:
            module.in_proj_weight.copy_(identity.repeat(3, 1))
        else:
            module.q_proj_weight.copy_(identity)
            module.k_proj_weight.copy_(identity)
            module.v_proj_weight.copy_(identity[:, :columns])
        module.out_proj.weight.copy_(identity)
    return module


def _call(query: Tensor, key: Tensor, value: Tensor, *mask: Tensor) -> Tensor:
    """Use one head for each leading index; True in the mask of the module means hidden."""
    module = _module(query.shape[-1], value.shape[-1], query)

    def attend(q: Tensor, k: Tensor, v: Tensor, *seen: Tensor) -> Tensor:
        masks = [one if len(one) > 1 else one[0] for (one,) in seen]
        hidden = next((~one if one.dtype == torch.bool else one for one in masks), None)
        output: Tensor = module(q[0], k[0], v[0], need_weights=False, attn_mask=hidden)[0]
        return output[None, ..., : value.shape[-1]]

    return four_axes(attend, query, key, value, *mask)
