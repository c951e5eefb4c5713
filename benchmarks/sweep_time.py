"""Sweeps: the same cells with one worker and with two, and what sharing draws saves.

``python -m benchmarks.sweep_time`` prints the table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter

from rich.console import Console
from rich.table import Table

from attnproof.catalogue import load_catalogue
from attnproof.numeric.measurement import Measurement
from attnproof.sweeping.engines import Engine
from attnproof.sweeping.sweep import Asked, planned, sweep
from attnproof.sweeping.work import Cell, Grid, Shared
from attnproof.symbolic.statement import Statement

NAMES = ("attention-ignores-the-order-of-pairs", "self-attention-is-equivariant")
GRID = Grid(("float32", "bfloat16"), ("small",), (256,), seeds=tuple(range(8)))


def apart(statement: Statement, cell: Cell) -> Sequence[Measurement]:
    """A cell that shares nothing with any other."""
    return Shared()(statement, cell)


def two_workers(rounds: int = 3, grid: Grid = GRID) -> Table:
    """Wall seconds with one worker and with two, in turn, and with cells that share nothing."""
    asked = Asked(grid)
    plan = planned(load_catalogue().having(NAMES).entries, asked)
    one, two = (replace(asked, engine=Engine(jobs=jobs)) for jobs in (1, 2))
    ways: dict[str, Callable[[], object]] = {
        "one worker": lambda: sweep(plan, one),
        "two workers": lambda: sweep(plan, two),
        "two workers, nothing shared": lambda: sweep(plan, two, measure=apart),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            start = perf_counter()
            way()
            times[name].append(perf_counter() - start)
    least = {name: min(found) for name, found in times.items()}
    table = Table("way", "min s", "over two workers", title=f"A sweep of {len(plan.cells)} cells")
    for name, seconds in least.items():
        table.add_row(name, f"{seconds:.2f}", f"{seconds / least['two workers']:.2f} times")
    return table


if __name__ == "__main__":
    Console().print(two_workers())
