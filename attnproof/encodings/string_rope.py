"""STRING: queries and keys rotate by generators that commute."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from attnproof import Encoding, frequencies, injection, orthogonal, sizes

(B,) = sizes("B", "blocks")
(d,) = sizes("d", "features")


class String(Encoding):
    """R_p = exp(p₀ L₀ + p₁ L₁) for antisymmetric L_k that commute, in their common basis.

    Antisymmetric matrices that commute rotate the same planes, orthogonal to each other: plane b,
    spanned by two rows of an orthogonal P, by the angle (p Ω)_b; what lies in no plane stays.
    So this is RoPE for any linear map of the position, in any basis.
    """

    title = "STRING"
    source = (
        "Schenck et al. 2025, Learning the RoPEs: Better 2D and 3D Position Encodings with STRING",
        "Ostmeier et al. 2024, LieRE, where its generators commute",
    )
    width = d
    axes = 2
    given = {"P": orthogonal(d), "place": injection(2 * B, d), "Omega": frequencies(2, B)}
    defaults = {
        "P": np.linalg.qr(np.random.default_rng(0).normal(size=(64, 64)))[0],
        "place": np.arange(64),
        "Omega": np.cos(np.arange(2)[:, None] + np.arange(32)) * 100.0 ** (-np.arange(32) / 32),
    }

    def rotate(self, x: Any, p: Any) -> Any:
        xp = array_namespace(x)
        cos, sin = xp.cos(p @ self.Omega), xp.sin(p @ self.Omega)
        planes = self.P[self.place]
        first, second = planes[0::2], planes[1::2]
        a, b = x @ first.mT, x @ second.mT
        return x + (a * cos - b * sin - a) @ first + (a * sin + b * cos - b) @ second
