"""How the time of a check grows with the number of tokens: a log-log table."""

from __future__ import annotations

import math
from collections.abc import Callable
from time import perf_counter

import torch
from rich.table import Table

from attnproof.numeric.at_scale.call import Call, arrays, clustered, kernel_named
from attnproof.numeric.at_scale.clusters import CLUSTERS, check_every_row
from attnproof.numeric.at_scale.sampled import sampled

TOKENS = tuple(4**k for k in range(4, 9))
QUADRATIC = 1 << 14  # beyond it one forward takes minutes
ROUNDS = 3


def growth() -> Table:
    """Seconds at each length, and the slope of log seconds over log n from the last two."""
    ways: dict[str, Callable[[int], Callable[[], object] | None]] = {
        "one forward": _forward,
        "64 rows against float64": _rows,
        "every row, clustered keys": _clustered,
    }
    lengths = [f"n = {n:,}" for n in TOKENS]
    table = Table(
        "seconds, one head of 64, float32", *lengths, "slope", title="Growth with n (log-log)"
    )
    for name, made in ways.items():
        times = [_least(made(n)) for n in TOKENS]
        known = [(n, t) for n, t in zip(TOKENS, times, strict=True) if t is not None]
        (n, t), (more, later) = known[-2:]
        slope = math.log(later / t) / math.log(more / n)
        told = ["" if t is None else f"{t:.4f}" for t in times]
        table.add_row(name, *told, f"{slope:.2f}")
    return table


def _least(work: Callable[[], object] | None) -> float | None:
    if work is None:
        return None
    times = []
    for _ in range(ROUNDS):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return min(times)


def _call(n: int) -> Call:
    return Call(kernel_named("auto", torch.device("cpu")), tokens=n, heads=1)


def _forward(n: int) -> Callable[[], object] | None:
    call = _call(n)
    x = arrays(call)
    return (lambda: call.run(*x)) if n <= QUADRATIC else None


def _rows(n: int) -> Callable[[], object]:
    """The check alone: its forward is counted above."""
    call = _call(n)
    x = arrays(call)
    output = call.run(*x) if n <= QUADRATIC else x.query
    return lambda: sampled(call, x, output)


def _clustered(n: int) -> Callable[[], object]:
    call = _call(n)
    clusters = clustered(call, min(CLUSTERS, n))
    output = call.run(*clusters.arrays) if n <= QUADRATIC else clusters.arrays.query
    return lambda: check_every_row(call, clusters, output)
