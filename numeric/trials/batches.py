"""What is tried: all cases in batches, each of them one draw, fit for a process of its own."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from ..designs import DESIGNS
from ..devices import DTYPES
from .faults import FAULTS
from .honest import honest
from .judging import Case, fault_cases, honest_cases
from .statements import TRIALS

__all__ = ["Batch", "fault_batches", "honest_batches", "programs"]

LONG_SEEDS = 3
"""Draws of what takes seconds."""


@dataclass(frozen=True)
class Batch:
    """One draw: a trial with all correct programs, or one planted fault; in several dtypes."""

    kind: Literal["honest", "fault"]
    name: str
    design: str
    seed: int
    dtypes: tuple[str, ...]
    device: str

    def cases(self) -> list[Case]:
        """Try them."""
        design, device = DESIGNS[self.design], torch.device(self.device)
        dtypes = [DTYPES[name] for name in self.dtypes]
        if self.kind == "honest":
            return honest_cases(self.name, design, self.seed, dtypes, device)
        return fault_cases(FAULTS[self.name], design, self.seed, dtypes, device)


def programs(device: str) -> dict[str, int]:
    """How many correct programs each trial has."""
    return {name: len(honest(name, torch.device(device))) for name in TRIALS}


def honest_batches(
    cases: int, designs: Sequence[str], dtypes: Sequence[str], device: str, seed: int
) -> list[Batch]:
    """So many draws that the correct programs make at least so many cases.

    Each seed goes through all trials and designs; of the last, a random part.
    """
    size = {name: count * len(dtypes) for name, count in programs(device).items()}
    found: list[Batch] = []
    made = 0
    while made < cases:
        batches = [
            Batch("honest", name, design, seed, tuple(dtypes), device)
            for name in TRIALS for design in designs
        ]  # fmt: skip
        random.Random(seed).shuffle(batches)
        for batch in batches:
            if made < cases:
                found.append(batch)
                made += size[batch.name]
        seed += 1
    return found


def fault_batches(
    seeds: int, designs: Sequence[str], dtypes: Sequence[str], device: str, seed: int
) -> list[Batch]:
    """Every fault in every design, from so many seeds.

    One key of very many costs a hundred times as much: in the first design only, and few seeds.
    """
    return [
        Batch("fault", fault.name, design, seed + k, tuple(dtypes), device)
        for fault in FAULTS.values()
        for k in range(min(seeds, LONG_SEEDS) if fault.long else seeds)
        for design in (designs[:1] if fault.long else designs)
    ]
