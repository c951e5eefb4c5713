"""Read rotary code again in the calls that others make: token by token, row by row, counted.

What code is declared to be is read off one call: all rows have the same positions, which are far
apart, and only the first head is read.  Code may rotate otherwise where it decodes a token, or is
given the positions 0, 1, 2 and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from ..execution.draw import Draw
from ..execution.rotary_matrices import point, tensor_of
from ..reading.calls import REFUSALS
from ..subjects import Rotary
from .base import Outcome, ProbeFunction

NEAR = 40  # positions that are read again
Rotate = Callable[[Tensor, Tensor], Tensor]


def token_by_token(_: Rotary, rotate: Rotate, x: Tensor, ids: Tensor) -> Tensor:
    """Rotate each token in a call of its own, as where one is decoded."""
    alone = (slice(i, i + 1) for i in range(x.shape[2]))
    return torch.cat([rotate(x[:, :, i].clone(), ids[:, i].clone()) for i in alone], 2)


def row_by_row(_: Rotary, rotate: Rotate, x: Tensor, ids: Tensor) -> Tensor:
    """Rotate each row of the batch in a call of its own."""
    alone = (slice(b, b + 1) for b in range(x.shape[0]))
    return torch.cat([rotate(x[b].clone(), ids[b].clone()) for b in alone])


def counted(subject: Rotary, rotate: Rotate, x: Tensor, ids: Tensor) -> Tensor:
    """Rotate each token as the last of a call with all positions up to its own, if it is one."""
    every = tensor_of(subject, [point(subject, subject.first + p) for p in range(NEAR)], Draw())
    every, found = every.to(ids), []
    for i in range(x.shape[2]):
        places = [n for n in range(NEAR) if bool((ids[:, i] == every[n]).all())]
        before = every[: places[0]] if places else every[:0]
        rows = torch.cat((before.expand(x.shape[0], *before.shape), ids[:, i : i + 1]), 1)
        found.append(rotate(x[:, :, i : i + 1].repeat(1, 1, rows.shape[1], 1), rows)[:, :, -1:])
    return torch.cat(found, 2)


def beside_others(subject: Rotary, rotate: Rotate, x: Tensor, ids: Tensor) -> Tensor:
    """Rotate the tokens in reverse order, in the last head, beside rows with other positions."""
    x, last = x.roll(-1, 1), x.flip(2).roll(-1, 1)
    if subject.shared or x.shape[0] == 1:
        return rotate(last, ids.flip(1)).flip(2).roll(1, 1)
    rows, at = (torch.stack(pair, 1).flatten(0, 1) for pair in ((last, x), (ids.flip(1), ids)))
    return rotate(rows, at)[::2].flip(2).roll(1, 1)


CALLS: Mapping[str, Callable[[Rotary, Rotate, Tensor, Tensor], Tensor]] = {
    "with one token in each call": token_by_token,
    "with one row in each call": row_by_row,
    "with the positions from the first one on": counted,
    "with the tokens in reverse order, in the last head, beside other rows": beside_others,
}


def in_other_calls(look: ProbeFunction) -> ProbeFunction:
    """Return the probe of what is read off rotary code, which reads it again in other calls."""

    @wraps(look)
    def looked(subject: Rotary, draw: Draw) -> Outcome:
        seen = look(subject, draw)
        if seen.witness is not None or seen.doubtful or seen.skipped:
            return seen
        most = min(subject.most, subject.first + NEAR)
        for words, way in CALLS.items():
            try:
                other = look(replace(subject, **_called(subject, way), most=most), draw)
            except REFUSALS:  # it may take no such calls
                continue
            if other.witness is not None:
                return replace(other, why=f"called {words}: {other.why}")
        return seen

    return looked


def _called(
    subject: Rotary, way: Callable[[Rotary, Rotate, Tensor, Tensor], Tensor]
) -> dict[str, Any]:
    """Return what rotates queries, and keys if that is other code, called in another way."""

    def through(rotate: Rotate) -> Rotate:
        return lambda x, ids: way(subject, rotate, x, ids)

    key = None if subject.key is None else through(subject.key)
    return {"rotate": through(subject.rotate), "key": key}
