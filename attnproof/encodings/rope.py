"""RoPE: queries and keys rotate by their position."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace

from attnproof import Encoding, differ, frequencies, hypothesis, rotate, sizes

(B,) = sizes("B", "blocks")


class Rope(Encoding):
    """Pair b of a query or key, the channels 2b and 2b + 1, rotates by the angle p ω_b.

    ω_b = 10000^{−2b/d} in the paper; here any frequencies.  A subclass that overrides
    ``frequencies`` runs with others that are made of these.
    """

    title = "RoPE, interleaved"
    source: ClassVar[tuple[str, ...]] = ("Su et al. 2021, RoFormer, eq. 14, 15 and 34",)
    width = 2 * B
    given = {"omega": frequencies(B)}
    defaults = {"omega": 10_000.0 ** (-np.arange(32) / 32)}

    def frequencies(self) -> Any:
        """The frequencies with which the pairs rotate: (B,)."""
        return self.omega

    def rotate(self, x: Any, p: Any) -> Any:
        return rotate(x, p, self.frequencies())

    def pairs(self, x: Any) -> tuple[Any, Any]:
        """The first and the second channel of each pair of x: (d,)."""
        return x[0::2], x[1::2]

    def tell(self, here: Any, there: Any) -> Any:
        (a, b), (c, d) = self.pairs(here), self.pairs(there)
        return array_namespace(here).sum((a * d - b * c) ** 2)

    def apart(self, i: Any, j: Any) -> Any:
        xp = array_namespace(i)
        return xp.sum((2 * xp.sin((j - i) * self.frequencies())) ** 2)

    @hypothesis("some pair rotates by an angle that is not a rational multiple of π")
    def irrational(self, i: Any, j: Any) -> list[Any]:
        # as 1 is not: then that pair makes no multiple of π in i − j steps
        return [differ(self.apart(i, j), 0)]
