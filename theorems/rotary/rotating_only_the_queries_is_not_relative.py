"""Rotating the queries alone gives no relative encoding."""

from attnproof.symbolic import (
    Array,
    Claim,
    equal,
    frequencies,
    positions,
    real,
    sizes,
    theorem,
)  # fmt: skip
from attnproof.theorems.definitions.rotary import rotate

r, n = sizes("r n", "tokens")
(B,) = sizes("B", "blocks")


@theorem(
    "Rotating only the queries keeps the relative property",
    given={
        "Q": real(r, 2 * B), "K": real(n, 2 * B), "u": positions(r), "v": positions(n),
        "s": positions(), "omega": frequencies(B),
    },
    expected="refuted",
    sources=("Su et al. 2021 (RoFormer), eq. 16 needs both",),
)  # fmt: skip
def statement(Q: Array, K: Array, u: Array, s: Array, omega: Array) -> Claim:
    """False: a common shift s of all positions turns the queries and leaves the keys."""
    return equal(rotate(Q, u + s, omega) @ K.mT, rotate(Q, u, omega) @ K.mT)


@statement.twin_of("queries and keys are rotated")
def both(Q: Array, K: Array, u: Array, v: Array, s: Array, omega: Array) -> Claim:
    return equal(
        rotate(Q, u + s, omega) @ rotate(K, v + s, omega).mT,
        rotate(Q, u, omega) @ rotate(K, v, omega).mT,
    )
