"""Calls of code that takes a start, or a whole grid, at positions that are given one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import torch
from torch import Tensor

Call = Callable[[Tensor, Tensor], Tensor]


def runs_of(row: Tensor) -> Iterator[tuple[int, int]]:
    """Where runs of positions that go up by 1 begin and end: (T,) -> pairs.

    >>> list(runs_of(torch.tensor([3, 4, 9])))
    [(0, 2), (2, 3)]
    """
    breaks = [0, *((row.diff() != 1).nonzero().flatten() + 1).tolist(), len(row)]
    yield from ((a, b) for a, b in pairwise(breaks) if b > a)


def in_runs(rotate_run: Callable[[Tensor, int], Tensor]) -> Call:
    """Code that rotates (B, H, T, D) from a start on, called once for each run of positions."""

    def rotate(x: Tensor, positions: Tensor) -> Tensor:
        rows = []
        for one, row in zip(x, positions, strict=True):
            parts = [rotate_run(one[None, :, a:b], int(row[a])) for a, b in runs_of(row)]
            rows.append(torch.cat(parts, -2))
        return torch.cat(rows)

    return rotate


def at_places(rotate: Callable[[Tensor, Tensor], Tensor]) -> Call:
    """Code that rotates one row (1, H, T, D) at positions (T,) or (T, axes), for every row."""

    def rows(x: Tensor, positions: Tensor) -> Tensor:
        return torch.cat([rotate(x[b : b + 1], positions[b]) for b in range(len(x))])

    return rows
