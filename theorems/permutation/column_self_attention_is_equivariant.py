"""Self-attention on columns moves with a spatial permutation, line by line."""

from attnproof.symbolic import Array, Claim, chain, equal, permutation, real, sizes, theorem
from attnproof.theorems.definitions.attention import softmax
from attnproof.theorems.definitions.columns import (
    column_self_attention,
    column_softmax,
    permutation_matrix,
)

(n,) = sizes("n", "tokens")
d, ell, e = sizes("d ell e", "features")


@theorem(
    "A_s(X P) = A_s(X) P: self-attention on columns is equivariant",
    given={
        "X": real(d, n), "W_k": real(ell, d), "W_q": real(ell, d), "W_v": real(e, d),
        "sigma": permutation(n),
    },
    sources=("document 002, theorem, first half, with its operator and softmax made explicit",),
    claims=("S3", "S5", "S7", "S11", "S15"),
)  # fmt: skip
def statement(X: Array, W_k: Array, W_q: Array, W_v: Array, sigma: Array) -> dict[str, Claim]:
    """A_s(X) = W_v X softmax((W_k X)ᵀ W_q X) over columns; tokens are the columns of X."""
    P = permutation_matrix(sigma)
    V, scores = W_v @ X, (W_k @ X).mT @ (W_q @ X)
    row_read = softmax((W_k @ X @ P).mT @ (W_q @ X @ P))
    return {
        "the lines of the proof": chain(
            column_self_attention(X @ P, W_k, W_q, W_v),
            (
                "definition, with W_q in the second factor of the scores",
                W_v @ X @ P @ column_softmax((W_k @ X @ P).mT @ (W_q @ X @ P)),
            ),
            (
                "(A P)ᵀ = Pᵀ Aᵀ",
                W_v @ X @ P @ column_softmax(P.mT @ (W_k @ X).mT @ (W_q @ X @ P)),
            ),
            ("softmax(PᵀMP) = Pᵀ softmax(M) P", V @ P @ P.mT @ column_softmax(scores) @ P),
            ("P Pᵀ = 1", V @ column_softmax(scores) @ P),
            ("definition", column_self_attention(X, W_k, W_q, W_v) @ P),
        ),
        "with softmax over rows instead": equal(V @ P @ row_read, V @ softmax(scores) @ P),
    }


@statement.twin_of("W_v stands in the place of W_q, as printed", W_k=real(e, d), W_q=real(e, d))
def values_for_queries(X: Array, W_k: Array, W_q: Array, W_v: Array, sigma: Array) -> Claim:
    moved = X @ permutation_matrix(sigma)
    return equal(
        column_self_attention(moved, W_k, W_q, W_v),
        W_v @ moved @ column_softmax((W_k @ moved).mT @ (W_v @ moved)),
    )
