"""RoPE with slow pairs interpolated and fast ones left alone: NTK-by-parts."""

from __future__ import annotations

from math import pi
from typing import Any

from array_api_compat import array_namespace

from attnproof import angle, positive
from attnproof.encodings.rope import Rope


class RopeByParts(Rope):
    """Pair b rotates with ω_b (γ_b + (1 − γ_b)/s), s > 0: by how often it rotated in training.

    There it rotated by L ω_b, L being the length.  γ_b = (L ω_b − slow) / ramp, cut off at 0 and 1:
    a pair is slow below the one angle, and fast above the angle slow + ramp > slow.
    """

    title = "RoPE, NTK-by-parts"
    source = ("Peng et al. 2023, YaRN, Definition 2 (section 3.2), in turns of 2π",)
    given = {
        **Rope.given,
        "factor": positive(),
        "length": positive(),
        "slow": angle(),
        "ramp": positive(),
    }
    defaults = {**Rope.defaults, "factor": 16.0, "length": 4096.0, "slow": 2 * pi, "ramp": 62 * pi}

    def kept(self, omega: Any) -> Any:
        """γ, the share of its own frequency that a pair keeps."""
        return array_namespace(omega).clip((self.length * omega - self.slow) / self.ramp, 0, 1)

    def frequencies(self) -> Any:
        kept = self.kept(self.omega)
        return self.omega * (kept + (1 - kept) / self.factor)
