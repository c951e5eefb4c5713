"""ALiBi: scores fall with the distance."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from attnproof import Encoding, at_least, differ, hypothesis, real


class Alibi(Encoding):
    """−slope·|m − n| is added to the score of a query at m with a key at n, for any real slope.

    In the paper the slopes of H heads, H a power of 2, are 2^(−8/H), 2^(−16/H), .., 2^(−8), and
    n <= m.
    """

    title = "ALiBi"
    source = ("Press, Smith and Lewis 2022, section 3",)
    given = {"slope": real()}
    defaults = {"slope": 2.0**-4}

    def bias(self, m: Any, n: Any) -> Any:
        return -self.slope * array_namespace(m).abs(m - n)

    def fall(self, x: Any, o: Any, step: Any) -> Any:
        return self.slope * step

    def margin(self, q: Any, k: Any, m: Any, n: Any) -> Any:
        return -self.bias(m, n)

    def apart(self, i: Any, j: Any) -> Any:
        return self.slope * (j - i)

    @hypothesis("the slope is not 0")
    def slope_not_0(self) -> list[Any]:
        return [differ(self.slope, 0)]

    @hypothesis("the slope is at least 0")
    def slope_not_negative(self) -> list[Any]:
        return [at_least(self.slope, 0)]
