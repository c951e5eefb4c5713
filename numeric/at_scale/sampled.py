"""Sampled rows: one forward over all rows, then some of them against float64.

The reference of m rows over n keys takes m/n of the work of a forward in float64, in memory for
m rows of one chunk of keys.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from .call import Call
from .comparison import Worst, against, with_residual
from .inputs import Arrays, generator
from .residual import keys_judged
from .results import chance
from .streaming import streamed

__all__ = ["ROWS", "check_rows", "places", "sampled"]

ROWS = 64  # in all heads together
ENDS = 2


def places(call: Call, rows: int = ROWS) -> Tensor:
    """(heads, r) rows of each head, in order: both ends and random ones between.

    ``rows`` in all, at least one random row a head; all rows where there are no more.
    """
    n, each = call.tokens, max(ENDS + 1, rows // call.heads)
    if each >= n:
        return torch.arange(n).expand(call.heads, n)
    source = generator(call, 9)
    ends = torch.tensor([0, n - 1])
    drawn = [
        torch.cat((ends, torch.randperm(n - 2, generator=source)[: each - ENDS] + 1))
        for _ in range(call.heads)
    ]
    return torch.stack(drawn).sort(-1).values


def check_rows(call: Call, x: Arrays, output: Tensor, at: Tensor) -> Worst:
    """The rows ``at`` (heads, r) of the output against float64; the place is in the whole."""
    here = at.to(call.device)[..., None]
    query = x.query.gather(1, here.expand(-1, -1, x.query.shape[-1]))
    rows = output.gather(1, here.expand(-1, -1, output.shape[-1]))
    last = at.to(call.device) if call.causal else None
    reference = streamed(query, x.key, x.value, call.profile, call.bound(call.tokens), last)
    worst = against(rows, reference, call.profile)
    residual = keys_judged(
        query, x.key, x.value, rows, reference, call.profile, call.bound(call.tokens), last
    )
    head, row, column = worst.place
    return with_residual(replace(worst, place=(head, int(at[head, row]), column)), residual)


def sampled(call: Call, x: Arrays, output: Tensor, rows: int = ROWS) -> tuple[Worst, str, str]:
    """The worst entry of the sampled rows; which rows they are and what they miss, in words."""
    at = places(call, rows)
    worst = check_rows(call, x, output, at)
    each = at.shape[1]
    if each == call.tokens:
        return worst, "every row", ""
    looked = f"{at.numel()} of {call.heads * call.tokens:,} rows against float64, both ends of each"
    looked += f" head and {each - ENDS} random rows of it; every row was computed"
    ends = ENDS * call.heads
    return worst, looked, chance(at.numel() - ends, ends)
