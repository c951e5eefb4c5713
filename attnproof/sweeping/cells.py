"""The cells of a sweep, and the batches they are sent to workers in.

Cells that differ only in implementation and dtype share draws and exact values: they form a
group, which one worker measures.  A batch is some groups of one statement, so that a worker
builds the statement once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from math import ceil

from ..catalogue import Source
from .store import Key

PARTS = 8
"""Batches for each worker: fewer, and the last worker is waited for."""
LARGEST = 64
"""Cells in a batch: what is done again, at most, where a worker of another machine dies."""


@dataclass(frozen=True)
class Claimed:
    """A statement of a sweep: the file it stands in, and which of its two it is."""

    source: Source
    control: bool
    expected: str
    digest: str

    @property
    def name(self) -> str:
        """The theorem's id, with ``#control`` for its negative control."""
        return self.source.id + "#control" * self.control


@dataclass(frozen=True)
class Cell:
    """One statement in one implementation, dtype, size, design, seed and device."""

    claimed: Claimed
    scale: str
    tokens: int | None
    design: str
    seed: int
    device: str
    implementation: str
    dtype: str

    @property
    def group(self) -> tuple[object, ...]:
        """What cells have in common that share draws and exact values."""
        return self.claimed, self.scale, self.tokens, self.design, self.seed, self.device


@dataclass(frozen=True)
class Grid:
    """Everything that a statement is measured in, but the implementations, which depend on it."""

    dtypes: tuple[str, ...]
    scales: tuple[str, ...] = ("small",)
    tokens: tuple[int | None, ...] = (None,)
    designs: tuple[str, ...] = ("normal",)
    seeds: tuple[int, ...] = (0,)
    devices: tuple[str, ...] = ("cpu",)


@dataclass(frozen=True)
class Batch:
    """Cells of one statement, with the keys they are kept under, group by group."""

    claimed: Claimed
    cells: tuple[tuple[Cell, Key], ...]


def cells_of(claimed: Claimed, grid: Grid, implementations: Sequence[str]) -> Iterator[Cell]:
    """The cells of a statement, those of one group together."""
    sizes = product(grid.scales, grid.tokens, grid.designs, grid.seeds, grid.devices)
    for scale, tokens, design, seed, device in sizes:
        for dtype, implementation in product(grid.dtypes, implementations):
            yield Cell(claimed, scale, tokens, design, seed, device, implementation, dtype)


def batches(cells: Sequence[tuple[Cell, Key]], jobs: int) -> list[Batch]:
    """The cells in batches of whole groups, enough of them for every worker."""
    wanted = min(LARGEST, max(1, ceil(len(cells) / (jobs * PARTS))))
    found: list[Batch] = []
    for claimed, own in groupby(cells, lambda pair: pair[0].claimed):
        waiting: list[tuple[Cell, Key]] = []
        for _, group in groupby(own, lambda pair: pair[0].group):
            waiting += group
            if len(waiting) >= wanted:
                found.append(Batch(claimed, tuple(waiting)))
                waiting = []
        if waiting:
            found.append(Batch(claimed, tuple(waiting)))
    return found
