"""Sinusoidal positions, added to the tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from attnproof import Encoding, block_rotation, differ, frequencies, hypothesis, sizes

(B,) = sizes("B", "blocks")


class Sinusoidal(Encoding):
    """sin(p ω_b) and cos(p ω_b) are added in the channels 2b and 2b + 1.

    The frequencies may be any; usually ω_b = 10000^{−2b/d}.
    """

    title = "sinusoidal"
    source = ("Vaswani et al. 2017, section 3.5",)
    width = 2 * B
    given = {"omega": frequencies(B)}
    defaults = {"omega": 10_000.0 ** (-np.arange(32) / 32)}

    def add(self, p: Any) -> Any:
        xp = array_namespace(p)
        angles = p[..., None] * self.omega
        pairs = xp.stack((xp.sin(angles), xp.cos(angles)), axis=-1)
        return xp.reshape(pairs, (*p.shape, self.width))

    def shift(self, s: Any) -> Any:
        return block_rotation(-s * self.omega)

    def tell(self, here: Any, there: Any) -> Any:
        return array_namespace(here).sum((here[0::2] * there[1::2] - here[1::2] * there[0::2]) ** 2)

    def apart(self, i: Any, j: Any) -> Any:
        xp = array_namespace(i)
        return xp.sum(xp.sin((i - j) * self.omega) ** 2)

    @hypothesis("some frequency is not a rational multiple of π")
    def irrational(self, i: Any, j: Any) -> list[Any]:
        # as 1 is not: then (i − j) ω_b is no multiple of π
        return [differ(self.apart(i, j), 0)]
