"""Small programs on arrays, correct and faulty: rotations, attention, layers, masks, tables.

Vectors have four channels in the half-split layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from array_api_compat import array_namespace


def rotated(x: Any, p: Any) -> Any:
    """Rotate channels 0 and 2 by the angle p, and channels 1 and 3 by p/4."""
    xp = array_namespace(x)
    angles = xp.stack([1.0 * p, 0.25 * p], axis=-1)[:, None]
    c, s = xp.cos(angles), xp.sin(angles)
    left, right = x[..., :2], x[..., 2:]
    return xp.concat((left * c - right * s, right * c + left * s), axis=-1)


def first_head_longer(x: Any) -> Any:
    return array_namespace(x).concat((2 * x[:, :1], x[:, 1:]), axis=1)


def first_row_longer(x: Any) -> Any:
    return array_namespace(x).concat((2 * x[:1], x[1:]), axis=0)


def longer_by_place(x: Any) -> Any:
    return x * (1.0 + array_namespace(x).arange(x.shape[2]))[None, None, :, None]


def half_longer(x: Any) -> Any:
    return array_namespace(x).concat((2 * x[..., :2], 3 * x[..., 2:]), axis=-1)


def at_own_place(x: Any, p: Any) -> Any:
    return rotated(x, 0 * p + array_namespace(x).arange(x.shape[2])[None])


def less_mean_of_rows(x: Any) -> Any:
    return x - array_namespace(x).mean(x, axis=0, keepdims=True)


def exponentials(q: Any, k: Any) -> Any:
    """Return exp(q kᵀ)."""
    return array_namespace(q).exp(q @ k.mT)


def weighted(weights: Any, v: Any, more: Any = 0) -> Any:
    """Return the weighted values over the sum of the weights plus ``more``."""
    total = array_namespace(v).sum(weights, axis=-1, keepdims=True)
    return (weights / (total + more)) @ v


def shares(q: Any, k: Any) -> Any:
    """softmax(q kᵀ)."""
    weights = exponentials(q, k)
    return weights / array_namespace(q).sum(weights, axis=-1, keepdims=True)


def attend(q: Any, k: Any, v: Any) -> Any:
    """softmax(q kᵀ) v."""
    return weighted(exponentials(q, k), v)


def seen_exponentials(q: Any, k: Any, ahead: int = 0) -> Any:
    xp = array_namespace(q)
    there, here = xp.arange(k.shape[2])[None, :], xp.arange(q.shape[2])[:, None]
    return xp.where(there - ahead <= here, exponentials(q, k), 0 * q[..., :1])


def causal(q: Any, k: Any, v: Any) -> Any:
    """Attention in which query i sees the keys up to i."""
    return weighted(seen_exponentials(q, k), v)


def by_place(q: Any, k: Any, v: Any) -> Any:
    place = array_namespace(q).arange(k.shape[2]) + 1.0
    return weighted(exponentials(q, k) * place, v)


def over_queries(q: Any, k: Any, v: Any) -> Any:
    xp, weights = array_namespace(q), exponentials(q, k)
    return (weights / xp.sum(weights, axis=-2, keepdims=True)) @ v


def of_heads(x: Any, order: Sequence[int]) -> Any:
    return array_namespace(x).stack([x[:, head] for head in order], axis=1)


def band_attend(
    q: Any, k: Any, v: Any, before: int = 1 << 20, ahead: int = 0, first: bool = True
) -> Any:
    """Attention to ``before`` keys up to the query's own and ``ahead`` after, aligned at the end.

    Without ``first``, the first key is seen by no query but its own.
    """
    xp, past = array_namespace(q), k.shape[2] - q.shape[2]
    far = past + xp.arange(q.shape[2])[:, None] - xp.arange(k.shape[2])[None, :]
    seen = (far < before) & (far >= -ahead)
    if not first:
        seen = seen & ((far == 0) | (xp.arange(k.shape[2])[None, :] > 0))
    return weighted(xp.where(seen, exponentials(q, k), 0 * q[..., :1]), v)


def in_groups(q: Any, k: Any, v: Any) -> Any:
    """Attention with four heads in two groups."""
    return attend(q, of_heads(k, (0, 0, 1, 1)), of_heads(v, (0, 0, 1, 1)))


def aligned_attend(q: Any, k: Any, v: Any, early: int = 0) -> Any:
    """Causal attention with the last query at the last key; ``early`` moves queries back."""
    past = k.shape[2] - q.shape[2]
    return weighted(seen_exponentials(q, k, past - early * (past > 0)), v)


def under_a_mask(q: Any, k: Any, v: Any, seen: Any = None, left: float = 0.0) -> Any:
    """Attention under a mask, which leaves the factor ``left`` of the weight of hidden keys."""
    weights = exponentials(q, k)
    if seen is not None:
        weights = array_namespace(q).where(seen, weights, left * weights)
    return weighted(weights, v)


def counted(q: Any, k: Any, v: Any, keep: Any) -> Any:
    """Attention in which queries that do not count give zeros."""
    out = attend(q, k, v)
    return array_namespace(q).where(keep[:, None, :, None], out, 0 * out)


def under_numbers(q: Any, k: Any, v: Any, m: Any = None) -> Any:
    """Attention with a mask of numbers added to its scores."""
    weights = exponentials(q, k)
    return weighted(weights if m is None else weights * array_namespace(q).exp(m), v)


def added_after(q: Any, k: Any, v: Any, m: Any = None) -> Any:
    return attend(q, k, v) if m is None else attend(q, k, v) + m @ v


def inverted_mask(q: Any, k: Any, v: Any, seen: Any = None) -> Any:
    return attend(q, k, v) if seen is None else under_a_mask(q, k, v, ~seen, 0.01)


def or_zeros(q: Any, k: Any, v: Any, seen: Any = None, others: float = 0.0) -> Any:
    """Attention under a mask, in which a query that sees no key gives zeros."""
    if seen is None:
        return attend(q, k, v)
    xp = array_namespace(q)
    weights = xp.where(seen, exponentials(q, k), 0 * q[..., :1])
    blind = xp.sum(weights, axis=-1, keepdims=True) == 0
    return weighted(weights, v, xp.where(blind, 1.0, others * xp.any(blind)))


def values_leak(q: Any, k: Any, v: Any, seen: Any = None) -> Any:
    return under_a_mask(q, k, v, seen) + array_namespace(v).mean(v, axis=2, keepdims=True)


def first_mask(q: Any, k: Any, v: Any, seen: Any = None) -> Any:
    """Attention in which every query has the mask of the first."""
    return under_a_mask(q, k, v, None if seen is None else seen[:, :, :1])


def mask_by_turns(q: Any, k: Any, v: Any, seen: Any = None) -> Any:
    """Attention in which queries alternate between the masks of the first and the second."""
    turns = array_namespace(q).arange(q.shape[2]) % 2
    return under_a_mask(q, k, v, None if seen is None else seen[:, :, turns])


def shows_always(q: Any, k: Any, v: Any, seen: Any = None, own: bool = True) -> Any:
    """Attention in which queries see their own key, or the first, regardless of the mask."""
    if seen is None:
        return attend(q, k, v)
    xp = array_namespace(q)
    query, key = xp.arange(q.shape[2])[:, None], xp.arange(k.shape[2])[None, :]
    return under_a_mask(q, k, v, seen | (key == (query if own else 0 * query)))


def not_one_by_one(q: Any, k: Any, v: Any, seen: Any = None) -> Any:
    """Attention that ignores its mask if there is a single query."""
    return under_a_mask(q, k, v, None if q.shape[2] == 1 else seen)


def heads_mixed(q: Any, k: Any, v: Any) -> Any:
    return attend(q, k, v) + array_namespace(q).mean(q, axis=1, keepdims=True)


def rows_mixed(q: Any, k: Any, v: Any) -> Any:
    return attend(q, k, v) + array_namespace(q).mean(q, axis=0, keepdims=True)


def mean_of_tokens(x: Any) -> Any:
    """Return each token plus the mean of all."""
    return x + array_namespace(x).mean(x, axis=1, keepdims=True)


def by_token_place(x: Any) -> Any:
    return x * (array_namespace(x).arange(x.shape[1]) + 1.0)[None, :, None]


def add_up(x: Any, weights: Any) -> Any:
    """Return x plus the mean of what each token sees; weights (n, n) or (B, n, n) are 1 or 0."""
    xp = array_namespace(x)
    return x + (weights @ x) / xp.sum(weights, axis=-1, keepdims=True)


def mean_of_past(x: Any, queries: int = 0) -> Any:
    """Return causal weights (queries, n), 1 or 0, for the last ``queries`` tokens (0: all)."""
    xp, n = array_namespace(x), x.shape[1]
    here = xp.arange(n)[n - queries if queries else 0 :, None]
    return xp.where(xp.arange(n)[None, :] <= here, 1.0, 0.0)


def last_tokens(x: Any, before: int, ahead: int = 0) -> Any:
    """Return each token plus the mean of ``before`` tokens up to it and ``ahead`` after it."""
    xp, n = array_namespace(x), x.shape[1]
    far = xp.arange(n)[:, None] - xp.arange(n)[None, :]
    return add_up(x, xp.where((far < before) & (far >= -ahead), 1.0, 0.0))


def past_tokens(x: Any) -> Any:
    """Return each token plus the mean of the tokens up to it."""
    return add_up(x, mean_of_past(x))


def fed(x: Any, state: Any, kept: int = 1 << 20, ahead: bool = False) -> tuple[Any, Any]:
    """The same for a piece; the state has the tokens before it, of which the last are kept."""
    xp = array_namespace(x)
    whole = x if state is None else xp.concat((state, x), axis=1)
    weights = mean_of_past(whole, x.shape[1])
    seen = 0 * weights + 1.0 if ahead else weights
    mean = (seen @ whole) / xp.sum(seen, axis=-1, keepdims=True)
    return x + mean, whole[:, -kept:] if kept < whole.shape[1] else whole


def fed_anew(x: Any, state: Any) -> tuple[Any, Any]:
    found, state = fed(x, state)
    return found * (1.0 if state.shape[1] == x.shape[1] else 2.0), state


def documents(x: Any, ids: Any, before: int = 0) -> Any:
    """Return each token plus the mean of its document, which begins at id 0.

    ``before`` preceding documents are included.
    """
    xp = array_namespace(x)
    starts = xp.where(ids == 0, 1, 0)
    number = xp.cumulative_sum(starts, axis=1)
    apart = number[:, :, None] - number[:, None, :]
    return add_up(x, xp.where((apart >= 0) & (apart <= before), 1.0, 0.0))


def padded(x: Any, keep: Any) -> Any:
    """Return each token plus the mean of those that count."""
    return add_up(x, array_namespace(x).where(keep[:, None, :], 1.0, 0.0 * keep[:, :, None]))


def read(x: Any, context: Any, keep: Any) -> Any:
    """Return each token plus the mean first channel of the visible tokens of a context."""
    xp = array_namespace(x)
    weights = xp.where(keep[:, None, :], 1.0, 0.0 * context[:, None, :, 0])
    total = xp.sum(weights, axis=-1, keepdims=True)
    return x + (weights @ context)[..., :1] / total


def padded_or_zeros(x: Any, keep: Any, others: float = 0.0) -> Any:
    """The same as ``padded``; in a row in which no token counts, tokens are unchanged."""
    xp = array_namespace(x)
    weights = xp.where(keep[:, None, :], 1.0, 0.0 * keep[:, :, None])
    total = xp.sum(weights, axis=-1, keepdims=True)
    return x + (weights @ x) / xp.where(total == 0, 1.0, total) + others * xp.any(total == 0)


def rotated_at_place(x: Any, power: int = 1) -> Any:
    return rotated(x, array_namespace(x).arange(x.shape[2])[None] ** power + 0 * x[:, 0, :, 0])


def last_rotated(q: Any, k: Any, *, first: int | None = None) -> tuple[Any, Any]:
    """Rotate keys at their places, and queries at the last of these, or from place ``first``."""
    start = k.shape[2] - q.shape[2] if first is None else first
    at = (array_namespace(q).arange(q.shape[2]) + start)[None] + 0 * q[:, 0, :, 0]
    return rotated(q, at), rotated_at_place(k)


def all_at(x: Any, s: Any) -> Any:
    """Rotate every token by s positions."""
    xp = array_namespace(x)
    return rotated(x, xp.zeros(x.shape[:1] + x.shape[2:3], dtype=xp.int64) + s)


def first_head_shifted(x: Any, s: Any) -> Any:
    return array_namespace(x).concat((all_at(x[:, :1], s), x[:, 1:]), axis=1)


def after_eviction(x: Any, late: int) -> tuple[Any, Any, Any]:
    """Return the last four keys rotated, the raw keys, and the claimed positions 0, 1, 2, 3.

    After an eviction the keys are rotated ``late`` positions later than claimed.
    """
    xp, own = array_namespace(x), x[:, :, -4:]
    at = xp.arange(own.shape[2])
    rotated_at = at + late * (x.shape[2] > 4)
    return rotated(own, xp.stack([rotated_at] * x.shape[0], axis=0)), own, at


def neighbours(x: Any, p: Any) -> Any:
    """Rotate in the interleaved layout: channels 0 and 1 by the angle p, 2 and 3 by p/4."""
    order = [0, 2, 1, 3]
    xp = array_namespace(x)
    halves = rotated(xp.stack([x[..., c] for c in order], axis=-1), p)
    return xp.stack([halves[..., c] for c in order], axis=-1)


def next_to_each_other(w: Any, heads: int) -> Any:
    """Return the rows of a projection in the interleaved layout of ``neighbours``."""
    xp = array_namespace(w)
    rows = [4 * head + c for head in range(heads) for c in (0, 2, 1, 3)]
    return xp.stack([w[row] for row in rows], axis=0)


def offsets(x: Any, y: Any) -> Any:
    """Return the offset of each query from each key, (r, n), with the last ones aligned."""
    xp, r, n = array_namespace(x), x.shape[0], y.shape[0]
    return (xp.arange(r)[:, None] + (n - r) - xp.arange(n)[None, :]) * 1.0


def slopes(x: Any, y: Any) -> Any:
    """Return the bias −2^(−h) times the offset for heads h = 1 and 2."""
    far = offsets(x, y)
    return array_namespace(x).stack([-0.5 * far, -0.25 * far], axis=0)


def by_start(x: Any, y: Any) -> Any:
    """Return a bias with the first query and the first key aligned, quadratic in head 2."""
    far = offsets(x, x[:1]) * 0.0 + offsets(x, y) - (y.shape[0] - x.shape[0]) * 1.0
    return array_namespace(x).stack([-0.5 * far, -0.25 * far * far], axis=0)


def sines(x: Any, power: int = 1, longer: float = 0.0, by_length: bool = False) -> Any:
    """Return tokens (B, n, 4) plus a table of two sines and two cosines."""
    xp, n = array_namespace(x), x.shape[1]
    place = xp.arange(n)[:, None] * 1.0
    angles = xp.concat((place, 0.25 * place), axis=1) ** power * (n if by_length else 1.0)
    table = xp.concat((xp.sin(angles), xp.cos(angles)), axis=1)
    return x + (table * (1.0 + longer * place))[None]


def visible(x: Any, y: Any, ahead: int = 0, before: int = 1 << 20, at_end: bool = True) -> Any:
    """Return the visible keys (r, n): ``before`` up to each query and ``ahead`` after it.

    The last query and key are aligned, or the first with ``at_end`` False.
    """
    far = offsets(x, y) if at_end else offsets(x, y) - (y.shape[0] - x.shape[0])
    return (far >= -ahead) & (far < before)
