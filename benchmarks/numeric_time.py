"""Numeric time: one equivariance check, in forwards of the kernel it checks."""

from __future__ import annotations

from rich.table import Table

from attnproof.numeric.benchmark import benchmark_equivariance
from attnproof.theorems.definitions.attention import attention

__all__ = ["equivariance_cost"]


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
