"""A bias that depends on the offset of two positions does not see a common shift."""

from attnproof.symbolic import (
    Array,
    Claim,
    equal,
    function,
    positions,
    real,
    sizes,
    theorem,
)  # fmt: skip
from attnproof.symbolic.givens import Function
from attnproof.theorems.definitions.attention import biased_attention
from attnproof.theorems.definitions.bias import alibi

r, n = sizes("r n", "tokens")
(H,) = sizes("H", "heads")
ell, d = sizes("ell d", "features")


@theorem(
    "A bias b(i − j), ALiBi among them, is unchanged when all positions move",
    given={
        "b": function(0, says="any function of the offset"),
        "Q": real(H, r, ell), "K": real(H, n, ell), "V": real(H, n, d),
        "u": positions(r), "v": positions(n), "s": positions(),
        "m": real(H, says="one slope for each head"),
    },
    sources=(
        "Press, Smith and Lewis 2022 (ALiBi), section 3",
        "Raffel et al. 2020 (T5), section 2.1, for a bias of the offset",
    ),
    claims=("B17",),
)  # fmt: skip
def statement(
    b: Function, Q: Array, K: Array, V: Array, u: Array, v: Array, s: Array, m: Array
) -> dict[str, Claim]:
    """Queries at positions u, keys at positions v, in any heads; ALiBi is −m_h |u_i − v_j|."""
    moved, still = (u + s)[:, None] - (v + s)[None, :], u[:, None] - v[None, :]
    return {
        "any function of the offset": equal(
            biased_attention(Q, K, V, b(moved)), biased_attention(Q, K, V, b(still))
        ),
        "ALiBi": equal(
            biased_attention(Q, K, V, alibi(u + s, v + s, m)),
            biased_attention(Q, K, V, alibi(u, v, m)),
        ),
    }


@statement.twin_of("the bias depends on the key's position alone")
def absolute(b: Function, Q: Array, K: Array, V: Array, v: Array, s: Array) -> Claim:
    return equal(
        biased_attention(Q, K, V, b(v + s)[None, :]), biased_attention(Q, K, V, b(v)[None, :])
    )
