"""Time commands: start-up and checks in fresh processes, and a sweep with one worker and with two.

For checks this is user time of the command and its child processes, which depends less on the load
of the machine than wall time.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from rich.table import Table

from attnproof.numeric.results import MeasuredEvidence
from attnproof.sweeping.cells import Cell, Grid, Shared
from attnproof.sweeping.sweep import Engine, SweepRequest, planned, sweep
from attnproof.symbolic.statement import Statement
from attnproof.theorem_runs.catalogue import load_catalogue
from benchmarks.reference_programs import SOURCE

LLAMA = "transformers.models.llama.modeling_llama"
TARGETS = {
    "attention of q, k, v": [f"{SOURCE}::causal_attention", "--declare", "attention:causal"],
    "rotary function": [f"{SOURCE}::rotate_halves"],
    "layer of one head": [f"{SOURCE}::one_head"],
    "apply_rotary_pos_emb": [f"{LLAMA}::apply_rotary_pos_emb"],
    "LlamaAttention": [f"{LLAMA}::LlamaAttention"],
}
NAMES = ("attention-ignores-the-order-of-pairs", "self-attention-is-equivariant")
GRID = Grid(("float32", "bfloat16"), ("small",), (256,), seeds=tuple(range(8)))


def installed() -> dict[str, str]:
    """Return an environment in which bytecode is cached, as for an installed package."""
    return {name: x for name, x in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def seconds(work: Callable[[], object]) -> float:
    """Return the wall time of a call in seconds."""
    start = perf_counter()
    work()
    return perf_counter() - start


def start_up(rounds: int = 5) -> Table:
    """Return wall times of processes: minimum, median, maximum, and relative to `python -c`."""

    def times(*words: str) -> list[float]:
        command = [sys.executable, *words]
        took = [
            seconds(
                lambda: subprocess.run(command, check=True, capture_output=True, env=installed())
            )
            for _ in range(rounds + 1)
        ]
        return took[1:]  # the first may compile modules

    table = Table("command", "min s", "median s", "max s", "over python -c ''", title="Start-up")
    empty = statistics.median(times("-c", ""))
    for word in ("--help", "list"):
        found = times("-m", "attnproof", word)
        told = [f"{value:.2f}" for value in (min(found), statistics.median(found), max(found))]
        table.add_row(f"attnproof {word}", *told, f"{statistics.median(found) / empty:.0f} times")
    return table


def check_time(rounds: int = 3, targets: dict[str, list[str]] | None = None) -> Table:
    """Return user times of whole checks: the minimum, and the excess over `import torch`."""
    table = Table("check of", "user s", "beyond import torch", "from the store", title="Checks")
    torch = _least([sys.executable, "-c", "import torch"], rounds)
    table.add_row("(import torch)", f"{torch:.2f}", "", "")
    with tempfile.TemporaryDirectory() as folder:
        for name, words in (TARGETS if targets is None else targets).items():
            store = ["--store", str(Path(folder) / "store.sqlite")]
            command = [sys.executable, "-m", "attnproof", "check", *words, *store]
            whole = _least([*command, "--fresh"], rounds)
            again = _least(command, rounds)
            table.add_row(name, f"{whole:.2f}", f"{whole - torch:.2f}", f"{again:.2f}")
    return table


def _least(command: list[str], rounds: int) -> float:
    """Return the minimum over several rounds, of which the first may compile modules."""
    return min(_user(command) for _ in range(rounds))


def _user(command: list[str]) -> float:
    """Return the user time of a process and its children; exit code 1 (broken laws) is allowed."""
    before = os.times().children_user
    done = subprocess.run(command, check=False, capture_output=True, env=installed())
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr.decode(errors="replace"))
    return os.times().children_user - before


def apart(statement: Statement, cell: Cell) -> Sequence[MeasuredEvidence]:
    """Measure a cell without sharing anything with other cells."""
    return Shared()(statement, cell)


def two_workers(rounds: int = 3, grid: Grid = GRID) -> Table:
    """Return wall times with one worker, with two, and with two without sharing between cells."""
    asked = SweepRequest(grid)
    plan = planned(load_catalogue().with_ids(NAMES).entries, asked)
    one, two = (replace(asked, engine=Engine(jobs=jobs)) for jobs in (1, 2))
    ways: dict[str, Callable[[], object]] = {
        "one worker": lambda: sweep(plan, one),
        "two workers": lambda: sweep(plan, two),
        "two workers, nothing shared": lambda: sweep(plan, two, measure=apart),
    }
    times = [{name: seconds(way) for name, way in ways.items()} for _ in range(rounds)]
    least = {name: min(found[name] for found in times) for name in ways}
    table = Table("way", "min s", "over two workers", title=f"A sweep of {len(plan.cells)} cells")
    for name, took in least.items():
        table.add_row(name, f"{took:.2f}", f"{took / least['two workers']:.2f} times")
    return table
