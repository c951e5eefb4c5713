"""KERPLE, logarithmic: scores fall with the logarithm of the distance."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from attnproof import Encoding, at_least, differ, hypothesis, nonnegative, real


class KerpleLog(Encoding):
    """−r_1 log(1 + r_2 |m − n|) is added to the scores; in the paper r_1 and r_2 are positive."""

    title = "KERPLE, logarithmic"
    source = ("Chi et al. 2022, KERPLE: the logarithmic variant",)
    given = {"r_1": real(), "r_2": nonnegative()}
    defaults = {"r_1": 1.0, "r_2": 1.0}

    def bias(self, m: Any, n: Any) -> Any:
        xp = array_namespace(m)
        return -self.r_1 * xp.log1p(self.r_2 * xp.abs(m - n))

    def fall(self, x: Any, o: Any, step: Any) -> Any:
        log = array_namespace(o).log
        return self.r_1 * (log(1 + self.r_2 * (o + step)) - log(1 + self.r_2 * o))

    def margin(self, q: Any, k: Any, m: Any, n: Any) -> Any:
        return -self.bias(m, n)

    def tell(self, here: Any, there: Any) -> Any:
        exp = array_namespace(here).exp
        return exp(-here[0] / self.r_1) - exp(-there[0] / self.r_1)

    def apart(self, i: Any, j: Any) -> Any:
        return self.r_2 * (i - j)

    @hypothesis("neither r_1 nor r_2 is 0")
    def not_0(self) -> list[Any]:
        # x/0 is 0 here, so that r_1/r_1 is 1 just where r_1 is not 0
        return [(self.r_1 / self.r_1, 1), differ(self.r_2, 0)]

    @hypothesis("r_1 is at least 0")
    def r_1_not_negative(self) -> list[Any]:
        return [at_least(self.r_1, 0)]
