"""FIRE: a function of the distance as a share of the query's position."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from attnproof import Encoding, function, positive


class Fire(Encoding):
    """f(ψ(m − n) / ψ(max(L, m))) is added, ψ(x) = log(γ x + 1); keys n > m are hidden.

    f is any function (in the paper a small network), γ (there c) and the threshold L any positive
    numbers; the paper trains all of them.
    """

    title = "FIRE"
    source = ("Li et al. 2024, Functional Interpolation for Relative Positions; causal",)
    given = {"f": function(0), "gamma": positive(), "L": positive()}
    defaults = {"f": lambda share: -4.0 * share, "gamma": 0.1, "L": 512.0}

    def psi(self, x: Any) -> Any:
        return array_namespace(x).log(self.gamma * x + 1)

    def bias(self, m: Any, n: Any) -> Any:
        xp = array_namespace(m)
        reach = xp.maximum(m, xp.zeros(()) + self.L)
        return self.f(self.psi(xp.maximum(m - n, xp.zeros(()))) / self.psi(reach))

    def sees(self, m: Any, n: Any) -> Any:
        return n <= m
