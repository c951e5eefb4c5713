"""Queries that do not come from the tokens make attention blind to the tokens' order."""

from attnproof.symbolic import Array, Claim, chain, equal, permutation, real, sizes, theorem
from attnproof.theorems.definitions.attention import attention

r, n = sizes("r n", "tokens")
p, ell, d = sizes("p ell d", "features")


@theorem(
    "Attention with a learned query is invariant",
    given={
        "Q": real(r, ell, says="learned queries, the same for every input"),
        "X": real(n, p), "W_K": real(p, ell), "W_V": real(p, d), "sigma": permutation(n),
    },
    sources=("Lee et al. 2019 (Set Transformer), pooling by multi-head attention, section 3.2",),
)  # fmt: skip
def statement(Q: Array, X: Array, W_K: Array, W_V: Array, sigma: Array) -> Claim:
    """With queries fixed, reordering the tokens changes nothing at all."""
    return chain(
        attention(Q, X[sigma] @ W_K, X[sigma] @ W_V),
        ("rows are projected one by one", attention(Q, (X @ W_K)[sigma], (X @ W_V)[sigma])),
        ("one permutation of the pairs", attention(Q, X @ W_K, X @ W_V)),
    )


@statement.twin_of("the queries are the tokens themselves", W_Q=real(p, ell))
def queries_from_tokens(X: Array, W_Q: Array, W_K: Array, W_V: Array, sigma: Array) -> Claim:
    return equal(
        attention(X[sigma] @ W_Q, X[sigma] @ W_K, X[sigma] @ W_V),
        attention(X @ W_Q, X @ W_K, X @ W_V),
    )
