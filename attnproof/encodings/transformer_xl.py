"""Transformer-XL: content and offset are scored apart, with a sinusoidal vector of the offset."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from attnproof import Encoding, frequencies, real, sizes

(d,) = sizes("d", "features")
(B,) = sizes("B", "blocks")
_DRAWN = np.random.default_rng(0).normal(size=(66, 64)) / 8


class TransformerXL(Encoding):
    """(q + u)·k + (q + v)·W R(m − n), where R(o) is sin(o ω_b), then cos(o ω_b), for all b.

    Trained are W and, the same for all queries, u and v.
    """

    title = "Transformer-XL"
    source = ("Dai et al. 2019, section 3.3",)
    given = {"omega": frequencies(B), "W": real(d, 2 * B), "u_R": real(d), "v_R": real(d)}
    defaults = {
        "omega": 10_000.0 ** (-np.arange(32) / 32),
        "W": _DRAWN[:64],
        "u_R": _DRAWN[64],
        "v_R": _DRAWN[65],
    }

    def relate(self, q: Any, k: Any, m: Any, n: Any) -> Any:
        xp = array_namespace(q)
        place = (q + self.v_R) * (self.vector(m - n) @ self.W.mT)
        return xp.sum(k * self.u_R + place, axis=-1)

    def vector(self, o: Any) -> Any:
        """R(o), the vector of an offset."""
        xp = array_namespace(o)
        angles = o[..., None] * self.omega
        return xp.concat((xp.sin(angles), xp.cos(angles)), axis=-1)
