"""Dividing the index by the length makes the code of a position depend on the length."""

from attnproof.symbolic import (
    Array,
    Claim,
    at_least,
    differ,
    equal,
    natural,
    positive,
    real,
    sizes,
    theorem,
)  # fmt: skip
from attnproof.theorems.definitions.hypotheses import nothing

n, k = sizes("n k", "tokens")


@theorem(
    "i/(N−1) differs for different lengths N, from position 1 on; and i outgrows every scale",
    given={"i": natural(), "c": positive(), "bound": real()},
    sources=("document 004, min-max normalisation",),
    claims=("R1", "R2"),
    assume=lambda i, c, bound: [at_least(i, bound * c)],
)
def statement(i: Array, c: Array, bound: Array) -> dict[str, Claim]:
    """For lengths n + 1 and n + k + 1, and for a scale c: from c·bound on, i/c is above bound."""
    return {
        "two lengths": differ((i + 1) / n, (i + 1) / (n + k), k * (i + 1) / (n * (n + k))),
        "position 0": equal(0 / n, 0 / (n + k)),
        "no scale is large enough": at_least(i / c, bound, ("", (i - bound * c) / c)),
    }


@statement.twin_of("the position is 0", assume=nothing)
def first_position() -> Claim:
    return differ(0 / n, 0 / (n + k))
