"""Reference definitions of attention as models use it, for comparison with implementations.

Plain array code with batch and head axes: queries (B, H, r, D), keys and values (B, G, n, D),
tokens (B, n, E).  No maximum is subtracted before the exponential, as this does not change the
function.
"""

from __future__ import annotations

import math
from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic.definition import definition


def one_length(a: Any, b: Any) -> bool:
    """Whether two lengths are equal: the same number, or the same symbol.

    >>> one_length(3, 3), one_length(3, 4)
    (True, False)
    """
    return bool(getattr(a, "term", a) == getattr(b, "term", b))


def count_of(length: Any) -> int:
    """Return a length as an int, for a loop over it; raise ``ValueError`` if it is symbolic.

    >>> count_of(3)
    3
    """
    term = getattr(length, "term", None)
    if term is not None and term.op != "num":
        raise ValueError(f"a recurrence needs a concrete number of tokens, got {length}")
    return int(length if term is None else term.data)


def for_each_head(keys: Any, heads: int) -> Any:
    """Keys or values (B, G, n, D) repeated for H query heads: H/G consecutive heads share one."""
    xp = array_namespace(keys)
    rows, groups, tokens, width = keys.shape
    if one_length(groups, heads):
        return keys
    wide = xp.broadcast_to(keys[:, :, None], (rows, groups, heads // groups, tokens, width))
    return xp.reshape(wide, (rows, heads, tokens, width))


@definition(r"\operatorname{capped}")
def capped(scores: Any, cap: Any) -> Any:
    """cap·tanh(scores / cap).  Gemma Team 2024 (Gemma 2), section 2."""
    return cap * array_namespace(scores).tanh(scores / cap)


def seen(
    queries: Any, keys: Any, *, causal: bool = False, window: Any = None, start: bool = False
) -> Any:
    """The keys that each query sees: (r, n).

    The last query is at the last key or, with ``start``, the first at the first.  ``causal``: keys
    up to its own; ``window``: the last ``window`` of these or, if not causal, those less than
    ``window`` away on either side.
    """
    xp = array_namespace(queries)
    r, n = queries.shape[-2], keys.shape[-2]
    here = xp.arange(r, device=queries.device)[:, None] + (0 if start else n - r)
    there = xp.arange(n, device=queries.device)[None, :]
    kept = there <= here if causal else there == there
    if window is not None:
        kept = kept & (here - there < window)
        if not causal:
            kept = kept & (there - here < window)
    return kept


@definition(r"\operatorname{attend}")
def attend(
    query: Any,
    key: Any,
    value: Any,
    *,
    scale: float | None = None,
    causal: bool = False,
    window: Any = None,
    start: bool = False,
    softcap: float | None = None,
    sink: Any = None,
    mask: Any = None,
    keep: Any = None,
    slopes: Any = None,
) -> Any:
    """Σ_j w_ij v_j / (Σ_j w_ij + exp(sink)), w_ij = exp(scale·q_i·k_j + ..) where i sees j, else 0.

    ``scale``: 1/√D by default.  ``mask`` is added to the scores, ``keep`` is True where a key is
    visible.  ``slopes``: those of ALiBi, one for each head.  ``sink``: a score for each head that
    has no value (OpenAI 2025, gpt-oss).
    """
    xp = array_namespace(query)
    heads = query.shape[1]
    key, value = for_each_head(key, heads), for_each_head(value, heads)
    scores = query @ key.mT
    scores = scores / query.shape[-1] ** 0.5 if scale is None else scores * scale
    if softcap is not None:
        scores = capped(scores, softcap)
    if slopes is not None:
        r, n = query.shape[2], key.shape[2]
        offset = xp.arange(n)[None, :] - xp.arange(r)[:, None] - (n - r)
        scores = scores + slopes[:, None, None] * offset
    if mask is not None:
        scores = scores + mask
    weights = xp.exp(scores)
    if causal or window is not None:
        kept = seen(query, key, causal=causal, window=window, start=start)
        weights = xp.where(kept, weights, 0.0 * weights)
    if keep is not None:
        weights = xp.where(keep, weights, 0.0 * weights)
    total = xp.sum(weights, axis=-1, keepdims=True)
    if sink is not None:
        total = total + xp.exp(sink)[:, None, None]
    return (weights / total) @ value


def t5_bucket(offset: Any, buckets: int, distance: int, *, both: bool) -> Any:
    """The bucket numbers of integer offsets (key minus query).

    Half of the buckets of a direction are for one distance each; the others are logarithmic up to
    ``distance``, computed in float32 as in the T5 code, so that a distance at an edge falls into
    the same bucket.  ``both``: the second half of all buckets is for keys after the query.

    Raffel et al. 2020 (T5), section 2.1.

    >>> import numpy as np
    >>> t5_bucket(np.array([-200, -9, -1, 0, 1, 9]), 32, 128, both=True).tolist()
    [15, 8, 1, 0, 17, 24]
    """
    xp = array_namespace(offset)
    each = buckets // 2 if both else buckets
    after = xp.astype(offset > 0, offset.dtype) * each if both else 0 * offset
    size = xp.abs(offset) if both else xp.maximum(-offset, 0 * offset)
    exact = each // 2
    far = xp.astype(xp.maximum(size, 0 * size + 1), xp.float32) / exact
    grown = xp.log(far) / math.log(distance / exact) * (each - exact)
    last = exact + xp.astype(grown, offset.dtype)
    return after + xp.where(size < exact, size, xp.minimum(last, 0 * last + (each - 1)))


def t5_bias(table: Any, offset: Any, distance: int, *, both: bool) -> Any:
    """The bias that T5 adds to the scores: (H, r, n), for a table (buckets, H) and offsets (r, n).

    One learned number for each bucket of offsets and head.  Raffel et al. 2020 (T5), section 2.1.
    """
    xp = array_namespace(table)
    r, n = offset.shape
    number = t5_bucket(offset, table.shape[0], distance, both=both)
    rows = xp.take(table, xp.reshape(number, (-1,)), axis=0)
    return xp.permute_dims(xp.reshape(rows, (r, n, table.shape[1])), (2, 0, 1))


@definition(r"\operatorname{rotated}")
def rotated(x: Any, cos: Any, sin: Any, *, layout: str = "half", width: int | None = None) -> Any:
    """Rotary encoding of (.., n, D) by tables (.., n, D or D/2) of cosines and sines.

    ``layout``: half pairs channels i and i + D/2, interleaved 2i and 2i + 1.  ``width``: the number
    of leading channels that rotate.
    """
    xp = array_namespace(x)
    if width is not None and not one_length(width, x.shape[-1]):
        first = rotated(x[..., :width], cos, sin, layout=layout)
        return xp.concat((first, x[..., width:]), axis=-1)
    half = x.shape[-1] // 2
    if layout == "half":
        first, second = x[..., :half], x[..., half:]
        if one_length(cos.shape[-1], x.shape[-1]):
            return x * cos + xp.concat((-second, first), axis=-1) * sin
        return xp.concat((first * cos - second * sin, second * cos + first * sin), axis=-1)
    even, odd = x[..., 0::2], x[..., 1::2]
    if one_length(cos.shape[-1], x.shape[-1]):
        return x * cos + xp.reshape(xp.stack((-odd, even), axis=-1), x.shape) * sin
    pairs = xp.stack((even * cos - odd * sin, even * sin + odd * cos), axis=-1)
    return xp.reshape(pairs, x.shape)


@definition(r"\operatorname{normed}")
def normed(x: Any, weight: Any, *, eps: float = 1e-6) -> Any:
    """Root mean square norm of the last axis: x / √(mean x² + eps) · weight.

    Zhang and Sennrich 2019, eq. 4.
    """
    xp = array_namespace(x)
    return x / (xp.mean(x**2, axis=-1, keepdims=True) + eps) ** 0.5 * weight


def in_heads(x: Any, heads: int) -> Any:
    """Tokens (B, n, H·D) split into heads: (B, H, n, D)."""
    xp = array_namespace(x)
    rows, tokens, width = x.shape
    return xp.permute_dims(xp.reshape(x, (rows, tokens, heads, width // heads)), (0, 2, 1, 3))


def of_each_query_head(heads: Any) -> Any:
    """Heads (B, H, n, D) concatenated: (B, n, H·D)."""
    xp = array_namespace(heads)
    rows, count, tokens, width = heads.shape
    return xp.reshape(xp.permute_dims(heads, (0, 2, 1, 3)), (rows, tokens, count * width))


@definition(r"\operatorname{linear}")
def linear_attention(query: Any, key: Any, value: Any) -> Any:
    """Σ_{j ≤ i} (q_i·k_j) v_j: (B, H, n, D) each.

    Katharopoulos et al. 2020, eq. 8, without feature map and normaliser.
    """
    xp = array_namespace(query)
    scores = query @ key.mT
    return xp.where(seen(query, key, causal=True), scores, 0.0 * scores) @ value


def linear_attention_step_by_step(query: Any, key: Any, value: Any) -> Any:
    """The same as a recurrence: S_i = S_{i−1} + k_i v_iᵀ, o_i = q_i S_i.  Eq. 18 there."""
    xp = array_namespace(query)
    state, found = 0, []
    for i in range(count_of(query.shape[2])):
        state = state + key[:, :, i, :, None] * value[:, :, i, None, :]
        found.append((query[:, :, i, None, :] @ state)[:, :, 0])
    return xp.stack(found, axis=2)


def delta_rule(query: Any, key: Any, value: Any, beta: Any, decay: Any = None) -> Any:
    """S_i = α_i (I − β_i k_i k_iᵀ) S_{i−1} + β_i k_i v_iᵀ, o_i = q_i S_i.

    q, k: (B, H, n, D), v: (B, H, n, V), β and the logarithms of α: (B, H, n).

    Yang, Kautz and Hatamizadeh 2024 (gated delta networks), eq. 10.
    """
    xp = array_namespace(query)
    state: Any = None
    found = []
    for i in range(count_of(query.shape[2])):
        k, v = key[:, :, i, :, None], value[:, :, i, None, :]
        b = beta[:, :, i, None, None]
        if state is None:
            state = b * k * v
        else:
            kept = state if decay is None else xp.exp(decay[:, :, i, None, None]) * state
            state = kept + b * k * (v - k.mT @ kept)
        found.append((query[:, :, i, None, :] @ state)[:, :, 0])
    return xp.stack(found, axis=2)


@definition(r"\operatorname{latent}")
def latent_attention(
    query: Any,
    latent: Any,
    to_key: Any,
    to_value: Any,
    *,
    scale: float | None = None,
    causal: bool = False,
) -> Any:
    """Attention over keys and values computed from one latent vector per token.

    q: (B, H, r, D), latent: (B, n, L), W_K, W_V: (H, L, D).  DeepSeek-AI 2024 (V2), section 2.1.
    """
    key, value = latent[:, None] @ to_key, latent[:, None] @ to_value
    return attend(query, key, value, scale=scale, causal=causal)
