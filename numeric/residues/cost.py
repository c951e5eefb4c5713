"""What an exact check costs, in forwards of attention of the same size on the same machine.

``python -m attnproof.numeric.residues.cost`` prints it; on a shared machine only the ratios say
much, and those only when the machine is idle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import torch

from attnproof.symbolic.claim import equal
from attnproof.symbolic.givens import permutation, real, sizes
from attnproof.symbolic.statement import Statement
from attnproof.theorems.definitions.attention import attention

from .exact import checked
from .towers import tower

__all__ = ["Cost", "cost"]

FEATURES = 64


@dataclass(frozen=True)
class Cost:
    """Seconds of one forward in float32, and of one side of the identity, every row of it exact."""

    tokens: int
    heads: int
    forward: float
    side: float

    @property
    def ratio(self) -> float:
        """One side, in forwards."""
        return self.side / self.forward

    def __str__(self) -> str:
        heads = f"{self.heads} head{'s' * (self.heads != 1)}"
        return (
            f"n = {self.tokens}, {heads}: forward {self.forward:.3f} s, one side exact "
            f"{self.side:.3f} s, ratio {self.ratio:.2f}"
        )


def pairs(heads: int) -> Statement:
    """Att(Q, K[σ], V[σ]) = Att(Q, K, V), for one head or more."""
    (h,), (n,) = sizes("h", "heads"), sizes("n", "tokens")
    l, d = sizes("l d", "features")
    lead = (h,) if heads > 1 else ()
    givens = {
        "Q": real(*lead, n, l), "K": real(*lead, n, l), "V": real(*lead, n, d),
        "s": permutation(n),
    }  # fmt: skip
    Q, K, V, s = (given.named(name) for name, given in givens.items())
    claim = equal(attention(Q, K[..., s, :], V[..., s, :]), attention(Q, K, V))
    return Statement(givens, {"": claim})


def cost(tokens: int = 4_096, heads: int = 1, forward_heads: int = 8, rounds: int = 5) -> Cost:
    """The least time of some rounds, forward and check one after the other.

    One head of the check against a forward of several is what a sample costs.
    """
    statement = pairs(heads)
    ((says, claim),) = statement.claims.items()
    found = {"n": tokens, "l": FEATURES, "d": FEATURES, "h": heads}
    data = torch.randn(3, 1, forward_heads, tokens, FEATURES)

    def exact() -> None:
        check = checked(statement, says, claim, found, tower(1), 0, 0, rows=tokens)
        if check.status != "held" or check.compared < heads * tokens:
            raise RuntimeError(f"{check.status} after {check.compared} entries: {check.reason}")

    def forward() -> None:
        torch.nn.functional.scaled_dot_product_attention(*data)

    runs: tuple[Callable[[], None], ...] = (forward, exact)
    least = {run: float("inf") for run in runs}
    for k in range(rounds + 1):
        for run in runs if k % 2 else reversed(runs):
            start = perf_counter()
            run()
            if k:  # the first round builds tables
                least[run] = min(least[run], perf_counter() - start)
    return Cost(tokens, heads, least[forward], least[exact] / 2)


if __name__ == "__main__":
    for size in (1_024, 4_096):
        print(cost(size, heads=1))
        print(cost(size, heads=8))
