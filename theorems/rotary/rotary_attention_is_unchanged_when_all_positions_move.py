"""Attention with rotary queries and keys does not see a common shift of the positions."""

from attnproof.symbolic import (
    Array,
    Claim,
    chain,
    equal,
    frequencies,
    positions,
    real,
    sizes,
    theorem,
)  # fmt: skip
from attnproof.theorems.definitions.attention import attention, softmax
from attnproof.theorems.definitions.rotary import rotate

r, n = sizes("r n", "tokens")
(B,) = sizes("B", "blocks")
(d,) = sizes("d", "features")


@theorem(
    "Rotary attention is unchanged when all positions move by s",
    given={
        "Q": real(r, 2 * B), "K": real(n, 2 * B), "V": real(n, d),
        "u": positions(r), "v": positions(n), "s": positions(), "omega": frequencies(B),
    },
    sources=("Su et al. 2021 (RoFormer), eq. 16",),
    claims=("R24", "R34"),
)  # fmt: skip
def statement(Q: Array, K: Array, V: Array, u: Array, v: Array, s: Array, omega: Array) -> Claim:
    """Queries at positions u and keys at positions v, all moved by the same s."""
    root = Q.shape[-1] ** 0.5
    moved = rotate(Q, u + s, omega) @ rotate(K, v + s, omega).mT
    still = rotate(Q, u, omega) @ rotate(K, v, omega).mT
    return chain(
        attention(rotate(Q, u + s, omega), rotate(K, v + s, omega), V),
        ("definition", softmax(moved / root) @ V),
        ("a score depends on the offset, and (v + s) − (u + s) = v − u", softmax(still / root) @ V),
        ("definition", attention(rotate(Q, u, omega), rotate(K, v, omega), V)),
    )


@statement.twin_of("only the keys move")
def keys_move(Q: Array, K: Array, V: Array, u: Array, v: Array, s: Array, omega: Array) -> Claim:
    return equal(
        attention(rotate(Q, u, omega), rotate(K, v + s, omega), V),
        attention(rotate(Q, u, omega), rotate(K, v, omega), V),
    )
