"""The score of a rotated query and a rotated key depends on the offset of their positions."""

from array_api_compat import array_namespace

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

(n,) = sizes("n", "tokens")
(B,) = sizes("B", "blocks")


@theorem(
    "⟨R_u q, R_v k⟩ = ⟨q, R_{v−u} k⟩",
    given={
        "Q": real(n, 2 * B), "K": real(n, 2 * B), "u": positions(n), "v": positions(n),
        "omega": frequencies(B),
    },
    sources=("Su et al. 2021 (RoFormer), eq. 16", "document 004, final formula"),
    claims=("R24",),
)  # fmt: skip
def statement(Q: Array, K: Array, u: Array, v: Array, omega: Array) -> Claim:
    """Row i holds one query at position u_i and one key at position v_i: any pair, any blocks."""
    xp = array_namespace(Q)
    return equal(
        xp.sum(rotate(Q, u, omega) * rotate(K, v, omega), axis=-1),
        xp.sum(Q * rotate(K, v - u, omega), axis=-1),
    )


@statement.twin_of("the key is turned by the sum of the positions")
def by_the_sum(Q: Array, K: Array, u: Array, v: Array, omega: Array) -> Claim:
    xp = array_namespace(Q)
    return equal(
        xp.sum(rotate(Q, u, omega) * rotate(K, v, omega), axis=-1),
        xp.sum(Q * rotate(K, v + u, omega), axis=-1),
    )
