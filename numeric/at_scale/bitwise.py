"""Rows that do not depend on what stands beside them, compared bit for bit.

On the CPU's flash kernel, queries permuted or computed in a smaller set give the same rows to the
last bit (measured for float32, bfloat16 and float16), as long as no block of queries has only a
few: those are summed in another order, so that whole blocks of 32 queries are run, and rows past
the last whole block are left out.  Causal, the rows up to a whole block of keys are the same
without the rest of the sequence.  No tolerance is needed: any row from another place shows.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .call import Call
from .comparison import Worst
from .inputs import Arrays, generator
from .results import chance

__all__ = ["alone", "queries_permuted"]

SHARE = 16  # one row in so many is run again
QUERIES = 32  # a block of fewer takes another path of the kernel
BLOCK = 512
ELSEWHERE = "that rows are equal to the last bit is known of the CPU's flash kernel alone"
DIFFERS = "not the same bits as among all rows"


def alone(call: Call, x: Arrays, output: Tensor) -> tuple[Worst, str, str]:
    """One row in 16 again, in random order; causal, the first quarter without the rest."""
    n = call.tokens
    if not call.kernel.blocks:
        return _skipped(ELSEWHERE)
    if call.causal:
        first = n // 4 // BLOCK * BLOCK
        if not first:
            return _skipped(f"{n} tokens have no quarter of whole blocks of {BLOCK}")
        again = call.run(*(part[:, :first] for part in x))
        worst = _equal(again, output, torch.arange(first))
        return worst, f"the first {first:,} rows of each head, without what follows", ""
    if n < QUERIES:
        return _skipped(f"{n} rows are fewer than a block of {QUERIES} queries")
    count = QUERIES * max(1, n // SHARE // QUERIES)
    places = torch.randperm(_in_blocks(n), generator=generator(call, 11))[:count]
    worst = _equal(call.run(x.query[:, places], x.key, x.value), output, places)
    looked = f"{count:,} random rows, the same in each of {call.heads} heads, run alone"
    which = "all rows" if _in_blocks(n) == n else f"the first {_in_blocks(n):,} rows"
    misses = chance(count, wrong=f"{which} has other bits than when run alone")
    return worst, f"{looked}, bit for bit", misses


def queries_permuted(call: Call, x: Arrays, output: Tensor) -> tuple[Worst, str, str]:
    """All queries permuted, in a second forward: the rows are permuted, bit for bit."""
    if call.causal:
        return _skipped("a causal row moved to another place sees other keys")
    if not call.kernel.blocks:
        return _skipped(ELSEWHERE)
    n = call.tokens
    if n < QUERIES:
        return _skipped(f"{n} rows are fewer than a block of {QUERIES} queries")
    order = torch.randperm(_in_blocks(n), generator=generator(call, 12))
    worst = _equal(call.run(x.query[:, order], x.key, x.value), output, order)
    looked = "every row" if len(order) == n else f"all but the last {n - len(order)} rows"
    return worst, f"{looked}, with permuted queries, bit for bit", ""


def _in_blocks(n: int) -> int:
    """The rows of whole blocks of queries."""
    return n // QUERIES * QUERIES


def _skipped(why: str) -> tuple[Worst, str, str]:
    return Worst(0.0, 0.0, (), "skipped", why), "nothing", ""


def _equal(again: Tensor, output: Tensor, places: Tensor) -> Worst:
    """``again`` against the rows of the output at some places of every head."""
    for k, piece in enumerate(torch.split(again, BLOCK, 1)):
        at = places[k * BLOCK : k * BLOCK + BLOCK].to(output.device)
        same = output[:, at]
        if torch.equal(piece, same):
            continue
        error = (piece.double() - same.double()).abs().nan_to_num_(nan=math.inf)
        head, row, column = (
            int(i) for i in torch.unravel_index(error.argmax().cpu(), error.shape)
        )
        place = (head, int(at[row]), column)
        largest = float(error.max())
        if math.isinf(largest):
            return Worst(largest, 0.0, place, "non-finite", "not a number there")
        return Worst(largest, 0.0, place, "violated", DIFFERS)
    return Worst(0.0, 0.0, (), "held")
