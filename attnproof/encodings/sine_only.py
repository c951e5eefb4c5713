"""Sines alone, added to the tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from attnproof import Encoding, differ, frequencies, hypothesis, sizes

(d,) = sizes("d", "features")


class SineOnly(Encoding):
    """sin(p ω_j) is added in channel j.

    The frequencies may be any; usually ω_j = 10000^{−j/d}.
    """

    title = "sines alone"
    source = ("document 004, the sine-only form",)
    width = d
    given = {"omega": frequencies(d)}
    defaults = {"omega": 10_000.0 ** (-np.arange(64) / 64)}

    def add(self, p: Any) -> Any:
        return array_namespace(p).sin(p[..., None] * self.omega)

    def apart(self, i: Any, j: Any) -> Any:
        cos, sin = self.halves(i, j)
        return 2 * cos * sin

    def halves(self, i: Any, j: Any) -> tuple[Any, Any]:
        """The factors of half the difference of sin(i ω_0) and sin(j ω_0)."""
        xp, omega = array_namespace(i), self.omega[0]
        return xp.cos((i + j) * omega / 2), xp.sin((i - j) * omega / 2)

    @hypothesis("the first frequency is not a rational multiple of π")
    def irrational(self, i: Any, j: Any) -> list[Any]:
        # as 1 is not: then neither half angle is a multiple of π/2
        return [differ(half, 0) for half in self.halves(i, j)]
