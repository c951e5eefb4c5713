"""CoPE: positions are counted by gates that look at the content."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from attnproof import Encoding, real, sizes
from attnproof.theorems.definitions.positions import interpolated, sigmoid

(T,) = sizes("T", "positions")
(d,) = sizes("d", "features")


class Cope(Encoding):
    """q·k / √d + q·e(p) for the position p of a key, counted back from the query.

    p = Σ σ(q·k' / √d) over the keys k' from the key to the query, both included, and at most
    T − 1; e runs straight from one row of a trained table E to the next, so that
    e(p) = Σ_t E_t max(0, 1 − |p − t|).  Keys after the query are hidden.
    """

    title = "CoPE"
    together = True
    source = ("Golovneva et al. 2024, Contextual Position Encoding, and its listing",)
    given = {"E": real(T, d)}
    defaults = {"E": np.random.default_rng(0).normal(size=(64, 64)) / 8}

    def counted(self, product: Any, m: Any, n: Any) -> Any:
        """The positions (r, c) of the keys at n for the queries at m, from q·k / √d."""
        xp = array_namespace(product)
        between = (n[:, None] <= n) & (n <= m[:, None, None])
        total = xp.sum(xp.where(between, sigmoid(product)[:, None, :], 0), axis=-1)
        return xp.minimum(total, xp.zeros(()) + (self.E.shape[0] - 1))

    def scores(self, Q: Any, K: Any, m: Any, n: Any) -> Any:
        product = Q @ K.mT / Q.shape[-1] ** 0.5
        return product + interpolated((Q @ self.E.mT)[:, None], self.counted(product, m, n))

    def sees(self, m: Any, n: Any) -> Any:
        return n <= m
