"""Attention as one operation."""

from __future__ import annotations

from typing import Any

from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array, as_array
from attnproof.symbolic.scalars import is_truth
from attnproof.theorems.definitions.attention import softmax

from .creation import offsets
from .joins import each_repeated
from .products import product
from .reading import Unread, assume, constant, notes, numeric, reads

__all__ = ["scaled_dot_product_attention"]


@reads("aten.scaled_dot_product_attention.default")
def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, mask: Any = None, dropout: float = 0.0,
    is_causal: bool = False, *, scale: Any = None, enable_gqa: bool = False,
) -> Array:  # fmt: skip
    """softmax(scale·Q Kᵀ + mask)·V; a query that sees no key reads zeros.

    ``is_causal`` hides keys after the query counted from the first of both; with ``enable_gqa``
    each key head stands for a group of query heads.
    """
    if dropout:
        raise Unread(f"attention with dropout {dropout}")
    q, k, v = numeric(query), numeric(key), numeric(value)
    if enable_gqa:
        heads, groups = (as_array(a.axes[-3]) for a in (q, k))
        from .reading import whole

        times = whole(heads, "a number of heads") // whole(groups, "a number of key heads")
        k, v = each_repeated(k, times, -3), each_repeated(v, times, -3)
    scores = product(q, k.mT)
    scores = scores / as_array(q.axes[-1]) ** 0.5 if scale is None else scores * numeric(scale)
    if is_causal:
        scores = xp.where(xp.broadcast_to(offsets(scores) <= 0, scores.axes), scores, -xp.inf)
    if mask is not None:
        told = constant(mask)
        if not told.term.finite and not is_truth(told.term) and notes().filled:
            assume("every query sees a key", "if")
        scores = xp.where(told, scores, -xp.inf) if is_truth(told.term) else scores + told
    return product(as_array(softmax(scores)), v)
