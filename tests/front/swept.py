"""Small sweeps, and numbers that are set instead of measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from attnproof.numeric.results import MeasuredEvidence
from attnproof.sweeping.cells import Cell, Grid
from attnproof.sweeping.sweep import Engine, Plan, SweepRequest, planned
from attnproof.symbolic.statement import Statement
from attnproof.theorem_runs.catalogue import load_catalogue
from tests.front.outputs import MEASURED

SOFTMAX = "softmax-commutes-with-permutations"
ATTENTION = "attention-ignores-the-order-of-pairs"
THREADS = Engine("threading")


def plan_of(asked: SweepRequest, *names: str) -> Plan:
    return planned(load_catalogue().with_ids(names or [SOFTMAX]).entries, asked)


def held(statement: Statement, cell: Cell) -> Sequence[MeasuredEvidence]:
    """Stands in for the numeric side."""
    del statement
    own: dict[str, Any] = {
        "implementation": cell.implementation,
        "dtype": cell.dtype,
        "seed": cell.seed,
    }
    return [replace(MEASURED, **own)]


def asked(*seeds: int, **more: Any) -> SweepRequest:
    grid = Grid(("float32",), seeds=seeds or (0, 1, 2), devices=("cpu",))
    return SweepRequest(grid, **{"engine": THREADS, **more})
