"""Attention in several heads on a database of key-value pairs."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic.definition import definition

from .attention import attention

__all__ = ["side_by_side", "sum_of_heads"]


@definition(r"\operatorname{MultiHeadAtt}")
def sum_of_heads(
    query: Any, key: Any, value: Any, to_query: Any, to_key: Any, to_value: Any
) -> Any:
    r"""Σ_h Att(Q W_Q^h, K W_K^h, V W_V^h), one matrix of each kind a head.

    Q: (r, ℓ), K: (n, ℓ), V: (n, d), W_Q, W_K: (H, ℓ, p), W_V: (H, d, e) -> (r, e).

    Ganev, section 2.5.
    """
    xp = array_namespace(query)
    return xp.sum(attention(query @ to_query, key @ to_key, value @ to_value), axis=0)


def side_by_side(heads: Any) -> Any:
    """The outputs of H heads in one row for each query: (H, r, q) -> (r, H·q)."""
    xp = array_namespace(heads)
    count, rows, width = heads.shape
    return xp.reshape(xp.permute_dims(heads, (1, 0, 2)), (rows, count * width))
