"""Vectors of relative positions that queries meet: Shaw, Transformer-XL, CoPE."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from attnproof import Encoding, frequencies, real, sizes
from attnproof.theorems.definitions.positions import at_offset, interpolated, sigmoid

(B,) = sizes("B", "blocks")
(R,) = sizes("R", "offsets")
(T,) = sizes("T", "positions")
d, e = sizes("d d_v", "features")
_OFFSETS = np.random.default_rng(0).normal(scale=0.1, size=(33, 64))
_TRAINED = np.random.default_rng(0).normal(size=(66, 64)) / 8


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
    defaults = {"a_K": _OFFSETS, "a_V": np.arange(-16, 17)[:, None] / 16}

    def relate(self, q: Any, k: Any, m: Any, n: Any) -> Any:
        return array_namespace(q).sum(q * at_offset(self.a_K, n - m), axis=-1)

    def value(self, v: Any, m: Any, n: Any) -> Any:
        return v + at_offset(self.a_V, n - m)


class TransformerXL(Encoding):
    """(q + u)·k + (q + v)·W R(m − n), where R(o) is sin(o ω_b), then cos(o ω_b), for all b.

    W, u and v are trained; u and v are the same for all queries.
    """

    title = "Transformer-XL"
    source = ("Dai et al. 2019, section 3.3",)
    given = {"omega": frequencies(B), "W": real(d, 2 * B), "u_R": real(d), "v_R": real(d)}
    defaults = {
        "omega": 10_000.0 ** (-np.arange(32) / 32),
        "W": _TRAINED[:64],
        "u_R": _TRAINED[64],
        "v_R": _TRAINED[65],
    }

    def relate(self, q: Any, k: Any, m: Any, n: Any) -> Any:
        xp = array_namespace(q)
        place = (q + self.v_R) * (self.vector(m - n) @ self.W.mT)
        return xp.sum(k * self.u_R + place, axis=-1)

    def vector(self, o: Any) -> Any:
        """Return R(o), the vector of an offset."""
        xp = array_namespace(o)
        angles = o[..., None] * self.omega
        return xp.concat((xp.sin(angles), xp.cos(angles)), axis=-1)


class Cope(Encoding):
    """q·k / √d + q·e(p) for the position p of a key, counted back from the query.

    p = Σ σ(q·k' / √d) over the keys k' from the key to the query, both included, and at most T − 1;
    e interpolates linearly between the rows of a trained table E, so that
    e(p) = Σ_t E_t max(0, 1 − |p − t|).  Keys after the query are hidden.
    """

    title = "CoPE"
    together = True
    source = ("Golovneva et al. 2024, Contextual Position Encoding, and its listing",)
    given = {"E": real(T, d)}
    defaults = {"E": np.random.default_rng(0).normal(size=(64, 64)) / 8}

    def counted(self, product: Any, m: Any, n: Any) -> Any:
        """Return the positions (r, c) of the keys at n for the queries at m, from q·k / √d."""
        xp = array_namespace(product)
        between = (n[:, None] <= n) & (n <= m[:, None, None])
        total = xp.sum(xp.where(between, sigmoid(product)[:, None, :], 0), axis=-1)
        return xp.minimum(total, xp.zeros(()) + (self.E.shape[0] - 1))

    def scores(self, Q: Any, K: Any, m: Any, n: Any) -> Any:
        product = Q @ K.mT / Q.shape[-1] ** 0.5
        return product + interpolated((Q @ self.E.mT)[:, None], self.counted(product, m, n))

    def sees(self, m: Any, n: Any) -> Any:
        return n <= m
