"""The score of a rotated query and a rotated key depends on the offset of their positions."""

from array_api_compat import array_namespace

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
    claims=("R24", "R25"),
)  # fmt: skip
def statement(Q: Array, K: Array, u: Array, v: Array, omega: Array) -> Claim:
    """Row i holds one query at position u_i and one key at position v_i: any pair, any blocks."""
    xp = array_namespace(Q)
    a, b, c, d = Q[:, 0::2], Q[:, 1::2], K[:, 0::2], K[:, 1::2]
    offset = (v - u)[:, None] * omega
    return chain(
        xp.sum(rotate(Q, u, omega) * rotate(K, v, omega), axis=-1),
        (
            "block by block: cos u cos v + sin u sin v = cos(v − u), and so for the sine",
            xp.sum((a * c + b * d) * xp.cos(offset) + (b * c - a * d) * xp.sin(offset), axis=-1),
        ),
        ("which is the query against the key turned by v − u", turned(Q, K, v - u, omega)),
    )


def turned(Q: Array, K: Array, offset: Array, omega: Array) -> Array:
    """⟨q_i, R(offset_i) k_i⟩, row by row."""
    xp = array_namespace(Q)
    result: Array = xp.sum(Q * rotate(K, offset, omega), axis=-1)
    return result


@statement.twin_of("the key is turned by the sum of the positions")
def by_the_sum(Q: Array, K: Array, u: Array, v: Array, omega: Array) -> Claim:
    xp = array_namespace(Q)
    return equal(
        xp.sum(rotate(Q, u, omega) * rotate(K, v, omega), axis=-1), turned(Q, K, v + u, omega)
    )
