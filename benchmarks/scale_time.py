"""Checks at scale, and exact ones, in forwards of the kernel at that size."""

from __future__ import annotations

from rich.table import Table

from attnproof.numeric.at_scale.call import Call, kernel_named
from attnproof.numeric.at_scale.methods import cost_at_scale
from attnproof.numeric.devices import chosen, dtype_named
from attnproof.numeric.residues.exact import cost

__all__ = ["at_scale_cost", "exact_cost"]

WAYS = ("sampled", "clustered")


def at_scale_cost() -> Table:
    """One forward of 16,384 tokens and 8 heads, alone and with its check."""
    device = chosen("auto")
    table = Table(
        "way", "dtype", "causal", "forward s", "with the check s", "forwards", "in processor time",
        title="Checks at scale, 16,384 tokens, 8 heads of 64",
    )  # fmt: skip
    for causal in (False, True):
        for dtype in ("float32", "bfloat16"):
            call = Call(
                kernel_named("auto", device), dtype=dtype_named(dtype), device=device,
                causal=causal,
            )  # fmt: skip
            for way in WAYS:
                one = cost_at_scale(call, way, rounds=3)
                table.add_row(
                    way, dtype, "yes" if causal else "no", f"{one.forward_seconds:.2f}",
                    f"{one.check_seconds:.2f}", f"{one.ratio:.3f}", f"{one.cpu_ratio:.3f}",
                )  # fmt: skip
    return table


def exact_cost() -> Table:
    """One side of the identity in finite fields, every row, beside one float32 forward."""
    table = Table(
        "tokens", "heads exact", "heads of the forward", "forward s", "one side s", "forwards",
        title="Exact, heads of 64",
    )  # fmt: skip
    for tokens, heads, beside in ((4_096, 1, 1), (4_096, 1, 8), (4_096, 8, 8)):
        one = cost(tokens, heads, beside, rounds=3)
        table.add_row(
            f"{tokens:,}", str(heads), str(beside), f"{one.forward:.3f}", f"{one.side:.3f}",
            f"{one.ratio:.2f}",
        )  # fmt: skip
    return table
