"""RoPE on a grid, each coordinate with pairs of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from attnproof import Encoding, differ, frequencies, hypothesis, rotate, sizes

B, C = sizes("B C", "blocks")


class RopeAxial(Encoding):
    """At (p₀, p₁) the first B pairs of channels rotate by p₀ ω_b, the other C pairs by p₁ ν_c.

    Usually B = C and ω = ν, with the base 100.
    """

    title = "RoPE, axial"
    source = (
        "Heo et al. 2024, Rotary Position Embedding for Vision Transformer: axial frequencies",
        "its code, compute_axial_cis: first all pairs of one coordinate, then those of the other",
    )
    width = 2 * B + 2 * C
    axes = 2
    given = {"omega": frequencies(B), "nu": frequencies(C)}
    defaults = {"omega": 100.0 ** (-np.arange(16) / 16), "nu": 100.0 ** (-np.arange(16) / 16)}

    def rotate(self, x: Any, p: Any) -> Any:
        xp = array_namespace(x)
        rows = 2 * self.omega.shape[0]
        first = rotate(x[..., :rows], p[..., 0], self.omega)
        return xp.concat((first, rotate(x[..., rows:], p[..., 1], self.nu)), axis=-1)

    def tell(self, here: Any, there: Any, k: int = 0) -> Any:
        first = 2 * self.omega.shape[0]
        own, other = ((x[first:] if k else x[:first]) for x in (here, there))
        return array_namespace(here).sum((own[0::2] * other[1::2] - own[1::2] * other[0::2]) ** 2)

    def apart(self, i: Any, j: Any, k: int = 0) -> Any:
        xp = array_namespace(i)
        return xp.sum((2 * xp.sin((j - i) * (self.nu if k else self.omega))) ** 2)

    @hypothesis("some ω_b and some ν_c are not rational multiples of π")
    def irrational(self, i: Any, j: Any) -> list[Any]:
        return [differ(self.apart(i, j, k), 0) for k in (0, 1)]
