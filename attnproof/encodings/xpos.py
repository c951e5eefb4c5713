"""xPos: RoPE with queries that shrink and keys that grow along the positions."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from attnproof import real, rotate
from attnproof.encodings.rope import B, Rope


def _decay(count: int, gamma: float = 0.4) -> Any:
    return (np.arange(count) / count + gamma) / (1 + gamma)


class Xpos(Rope):
    """Pair b rotates by p ω_b; a query is scaled by ζ_b^p and a key by ζ_b^{−p}.

    ζ_b^p = exp(p λ_b) with any rates λ_b = ln ζ_b; in the paper ζ_b = (b/B + γ) / (1 + γ) < 1 with
    γ = 0.4, and p is counted in steps of 512, so that scores shrink with the distance to the past.
    """

    title = "xPos"
    source = (
        "Sun et al. 2022, A Length-Extrapolatable Transformer, Algorithm 1",
        "torchscale, XPOS: scale_base = 512",
    )
    given = {**Rope.given, "rates": real(B, says="the rates λ = ln ζ")}
    defaults = {**Rope.defaults, "rates": np.log(_decay(32)) / 512}

    def scale(self, p: Any) -> Any:
        """exp(p λ_b) for both channels of pair b: (..) -> (.., 2B)."""
        xp = array_namespace(p)
        pairs = xp.exp(p[..., None] * self.rates)
        both = xp.stack((pairs, pairs), axis=-1)
        return xp.reshape(both, (*p.shape, 2 * self.rates.shape[0]))

    def query(self, q: Any, p: Any) -> Any:
        return rotate(q, p, self.frequencies()) * self.scale(p)

    def key(self, k: Any, p: Any) -> Any:
        return rotate(k, p, self.frequencies()) * self.scale(-p)

    def envelope(self, q: Any, k: Any, m: Any, n: Any) -> Any:
        """Σ_b ζ_b^(m − n) (|q_b|² + |k_b|²) / 2√d over the pairs b.

        With ζ_b <= 1, as in the paper, it falls as m − n grows.
        """
        squares = (q * q + k * k) * self.scale(m - n)
        return array_namespace(q).sum(squares, axis=-1) / 2 / q.shape[-1] ** 0.5

    def margin(self, q: Any, k: Any, m: Any, n: Any) -> Any:
        """Σ_b ζ_b^(m − n) |R((m − n) ω_b) q_b − k_b|² / 2√d."""
        xp = array_namespace(q)
        angles = (m - n) * self.frequencies()
        cos, sin, even, odd = xp.cos(angles), xp.sin(angles), q[0::2], q[1::2]
        first, second = even * cos - odd * sin - k[0::2], even * sin + odd * cos - k[1::2]
        squares = xp.exp((m - n) * self.rates) * (first * first + second * second)
        return xp.sum(squares, axis=-1) / 2 / q.shape[-1] ** 0.5

    def apart(self, i: Any, j: Any) -> Any:
        xp = array_namespace(i)
        scale = xp.exp(-(i + j) * self.rates)
        return xp.sum((2 * xp.sin((j - i) * self.frequencies()) * scale) ** 2)
