"""M-RoPE: positions in time, height and width."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from attnproof import Encoding, differ, frequencies, hypothesis, index_map, sizes
from attnproof.theorems.definitions.rotary import rotate_halves

(B,) = sizes("B", "blocks")


class MRope(Encoding):
    """At p = (t, h, w) the channels b and d/2 + b rotate by p_{a(b)} ω_b; a(b) is the pair's axis.

    In Qwen2-VL the first 16 pairs have the axis t, the next 24 h, the last 24 w.  Any other
    choice of axes is one of these, too.
    """

    title = "M-RoPE"
    source = ("Wang et al. 2024, Qwen2-VL, section 2.1; mrope_section of its configuration",)
    width = 2 * B
    axes = 3
    given = {"omega": frequencies(B), "axis": index_map(B, 3)}
    defaults = {
        "omega": 1_000_000.0 ** (-np.arange(64) / 64),
        "axis": np.repeat([0, 1, 2], [16, 24, 24]),
    }

    def rotate(self, x: Any, p: Any) -> Any:
        return rotate_halves(x, p[..., self.axis] * self.omega)

    def tell(self, here: Any, there: Any, k: int = 0) -> Any:
        xp, half = array_namespace(here), self.omega.shape[0]
        crossed = here[:half] * there[half:] - here[half:] * there[:half]
        return xp.sum(xp.where(self.axis == k, crossed**2, 0))

    def apart(self, i: Any, j: Any, k: int = 0) -> Any:
        xp = array_namespace(i)
        return xp.sum(xp.where(self.axis == k, (2 * xp.sin((j - i) * self.omega)) ** 2, 0))

    @hypothesis("each axis has a pair whose frequency is not a rational multiple of π")
    def irrational(self, i: Any, j: Any) -> list[Any]:
        return [differ(self.apart(i, j, k), 0) for k in range(self.axes)]
