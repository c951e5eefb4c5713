"""Any factor in front of the scores can be taken into the key map."""

from typing import Any

from attnproof.symbolic import Array, Claim, equal, permutation, real, sizes, theorem
from attnproof.theorems.definitions.columns import (
    column_self_attention,
    column_softmax,
    learned_query_attention,
    permutation_matrix,
)

n, m = sizes("n m", "tokens")
d, ell, e = sizes("d ell e", "features")


@theorem(
    "c (W_k X)ᵀ Y = ((c W_k) X)ᵀ Y, so attention with any scale is attention without one",
    given={
        "X": real(d, n), "W_k": real(ell, d), "W_q": real(ell, d), "W_v": real(e, d),
        "Q": real(ell, m), "c": real(), "sigma": permutation(n),
    },
    sources=("document 002, whose operators have no factor 1/√ℓ",),
    claims=("S8",),
)  # fmt: skip
def statement(
    X: Array, W_k: Array, W_q: Array, W_v: Array, Q: Array, c: Array, sigma: Array
) -> dict[str, Claim]:
    """Both symmetries therefore hold for every scale, 0 and 1/√ℓ among them."""
    P = permutation_matrix(sigma)

    def scaled(tokens: Array, second: Array) -> Any:
        return W_v @ tokens @ column_softmax(c * ((W_k @ tokens).mT @ second))

    return {
        "self-attention": equal(scaled(X, W_q @ X), column_self_attention(X, c * W_k, W_q, W_v)),
        "learned query": equal(scaled(X, Q), learned_query_attention(X, c * W_k, Q, W_v)),
        "equivariant": equal(scaled(X @ P, W_q @ X @ P), scaled(X, W_q @ X) @ P),
        "invariant": equal(scaled(X @ P, Q), scaled(X, Q)),
    }


@statement.twin_of("the factor is taken into the value map as well")
def values_too(X: Array, W_k: Array, W_q: Array, W_v: Array, c: Array) -> Claim:
    return equal(
        W_v @ X @ column_softmax(c * ((W_k @ X).mT @ (W_q @ X))),
        column_self_attention(X, c * W_k, W_q, c * W_v),
    )
