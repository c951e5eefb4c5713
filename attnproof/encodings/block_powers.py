"""The powers of a rotation in blocks, whose angles are the powers of one number."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from attnproof import Encoding, real, sizes
from attnproof.theorems.definitions.powers import each, number_power
from attnproof.theorems.definitions.rotary import block_rotation

(B,) = sizes("B", "blocks")


class BlockPowers(Encoding):
    """M^j x is added at position j, for x = (0, 1, .., 0, 1) and M with blocks R(−θ^b), b < d/2.

    That is sin(j θ^b) and cos(j θ^b) in the channels 2b and 2b + 1; usually θ = 10000^{−2/d}.
    """

    title = "powers of a rotation in blocks"
    source = ("Ganev, Example 3.6",)
    width = 2 * B
    whole = True
    given = {"theta": real()}
    defaults = {"theta": 10_000.0 ** (-1 / 32)}

    def angles(self, p: Any) -> Any:
        """j θ^b in block b, where M^j rotates by as much the other way."""
        xp = array_namespace(p)
        blocks = xp.arange(xp.arange(self.width)[::2].shape[0])
        return p[..., None] * each(blocks, lambda b: number_power(self.theta, b))

    def add(self, p: Any) -> Any:
        xp = array_namespace(p)
        pairs = xp.stack((xp.sin(self.angles(p)), xp.cos(self.angles(p))), axis=-1)
        return xp.reshape(pairs, (*p.shape, self.width))

    def shift(self, s: Any) -> Any:
        return block_rotation(-self.angles(s))

    def tell(self, here: Any, there: Any) -> Any:
        return here[0] * there[1] - here[1] * there[0]
