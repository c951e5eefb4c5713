"""RoPE as Llama 3.1 scales it."""

from __future__ import annotations

from math import pi

import numpy as np

from attnproof.encodings.rope_by_parts import RopeByParts


class RopeLlama3(RopeByParts):
    """Pairs with a wavelength 2π/ω above L rotate s times slower, those below L/4 as before.

    Between them L/wavelength decides linearly: NTK-by-parts, from one turn to four, s = 8.
    """

    title = "RoPE, Llama 3.1"
    source = ("Llama 3.1 (Grattafiori et al. 2024), apply_scaling in its reference code",)
    defaults = {
        "omega": 500_000.0 ** (-np.arange(64) / 64),
        "factor": 8.0,
        "length": 8192.0,
        "slow": 2 * pi,
        "ramp": 6 * pi,
    }
