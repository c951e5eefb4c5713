"""Time an equivariance check, in units of one forward pass of the kernel that it checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from time import perf_counter, process_time
from typing import Any

import torch
from rich.table import Table
from torch import Tensor

from attnproof.numeric.at_scale.call import Call, arrays, generator, kernel_named
from attnproof.numeric.at_scale.comparison import Worst
from attnproof.numeric.at_scale.sampled_rows import ROWS, check_rows, places
from attnproof.numeric.devices import chosen, dtype_named, synchronize
from attnproof.numeric.implementations import implementations_named
from attnproof.numeric.sample import draw
from attnproof.numeric.scale import scale_named
from attnproof.numeric.torch_reading import TorchReading
from attnproof.symbolic.claim import Claim, equal
from attnproof.symbolic.givens import permutation, real, sizes
from attnproof.symbolic.statement import Statement
from attnproof.symbolic.terms import Term
from attnproof.theorems.definitions.attention import attention

CHUNK = 1 << 16


@dataclass(frozen=True)
class InForwards:
    """Seconds of one forward pass and of one check, each the minimum over rounds, and their ratio.

    ``cpu_ratio`` is the same ratio in processor time, which depends less on the load of the
    machine; it is meaningless on a GPU, and NaN if a forward pass is below the clock's resolution.
    """

    forward: float
    check: float
    ratio: float
    cpu_ratio: float


def in_forwards(
    forward: Callable[[], object], check: Callable[[], object], device: torch.device, rounds: int
) -> InForwards:
    """Time both in alternating order in one process, after one check that builds tables."""
    works, times = (forward, check), {forward: list[tuple[float, float]](), check: []}
    with torch.no_grad():
        check()
        for k in range(rounds):
            for work in works if k % 2 == 0 else reversed(works):
                times[work].append(_timed(work, device))
    (wall, cpu), (check_wall, check_cpu) = (
        map(min, zip(*times[work], strict=True)) for work in works
    )
    return InForwards(wall, check_wall, check_wall / wall, check_cpu / cpu if cpu else nan)


def _timed(work: Callable[[], object], device: torch.device) -> tuple[float, float]:
    """Return wall time and processor time in seconds."""
    synchronize(device)
    wall, cpu = perf_counter(), process_time()
    work()
    synchronize(device)
    return perf_counter() - wall, process_time() - cpu


def equivariance_of(attention: Callable[..., Any]) -> Statement:
    """Att(τQ, σK, σV) = τ Att(Q, K, V) for H heads, for this definition of attention."""
    n, (heads, width) = sizes("n", "tokens")[0], (*sizes("H", "heads"), *sizes("ell", "features"))
    shape = (heads, n, width)
    givens = {
        "Q": real(*shape),
        "K": real(*shape),
        "V": real(*shape),
        "tau": permutation(n),
        "sigma": permutation(n),
    }
    Q, K, V, tau, sigma = (given.named(name) for name, given in givens.items())
    moved, plain = attention(Q[:, tau], K[:, sigma], V[:, sigma]), attention(Q, K, V)
    claim: Claim = equal(moved, plain[:, tau])
    return Statement(givens, {"": claim})


def benchmark_equivariance(
    attention: Callable[..., Any],
    *,
    tokens: int = 4_096,
    heads: int = 8,
    width: int = 64,
    dtype: str = "float32",
    device: str = "auto",
    implementation: str = "scaled_dot_product_attention (flash)",
    rounds: int = 5,
) -> tuple[InForwards, float]:
    """Return the cost of one check relative to one forward pass, and the largest difference.

    The check is the compute part of ``measure``: both sides of the statement from their terms,
    including permutations, and the largest difference of all entries in float64.  The lower bound
    is two forward passes.
    """
    where, number = chosen(device), dtype_named(dtype)
    statement = equivariance_of(attention)
    claim = statement.claims[""]
    lengths = {"n": tokens, "H": heads, "ell": width}
    sample = draw(statement, lengths, scale_named("default"), 0)
    values = sample.in_dtype(number, where)
    (code,) = implementations_named([implementation], where)
    assert claim.right is not None
    inner = claim.right.args[0]

    def read(*sides: Term | None) -> list[Tensor]:
        reading = TorchReading(lengths, values, number, where, code.replaced)
        with torch.no_grad():
            return [reading(side) for side in sides if side is not None]

    def check() -> float:
        left, right = read(claim.left, claim.right)
        return largest_difference(left, right)

    difference = check()
    return in_forwards(lambda: read(inner), check, where, rounds), difference


def benchmark_rows(call: Call, rounds: int = 5) -> tuple[InForwards, Worst]:
    """Return the cost of a check by sampled rows in forward passes, and the worst of these rows.

    The kernel runs once, on permuted queries, keys and values; its rows are compared with float64
    on the inputs in their own order.
    """
    x = arrays(call)
    order, keys = (torch.randperm(call.tokens, generator=generator(call, k)) for k in (20, 21))

    def check() -> Worst:
        moved = call.run(x.query[:, order], x.key[:, keys], x.value[:, keys])
        return check_rows(call, x, moved[:, order.argsort()], places(call))

    worst = check()
    return in_forwards(lambda: call.run(*x), check, call.device, rounds), worst


def largest_difference(left: Tensor, right: Tensor) -> float:
    """max |left − right| in float64, in chunks that fit into the cache."""
    worst = torch.zeros((), dtype=torch.float64, device=left.device)
    pieces = (torch.split(side.reshape(-1), CHUNK) for side in (left, right))
    for a, b in zip(*pieces, strict=True):
        worst = torch.maximum(worst, (a.double() - b.double()).abs().max())
    return float(worst)


def equivariance_cost() -> Table:
    """Return the cost of a check, permutations and comparison included, in two ways.

    Comparing every row takes at least two forwards, sampled rows in float64 at least one.
    """
    table = Table(
        "implementation",
        "dtype",
        "tokens",
        "heads",
        "compared",
        "forward s",
        "check s",
        "forwards",
        title="One equivariance check",
    )
    device = chosen("auto")
    for dtype in ("float32", "bfloat16"):
        kernel = kernel_named("flash", device)
        call = Call(kernel, tokens=4_096, dtype=dtype_named(dtype), device=device)
        ways = {
            "every row": benchmark_equivariance(attention, dtype=dtype, implementation=kernel.name),
            f"{ROWS} rows": benchmark_rows(call),
        }
        for compared, (cost, _) in ways.items():
            times = (f"{cost.forward:.3f}", f"{cost.check:.3f}", f"{cost.ratio:.2f}")
            table.add_row(kernel.name, dtype, f"{call.tokens:,}", str(call.heads), compared, *times)
    return table
