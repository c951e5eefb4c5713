"""KERPLE, power: scores fall with a power of the distance."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from attnproof import Encoding, at_least, hypothesis, positive, real
from attnproof.theorems.definitions.positions import real_power


class KerplePower(Encoding):
    """−r_1 |m − n|^r_2 is added to the scores; in the paper 0 < r_1 and 0 < r_2 <= 2."""

    title = "KERPLE, power"
    source = ("Chi et al. 2022, KERPLE: the power variant",)
    given = {"r_1": real(), "r_2": positive()}
    defaults = {"r_1": 0.1, "r_2": 0.5}

    def bias(self, m: Any, n: Any) -> Any:
        return -self.r_1 * real_power(array_namespace(m).abs(m - n), self.r_2)

    def fall(self, x: Any, o: Any, step: Any) -> Any:
        return self.r_1 * (real_power(o + step, self.r_2) - real_power(o, self.r_2))

    def margin(self, q: Any, k: Any, m: Any, n: Any) -> Any:
        return -self.bias(m, n)

    @hypothesis("r_1 is at least 0")
    def r_1_not_negative(self) -> list[Any]:
        return [at_least(self.r_1, 0)]
