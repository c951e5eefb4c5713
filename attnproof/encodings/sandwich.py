"""Sandwich: the inner product of two sinusoidal vectors is added to the scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from attnproof import Encoding, at_least, frequencies, hypothesis, real, sizes

(B,) = sizes("B", "blocks")


class Sandwich(Encoding):
    """strength·Σ_b cos((m − n) ω_b) is added: the product of the sinusoidal vectors of m and n.

    The strength tells the heads apart.  No score exceeds q·k / √d + strength·B, the bias at m = n.
    """

    title = "Sandwich"
    source = ("Chi et al. 2023, Dissecting Transformer Length Extrapolation: Sandwich",)
    given = {"omega": frequencies(B), "strength": real()}
    defaults = {"omega": 10_000.0 ** (-np.arange(32) / 32), "strength": 0.5}

    def bias(self, m: Any, n: Any) -> Any:
        xp = array_namespace(m)
        return self.strength * xp.sum(xp.cos((m - n)[..., None] * self.omega), axis=-1)

    def envelope(self, q: Any, k: Any, m: Any, n: Any) -> Any:
        return self.plain(q, k) + self.strength * self.omega.shape[0]

    def margin(self, q: Any, k: Any, m: Any, n: Any) -> Any:
        xp = array_namespace(m)
        return self.strength * xp.sum(1 - xp.cos((m - n) * self.omega), axis=-1)

    @hypothesis("the strength is at least 0")
    def strength_not_negative(self) -> list[Any]:
        return [at_least(self.strength, 0)]
