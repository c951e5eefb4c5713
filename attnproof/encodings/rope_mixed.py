"""RoPE on a grid, every pair with a frequency for each coordinate."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnproof import Encoding, frequencies, sizes
from attnproof.theorems.definitions.rotary import rotate_pairs

(B,) = sizes("B", "blocks")


class RopeMixed(Encoding):
    """At p = (p₀, p₁) pair b rotates by p₀ Ω_b0 + p₁ Ω_b1; Ω is learned, so it may be anything."""

    title = "RoPE, mixed"
    source = (
        "Heo et al. 2024, Rotary Position Embedding for Vision Transformer: RoPE-Mixed",
        "its code, init_random_2d_freqs",
    )
    width = 2 * B
    axes = 2
    given = {"Omega": frequencies(B, 2)}
    # As at the start of training: half of the pairs in one direction, drawn for each head, and
    # the other half in the direction at right angles to it.
    defaults = {
        "Omega": np.concatenate(
            [
                10.0 ** (-np.arange(16) / 16)[:, None] * np.array([np.cos(angle), np.sin(angle)])
                for angle in (1.0, 1.0 + np.pi / 2)
            ]
        )
    }

    def rotate(self, x: Any, p: Any) -> Any:
        return rotate_pairs(x, p @ self.Omega.mT)
