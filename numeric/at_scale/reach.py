"""Reach: the kernel on a few rows over more keys than any forward could take all rows of.

As many queries as are asked for attend to all keys, as decoding does, and are compared with the
float64 reference, a chunk of keys at a time.  Heads are made and run together while they fit in a
share of the memory that is free, else one group after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from .call import Call, timed
from .comparison import Worst, against, with_residual, worse
from .inputs import arrays, generator
from .memory import available
from .residual import keys_judged
from .streaming import streamed

__all__ = ["ROWS", "NoRoom", "Reached", "group_of_heads", "reach"]

ROWS = 64  # of each head
CAUSAL_ROWS = 16  # each of them a call of its own
TAKEN = 0.6  # the share of free memory that keys and values may take


class NoRoom(ValueError):
    """The keys and values of one head do not fit in memory."""


@dataclass(frozen=True)
class Reached:
    """The worst entry, what was looked at, and what it took."""

    worst: Worst
    looked: str
    kernel_seconds: float
    bytes_of_inputs: int


def group_of_heads(call: Call, free: int | None) -> int:
    """How many heads fit at once.

    Raises :class:`NoRoom`, with the bytes wanted and those that are free, where one does not.
    """
    item = torch.empty((), dtype=call.dtype).element_size()
    one = 2 * call.tokens * call.width * item
    if free is None:
        return call.heads
    room = int(free * TAKEN)
    if one > room:
        raise NoRoom(
            f"wanted room for the keys and values of one head, {one / 2**30:.1f} GiB in "
            f"{str(call.dtype).removeprefix('torch.')}; {room / 2**30:.1f} GiB may be taken of "
            f"{free / 2**30:.1f} GiB that are free; ask for fewer tokens, or for bfloat16"
        )
    return min(call.heads, room // one)


def reach(
    call: Call, rows: int | None = None, tell: Callable[[str, int, int], None] | None = None
) -> Reached:
    """The kernel on ``rows`` rows of each head, over all tokens; ``tell`` is told of progress."""
    rows = (CAUSAL_ROWS if call.causal else ROWS) if rows is None else rows
    rows = min(rows, call.tokens)
    group = group_of_heads(call, available(call.device))
    worst: Worst | None = None
    seconds, held = 0.0, 0
    for head in range(0, call.heads, group):
        heads = min(group, call.heads - head)
        if tell is not None:
            tell("reach", head, call.heads)
        one, spent, taken = _heads(call, rows, range(head, head + heads))
        seconds, held = seconds + spent, max(held, taken)
        worst = worse(worst, replace(one, place=(one.place[0] + head, *one.place[1:])))
    assert worst is not None
    looked = f"{rows} rows of each of {call.heads} heads, the only ones that were computed, "
    looked += f"over all {call.tokens:,} keys" if not call.causal else (
        f"each over the keys up to its own place of {call.tokens:,}"
    )  # fmt: skip
    if group < call.heads:
        looked += f"; {group} of {call.heads} heads at once"
    return Reached(worst, looked, seconds, held)


def _heads(call: Call, rows: int, heads: range) -> tuple[Worst, float, int]:
    """Some heads: draw them, run the kernel, compare.  Causal, both ends are among the rows."""
    x = arrays(call, rows, heads)
    if not call.causal:
        output, seconds = timed(lambda: call.run(*x), call.device)
        bound = call.bound(rows)
        reference = streamed(x.query, x.key, x.value, call.profile, bound)
        residual = keys_judged(*x, output, reference, call.profile, bound)
        worst = against(output, reference, call.profile)
        return with_residual(worst, residual), seconds, x.bytes
    n = call.tokens
    inner = torch.randint(n, (max(0, rows - 2),), generator=generator(call, 14))
    places = torch.cat((torch.tensor([0, n - 1])[:rows], inner)).sort().values
    output, seconds = timed(lambda: call.rows(*x, places), call.device)
    last = places.to(call.device)
    reference = streamed(x.query, x.key, x.value, call.profile, call.bound(1), last)
    residual = keys_judged(*x, output, reference, call.profile, call.bound(1), last)
    one = against(output, reference, call.profile)
    place = (one.place[0], int(places[one.place[1]]), one.place[2])
    return with_residual(replace(one, place=place), residual), seconds, x.bytes
