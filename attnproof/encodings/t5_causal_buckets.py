"""T5's decoder: a learned number for each bucket of distances to the past."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from attnproof import real

from .t5_buckets import T, T5Buckets


class T5CausalBuckets(T5Buckets):
    """β_bucket is added, where bucket = Σ_j [max(m − n, 0) >= t_j], and keys n > m are hidden.

    β is any table of T + 1 numbers.  With 32 buckets and a maximum distance of 128 every distance
    up to 16 starts a bucket, then the smallest d with 16 + ⌊16 log(d/16) / log(128/16)⌋ at its
    next value: 19, 21, .., 113.
    """

    title = "T5 buckets, causal"
    given = {"t": real(T), "beta": real(T + 1)}
    defaults = {
        "t": np.array(
            [*range(1, 17), 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113.0]
        ),
        "beta": -np.arange(32) / 8,
    }

    def bucket(self, m: Any, n: Any) -> Any:
        xp = array_namespace(m)
        return self.passed(xp.maximum(m - n, xp.zeros(())))

    def sees(self, m: Any, n: Any) -> Any:
        return n <= m
