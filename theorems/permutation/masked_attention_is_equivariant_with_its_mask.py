"""Masked attention moves with its tokens when the mask is relabelled with them."""

from attnproof.symbolic import (
    Array,
    Claim,
    boolean,
    chain,
    equal,
    permutation,
    real,
    sizes,
    theorem,
)
from attnproof.theorems.definitions.attention import masked_attention

(n,) = sizes("n", "tokens")
ell, d = sizes("ell d", "features")


@theorem(
    "Masked attention is equivariant when the mask is relabelled with the tokens",
    given={
        "Q": real(n, ell), "K": real(n, ell), "V": real(n, d), "M": boolean(n, n),
        "sigma": permutation(n),
    },
    sources=("document 001, graph attention", "Velickovic et al. 2018 (GAT), section 2.1"),
    claims=("T23",),
)  # fmt: skip
def statement(Q: Array, K: Array, V: Array, M: Array, sigma: Array) -> Claim:
    """Whoever may look at whom is told by the mask: M[i, j] moves to (σ⁻¹(i), σ⁻¹(j))."""
    moved = M[sigma][:, sigma]
    return chain(
        masked_attention(Q[sigma], K[sigma], V[sigma], moved),
        ("each row by itself", masked_attention(Q, K[sigma], V[sigma], M[:, sigma])[sigma]),
        ("σ meets every key once", masked_attention(Q, K, V, M)[sigma]),
    )


@statement.twin_of("the mask is not relabelled")
def mask_stays(Q: Array, K: Array, V: Array, M: Array, sigma: Array) -> Claim:
    return equal(
        masked_attention(Q[sigma], K[sigma], V[sigma], M), masked_attention(Q, K, V, M)[sigma]
    )
