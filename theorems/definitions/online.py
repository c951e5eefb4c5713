"""Softmax in one pass: blocks of keys summed up by (shift, normaliser, output)."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

__all__ = ["merge", "summary"]

Summary = tuple[Any, Any, Any]


def summary(scores: Any, values: Any, shift: Any) -> Summary:
    r"""(m, Σ_j exp(s_j − m), Σ_j exp(s_j − m) v_j) for scores: (n,), values: (n, d), any shift m.

    Milakov and Gimelshein 2018, algorithm 3; Dao et al. 2022 (FlashAttention), section 3.1.
    """
    xp = array_namespace(scores)
    weights = xp.exp(scores - shift)
    return shift, xp.sum(weights, axis=-1), weights @ values


def merge(first: Summary, second: Summary) -> Summary:
    r"""The summary of two blocks together, at the larger of their shifts.

    Milakov and Gimelshein 2018, section 3.1; with the outputs, Dao et al. 2022, section 3.1.
    """
    (m1, z1, o1), (m2, z2, o2) = first, second
    xp = array_namespace(o1, o2)
    m = xp.maximum(m1, m2)
    a, b = xp.exp(m1 - m), xp.exp(m2 - m)
    return m, a * z1 + b * z2, a * o1 + b * o2
