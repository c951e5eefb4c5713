"""T5: a learned number for each bucket of offsets."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from attnproof import Encoding, real, sizes
from attnproof.theorems.definitions.positions import looked_up

(T,) = sizes("T", "buckets")


class T5Buckets(Encoding):
    """β_bucket is added, where bucket = Σ_j [|n − m| >= t_j] + (T + 1)·[n > m].

    t_1, .., t_T are the distances at which a new bucket starts, β any table of 2(T + 1) numbers.
    With 32 buckets and a maximum distance of 128, as in T5, every distance up to 8 starts one;
    then the smallest d with 8 + ⌊8 log(d/8) / log(128/8)⌋ at its next value: 12, 16, 23, .., 91.
    (T5 leaves out the division of q·k by √d, which here all scores have.)
    """

    title = "T5 buckets, both directions"
    source = ("Raffel et al. 2020, section 2.1, and relative_position_bucket in the T5 code",)
    whole = True
    given = {"t": real(T), "beta": real(2 * T + 2)}
    defaults = {
        "t": np.array([*range(1, 9), 12, 16, 23, 32, 46, 64, 91.0]),
        "beta": -np.arange(32) / 64 - np.arange(32) % 16 / 4,
    }

    def passed(self, distance: Any) -> Any:
        """How many of the t_j a distance has reached."""
        xp = array_namespace(distance)
        reached = xp.astype(distance[..., None] >= self.t, distance.dtype)
        return xp.sum(reached, axis=-1)

    def bucket(self, m: Any, n: Any) -> Any:
        """The number of the bucket of a query at m and a key at n."""
        xp = array_namespace(m)
        after = xp.astype(n > m, m.dtype)
        return self.passed(xp.abs(n - m)) + (self.t.shape[0] + 1) * after

    def bias(self, m: Any, n: Any) -> Any:
        return looked_up(self.beta, self.bucket(m, n))
