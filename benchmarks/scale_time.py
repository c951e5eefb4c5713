"""Time checks at scale and exact checks, in units of one forward pass, and the growth of time."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
from rich.table import Table

from attnproof.numeric.at_scale.call import Call, arrays, clustered, kernel_named
from attnproof.numeric.at_scale.clusters import CLUSTERS, check_every_row
from attnproof.numeric.at_scale.methods import ON_ONE_FORWARD
from attnproof.numeric.at_scale.sampled_rows import sampled
from attnproof.numeric.devices import chosen, dtype_named
from attnproof.numeric.residues.exact import check_equation
from attnproof.numeric.residues.towers import tower
from attnproof.symbolic.claim import equal
from attnproof.symbolic.givens import permutation, real, sizes
from attnproof.symbolic.statement import Statement
from attnproof.theorems.definitions.attention import attention
from benchmarks.commands_time import seconds
from benchmarks.numeric_time import InForwards, in_forwards

FEATURES = 64
WAYS = ("sampled", "clustered")
TOKENS = tuple(4**k for k in range(4, 9))
QUADRATIC = 1 << 14  # beyond it one forward takes minutes
ROUNDS = 3


def at_scale_cost() -> Table:
    """Time one forward pass of 16,384 tokens and 8 heads, alone and with its check."""
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
    """Time one forward pass, alone and with its check by this method."""
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
    """Return the statement Att(Q, K[σ], V[σ]) = Att(Q, K, V), for one or more heads."""
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
    """Time one forward pass in float32, and an exact check of every row of both sides.

    A check of one head against a forward pass of several is the cost of a sample.
    """
    statement = pairs(heads)
    ((says, claim),) = statement.claims.items()
    found = {"n": tokens, "l": FEATURES, "d": FEATURES, "h": heads}
    data = torch.randn(3, 1, forward_heads, tokens, FEATURES)

    def exact() -> None:
        check = check_equation(statement, says, claim, found, tower(1), 0, 0, rows=tokens)
        if check.status != "held" or check.compared < heads * tokens:
            raise RuntimeError(f"{check.status} after {check.compared} entries: {check.reason}")

    forward = partial(torch.nn.functional.scaled_dot_product_attention, *data)
    return in_forwards(forward, exact, data.device, rounds)


def exact_cost() -> Table:
    """Compare one side of the identity in finite fields, all rows, with a float32 forward pass."""
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


def growth() -> Table:
    """Return the time at each length, and its log-log slope from the last two lengths."""
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
    return None if work is None else min(seconds(work) for _ in range(ROUNDS))


def _call(n: int) -> Call:
    return Call(kernel_named("auto", torch.device("cpu")), tokens=n, heads=1)


def _forward(n: int) -> Callable[[], object] | None:
    call = _call(n)
    x = arrays(call)
    return (lambda: call.run(*x)) if n <= QUADRATIC else None


def _rows(n: int) -> Callable[[], object]:
    """Return the check alone: its forward pass is timed separately."""
    call = _call(n)
    x = arrays(call)
    output = call.run(*x) if n <= QUADRATIC else x.query
    return lambda: sampled(call, x, output)


def _clustered(n: int) -> Callable[[], object]:
    call = _call(n)
    clusters = clustered(call, min(CLUSTERS, n))
    output = call.run(*clusters.arrays) if n <= QUADRATIC else clusters.arrays.query
    return lambda: check_every_row(call, clusters, output)
