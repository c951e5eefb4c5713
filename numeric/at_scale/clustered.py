"""Every row of one forward against float64, on keys that take few distinct values."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor

from .call import Call
from .clusters import Totals, blocks, totals
from .comparison import Worst, against, worse
from .inputs import Clusters
from .key_tests import KeyTest, Residuals
from .threads import mapped

__all__ = ["CLUSTERS", "Checked", "check_every_row"]

CLUSTERS = 16


@dataclass(frozen=True)
class Checked:
    """The worst entry of all rows, and what the residual tests of single keys say."""

    worst: Worst
    keys: KeyTest


def check_every_row(call: Call, x: Clusters, output: Tensor) -> Checked:
    """Compare every row with its exact value; keep the residuals that single keys would cause.

    Head by head, in threads.
    """
    one = replace(call, heads=1)

    def check(head: int) -> Checked:
        return _head(one, x.head(head), output[head : head + 1], head)

    found = mapped(check, range(call.heads), call.device)
    worst = found[0].worst
    for other in found[1:]:
        worst = worse(worst, other.worst)
    return Checked(worst, max((f.keys for f in found), key=lambda keys: keys.ratio))


def _head(call: Call, x: Clusters, output: Tensor, head: int) -> Checked:
    worst: Worst | None = None
    of = Totals.of_none(x) if call.causal else totals(x)  # causal, blocks add them up
    residuals = Residuals(call, x, of)
    for block in blocks(call, x, of):
        rows = output[:, block.a : block.b]
        one = against(rows, block.reference, call.profile)
        if worst is None or one.status != "held" or one.ratio > worst.ratio:
            _, row, column = one.place
            worst = worse(worst, replace(one, place=(head, block.a + row, column)))
        residuals.add(rows, block)
    assert worst is not None
    return Checked(worst, replace(residuals.test(), head=head))
