"""With learned queries the output has one column a query, and keys come in any order."""

from attnproof.symbolic import Array, Claim, chain, equal, permutation, real, sizes, theorem
from attnproof.theorems.definitions.columns import (
    column_softmax,
    learned_query_attention,
    permutation_matrix,
)

n, m = sizes("n m", "tokens")
d, ell, e = sizes("d ell e", "features")


@theorem(
    "The operator with a learned query takes d × n matrices to d × n matrices",
    given={
        "X": real(d, n), "W_k": real(ell, d), "W_v": real(d, d), "sigma": permutation(n),
        "Q": real(ell, m, says="learned queries, the same for every input"),
    },
    expected="ill-typed",
    sources=("document 002, second definition",),
    claims=("S4", "S6"),
)  # fmt: skip
def statement(X: Array, W_k: Array, W_v: Array, Q: Array, sigma: Array) -> Claim:
    """No statement: a spatial permutation of n columns cannot act on m of them."""
    output = learned_query_attention(X, W_k, Q, W_v)
    return equal(output @ permutation_matrix(sigma), output)


@statement.twin_of("A_Q takes d × n matrices to e × m matrices, and is invariant", W_v=real(e, d))
def invariant(X: Array, W_k: Array, W_v: Array, Q: Array, sigma: Array) -> Claim:
    P = permutation_matrix(sigma)
    return chain(
        learned_query_attention(X @ P, W_k, Q, W_v),
        ("definition", W_v @ X @ P @ column_softmax((W_k @ X @ P).mT @ Q)),
        ("(A P)ᵀ = Pᵀ Aᵀ", W_v @ X @ P @ column_softmax(P.mT @ (W_k @ X).mT @ Q)),
        ("softmax(PᵀN) = Pᵀ softmax(N)", W_v @ X @ P @ P.mT @ column_softmax((W_k @ X).mT @ Q)),
        ("P Pᵀ = 1; definition", learned_query_attention(X, W_k, Q, W_v)),
    )
