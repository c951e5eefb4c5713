"""Shaw's relative positions: keys and values get vectors of the clipped offset."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from attnproof import Encoding, real, sizes
from attnproof.theorems.definitions.positions import at_offset

(R,) = sizes("R", "offsets")
d, e = sizes("d d_v", "features")
_DRAWN = np.random.default_rng(0).normal(scale=0.1, size=(33, 64))


class Shaw(Encoding):
    """A query at m meets k + a_K(clip(n − m)) and reads v + a_V(clip(n − m)) at n.

    clip(o) = max(−R, min(R, o)) for any R; a_K and a_V are any tables of vectors, one for each
    offset from −R to R.
    """

    title = "Shaw et al."
    source = (
        "Shaw, Uszkoreit and Vaswani 2018, Self-Attention with Relative Position Representations",
    )
    whole = True
    given = {"a_K": real(2 * R + 1, d), "a_V": real(2 * R + 1, e)}
    defaults = {"a_K": _DRAWN, "a_V": np.arange(-16, 17)[:, None] / 16}

    def relate(self, q: Any, k: Any, m: Any, n: Any) -> Any:
        return array_namespace(q).sum(q * at_offset(self.a_K, n - m), axis=-1)

    def value(self, v: Any, m: Any, n: Any) -> Any:
        return v + at_offset(self.a_V, n - m)
