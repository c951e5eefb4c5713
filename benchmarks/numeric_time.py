"""Numeric time: one equivariance check, in forwards of the kernel it checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import Any

import torch
from rich.table import Table
from torch import Tensor

from attnproof.numeric.devices import chosen, dtype_named
from attnproof.numeric.implementations import named
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
class CheckCost:
    """Seconds of one forward and of one check, each the least of the rounds, and their ratio.

    ``cpu_ratio`` is the same ratio in processor time, which a busy machine disturbs less; it
    says nothing on a GPU.
    """

    tokens: int
    heads: int
    width: int
    dtype: str
    implementation: str
    forward_seconds: float
    check_seconds: float
    ratio: float
    cpu_ratio: float
    largest_difference: float

    def __str__(self) -> str:
        return (
            f"{self.implementation}, {self.heads} heads of {self.width}, n = {self.tokens:,}, "
            f"{self.dtype}: one forward {self.forward_seconds:.3f} s, one check "
            f"{self.check_seconds:.3f} s = {self.ratio:.2f} forwards (the floor is 2; in processor "
            f"time {self.cpu_ratio:.2f})"
        )


def equivariance_of(attention: Callable[..., Any]) -> Statement:
    """Att(τQ, σK, σV) = τ Att(Q, K, V) for H heads, from the given definition of attention."""
    n, (heads, width) = sizes("n", "tokens")[0], (*sizes("H", "heads"), *sizes("ell", "features"))
    shape = (heads, n, width)
    givens = {
        "Q": real(*shape), "K": real(*shape), "V": real(*shape),
        "tau": permutation(n), "sigma": permutation(n),
    }  # fmt: skip
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
) -> CheckCost:
    """The time of one check over the time of one forward, rounds taken in turn.

    The check is the compute part of ``measure``: both sides of the statement from their term,
    permutations included, and the largest difference of all entries, taken in float64.
    Two forwards are the floor.
    """
    where, number = chosen(device), dtype_named(dtype)
    statement = equivariance_of(attention)
    claim = statement.claims[""]
    lengths = {"n": tokens, "H": heads, "ell": width}
    sample = draw(statement, lengths, scale_named("default"), 0)
    values = sample.in_dtype(number, where)
    (code,) = named([implementation], where)
    assert claim.right is not None
    inner = claim.right.args[0]

    def read(*sides: Term | None) -> list[Tensor]:
        reading = TorchReading(lengths, values, number, where, code.replaced)
        with torch.no_grad():
            found = [reading(side) for side in sides if side is not None]
        if where.type == "cuda":
            torch.cuda.synchronize()
        return found

    def check() -> float:
        left, right = read(claim.left, claim.right)
        return largest_difference(left, right)

    difference = check()
    forward: list[tuple[float, float]] = []
    checked: list[tuple[float, float]] = []
    for _ in range(rounds):
        forward.append(_timed(lambda: read(inner)))
        checked.append(_timed(check))
    (wall, cpu), (check_wall, check_cpu) = (
        (min(w for w, _ in times), min(c for _, c in times)) for times in (forward, checked)
    )
    return CheckCost(
        tokens, heads, width, dtype, code.name, wall, check_wall, check_wall / wall,
        check_cpu / cpu, difference,
    )  # fmt: skip


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    """Wall seconds and processor seconds."""
    wall, cpu = perf_counter(), process_time()
    work()
    return perf_counter() - wall, process_time() - cpu


def largest_difference(left: Tensor, right: Tensor) -> float:
    """max |left − right| in float64, in chunks that stay in the cache."""
    worst = torch.zeros((), dtype=torch.float64, device=left.device)
    pieces = (torch.split(side.reshape(-1), CHUNK) for side in (left, right))
    for a, b in zip(*pieces, strict=True):
        worst = torch.maximum(worst, (a.double() - b.double()).abs().max())
    return float(worst)


def equivariance_cost() -> Table:
    """Both sides, the permutations and the comparison; two forwards are the floor."""
    table = Table(
        "implementation", "dtype", "tokens", "heads", "forward s", "check s", "forwards",
        title="One equivariance check",
    )  # fmt: skip
    for dtype in ("float32", "bfloat16"):
        cost = benchmark_equivariance(attention, dtype=dtype)
        table.add_row(
            cost.implementation,
            cost.dtype,
            f"{cost.tokens:,}",
            str(cost.heads),
            f"{cost.forward_seconds:.3f}",
            f"{cost.check_seconds:.3f}",
            f"{cost.ratio:.2f}",
        )
    return table
