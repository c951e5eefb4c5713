"""RoPE on the first channels; the others pass."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from attnproof import rotate, sizes
from attnproof.encodings.rope import B, Rope

(N,) = sizes("N", "features")


class RopePartial(Rope):
    """The first 2B channels rotate in pairs by p ω_b, the other N >= 1 channels pass unrotated."""

    title = "RoPE, partial"
    source = ("Wang and Komatsuzaki 2021, GPT-J-6B (64 of 256 channels)",)
    width = 2 * B + N

    def rotate(self, x: Any, p: Any) -> Any:
        xp = array_namespace(x)
        rotating = 2 * self.omega.shape[0]
        rotated = rotate(x[..., :rotating], p, self.frequencies())
        return xp.concat((rotated, x[..., rotating:]), axis=-1)

    def pairs(self, x: Any) -> tuple[Any, Any]:
        return super().pairs(x[: 2 * self.omega.shape[0]])
