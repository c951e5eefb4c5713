"""RoPE in the half-split layout."""

from __future__ import annotations

from typing import Any

from attnproof import rotate_half
from attnproof.encodings.rope import Rope


class RopeHalfSplit(Rope):
    """The channels b and d/2 + b of a query or key rotate by the angle p ω_b.

    The layout of GPT-NeoX and Llama; the pairs of the paper in another order of the channels.
    """

    title = "RoPE, half-split"
    source = (
        "Black et al. 2022, GPT-NeoX-20B, section 2.1 and its code",
        "Su et al. 2021, RoFormer, eq. 34, with the channels in another order",
    )

    def rotate(self, x: Any, p: Any) -> Any:
        return rotate_half(x, p, self.frequencies())

    def pairs(self, x: Any) -> tuple[Any, Any]:
        half = self.omega.shape[0]
        return x[:half], x[half:]
