"""RoPE with interpolated positions."""

from __future__ import annotations

from typing import Any

from attnproof import positive
from attnproof.encodings.rope import Rope


class RopeInterpolated(Rope):
    """Positions are divided by a factor s > 0: pair b rotates by (p/s) ω_b."""

    title = "RoPE, interpolated"
    source = ("Chen et al. 2023, Position Interpolation, section 2.3, eq. 4, with s = L'/L",)
    given = {**Rope.given, "factor": positive()}
    defaults = {**Rope.defaults, "factor": 4.0}

    def frequencies(self) -> Any:
        return self.omega / self.factor
