"""Checks at scale, and exact ones, in forwards of the kernel at that size."""

from __future__ import annotations

from functools import partial

import torch
from rich.table import Table

from attnproof.numeric.at_scale.call import Call, arrays, clustered, kernel_named
from attnproof.numeric.at_scale.clusters import CLUSTERS, check_every_row
from attnproof.numeric.at_scale.methods import ON_ONE_FORWARD
from attnproof.numeric.devices import chosen, dtype_named
from attnproof.numeric.residues.exact import checked
from attnproof.numeric.residues.towers import tower
from attnproof.symbolic.claim import equal
from attnproof.symbolic.givens import permutation, real, sizes
from attnproof.symbolic.statement import Statement
from attnproof.theorems.definitions.attention import attention
from benchmarks.numeric_time import InForwards, in_forwards

FEATURES = 64
WAYS = ("sampled", "clustered")


def at_scale_cost() -> Table:
    """One forward of 16,384 tokens and 8 heads, alone and with its check."""
    device = chosen("auto")
    table = Table(
        "way",
        "dtype",
        "causal",
        "forward s",
        "with the check s",
        "forwards",
        "in processor time",
        title="Checks at scale, 16,384 tokens, 8 heads of 64",
    )
    for causal in (False, True):
        for dtype in ("float32", "bfloat16"):
            call = Call(
                kernel_named("auto", device),
                dtype=dtype_named(dtype),
                device=device,
                causal=causal,
            )
            for way in WAYS:
                one = at_scale(call, way, rounds=3)
                table.add_row(
                    way,
                    dtype,
                    "yes" if causal else "no",
                    f"{one.forward:.2f}",
                    f"{one.check:.2f}",
                    f"{one.ratio:.3f}",
                    f"{one.cpu_ratio:.3f}",
                )
    return table


def at_scale(call: Call, way: str, rounds: int = 5) -> InForwards:
    """One forward, and one forward with its check in a way that has one."""
    if way == "clustered":
        clusters = clustered(call, min(CLUSTERS, call.tokens))
        x = clusters.arrays
        return in_forwards(
            lambda: call.run(*x),
            lambda: check_every_row(call, clusters, call.run(*x)),
            call.device,
            rounds,
        )
    x = arrays(call)
    return in_forwards(
        lambda: call.run(*x),
        lambda: ON_ONE_FORWARD[way](call, x, call.run(*x)),
        call.device,
        rounds,
    )


def pairs(heads: int) -> Statement:
    """Att(Q, K[σ], V[σ]) = Att(Q, K, V), for one head or more."""
    (h,), (n,) = sizes("h", "heads"), sizes("n", "tokens")
    l, d = sizes("l d", "features")
    lead = (h,) if heads > 1 else ()
    givens = {
        "Q": real(*lead, n, l),
        "K": real(*lead, n, l),
        "V": real(*lead, n, d),
        "s": permutation(n),
    }
    Q, K, V, s = (given.named(name) for name, given in givens.items())
    claim = equal(attention(Q, K[..., s, :], V[..., s, :]), attention(Q, K, V))
    return Statement(givens, {"": claim})


def exactly(
    tokens: int = 4_096, heads: int = 1, forward_heads: int = 8, rounds: int = 5
) -> InForwards:
    """One forward in float32, and both sides of the identity with every row of them exact.

    One head of the check against a forward of several is what a sample costs.
    """
    statement = pairs(heads)
    ((says, claim),) = statement.claims.items()
    found = {"n": tokens, "l": FEATURES, "d": FEATURES, "h": heads}
    data = torch.randn(3, 1, forward_heads, tokens, FEATURES)

    def exact() -> None:
        check = checked(statement, says, claim, found, tower(1), 0, 0, rows=tokens)
        if check.status != "held" or check.compared < heads * tokens:
            raise RuntimeError(f"{check.status} after {check.compared} entries: {check.reason}")

    forward = partial(torch.nn.functional.scaled_dot_product_attention, *data)
    return in_forwards(forward, exact, data.device, rounds)


def exact_cost() -> Table:
    """One side of the identity in finite fields, every row, beside one float32 forward."""
    table = Table(
        "tokens",
        "heads exact",
        "heads of the forward",
        "forward s",
        "one side s",
        "forwards",
        title="Exact, heads of 64",
    )
    for tokens, heads, beside in ((4_096, 1, 1), (4_096, 1, 8), (4_096, 8, 8)):
        one = exactly(tokens, heads, beside, rounds=3)
        table.add_row(
            f"{tokens:,}",
            str(heads),
            str(beside),
            f"{one.forward:.3f}",
            f"{one.check / 2:.3f}",
            f"{one.ratio / 2:.2f}",
        )
    return table
