"""ALiBi as it is coded: the bias grows with the key's position."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from attnproof import Encoding, at_least, differ, hypothesis, real


class AlibiKeyBias(Encoding):
    """slope·n is added to the scores of the key at n, and keys n > m are hidden.

    The code computes this for −slope·(m − n), which it differs from by slope·m: the same for all
    keys of a query, so that softmax does not see it.  For a slope >= 0 no score of a key that is
    seen exceeds q·k / √d + slope·m.
    """

    title = "ALiBi, on keys"
    source = ("the code of Press, Smith and Lewis 2022, and of BLOOM: build_alibi_tensor",)
    given = {"slope": real()}
    defaults = {"slope": 2.0**-4}

    def bias(self, m: Any, n: Any) -> Any:
        return self.slope * n

    def sees(self, m: Any, n: Any) -> Any:
        return n <= m

    def tell(self, here: Any, there: Any) -> Any:
        return here[1] - there[1]

    def envelope(self, q: Any, k: Any, m: Any, n: Any) -> Any:
        return self.plain(q, k) + self.slope * m

    def margin(self, q: Any, k: Any, m: Any, n: Any) -> Any:
        return self.slope * array_namespace(m).abs(m - n)

    def fall(self, x: Any, o: Any, step: Any) -> Any:
        return self.slope * step

    def apart(self, i: Any, j: Any) -> Any:
        return self.slope * (i - j)

    @hypothesis("the slope is not 0")
    def slope_not_0(self) -> list[Any]:
        return [differ(self.slope, 0)]

    @hypothesis("the slope is at least 0")
    def slope_not_negative(self) -> list[Any]:
        return [at_least(self.slope, 0)]
