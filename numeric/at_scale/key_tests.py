"""Residual tests of single keys, on clustered keys: what no bound in bfloat16 can see.

One key of a cluster treated otherwise than the rest (left out, counted twice) moves row i by
κ p_i (v_j − o_i).  Every error that depends on a key through its score alone, among them a wrong
scale and the rounding of weights, is the same for all keys of a cluster and moves o_i within the
span of the cluster means of V.  So project the residuals e_i = ô_i − o_i of all rows on the
complement of that span and add them up with the weight p_ic of one key of cluster c,

    G_c = Σ_b G_cb,     G_cb = Σ_{i in block b} p_ic P e_i.

What is left of an honest kernel is the rounding of sums and of the output: with signs that are
independent from block to block, Pinelis (1994, Theorem 3.5) gives for sums in a Hilbert space

    P(‖G_c‖ ≥ r (Σ_b ‖G_cb‖²)^½) ≤ 2 exp(−r²/2).

A key left out adds −κ Σ p_ic² P v_j to G_c, the same direction in every block, and r grows toward
the root of the number of blocks.  The limit is r = 7: 5e-11 for each cluster of each head.  It
needs roundings to nearest (the CPU's), more features than clusters, and rows that all see the
same keys: elsewhere it is skipped, and says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..measurement import Judged
from .call import Call
from .clusters import Block, Totals
from .inputs import Clusters

__all__ = ["LIMIT", "KeyTest", "Residuals"]

LIMIT = 7.0
PARTS = 512  # blocks of rows, or one row each: r can reach 22


@dataclass(frozen=True)
class KeyTest:
    """The largest r of all clusters, the key that explains it best, or why there is none."""

    ratio: float = 0.0
    head: int = 0
    key: int = 0
    why_not: str = ""

    def judged(self) -> Judged:
        """As a policy."""
        if self.why_not:
            return Judged("residual", "skipped", 0.0, self.why_not)
        told = f"r = {self.ratio:.2g} of at most {LIMIT:g} over all clusters"
        if self.ratio <= LIMIT:
            return Judged("residual", "held", self.ratio / LIMIT, told)
        told += f"; key {self.key} of head {self.head} explains it best"
        return Judged("residual", "violated", self.ratio / LIMIT, told)


class Residuals:
    """The residuals of one call, added up block by block; nothing is kept for each row."""

    def __init__(self, call: Call, x: Clusters, of: Totals) -> None:
        self.x, self.size = x, max(1, call.tokens // PARTS)
        count, width = x.centres.shape[1:]
        self.why_not = _why_not(call, count, width)
        if not self.why_not:
            self.basis = torch.linalg.qr(of.sums.mT).Q[:, None]  # (heads, 1, width, clusters)
        self.total = torch.zeros_like(of.sums)
        self.squares = of.sums.new_zeros(of.sums.shape[:2])

    def add(self, rows: Tensor, block: Block) -> None:
        """The residuals of a block, with the weights of a key of each cluster."""
        if self.why_not:
            return
        residual, weights = rows.double() - block.reference.output, block.weights
        whole = residual.shape[1] // self.size * self.size
        for a, b, size in ((0, whole, self.size), (whole, residual.shape[1], None)):
            if a == b:
                continue
            blocks = (-1, size or b - a)
            e, w = (torch.unflatten(x[:, a:b], 1, blocks) for x in (residual, weights))
            sums = w.mT @ e
            sums = sums - (sums @ self.basis) @ self.basis.mT
            self.total += sums.sum(1)
            self.squares += sums.square().sum((1, -1))

    def test(self) -> KeyTest:
        """The largest coherence of all clusters, and the key it points to."""
        if self.why_not:
            return KeyTest(why_not=self.why_not)
        coherence = (self.total.norm(dim=-1) / self.squares.sqrt()).nan_to_num_(nan=math.inf)
        coherence = torch.where(self.squares == 0, 0.0, coherence)
        at = int(coherence.argmax())
        head, cluster = divmod(at, coherence.shape[1])
        explained = (self.x.arrays.value[head].double() @ self.total[head, cluster]).abs()
        explained = torch.where(self.x.label == cluster, explained, -1.0)
        return KeyTest(float(coherence.flatten()[at]), head, int(explained.argmax()))


def _why_not(call: Call, count: int, width: int) -> str:
    if call.causal:
        return "rows of a causal call see different keys of a cluster"
    if call.device.type != "cpu":
        return "it needs roundings to nearest, which the matrix units of a GPU do not do"
    if width < 2 * count:
        return f"{count} clusters span too much of {width} features"
    if call.tokens < PARTS // 4:
        return f"{call.tokens} rows are too few"
    return ""
