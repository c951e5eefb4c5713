"""The mean of the outputs of self-attention does not see the order of the tokens."""

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, chain, equal, permutation, real, sizes, theorem
from attnproof.theorems.definitions.attention import self_attention

(n,) = sizes("n", "tokens")
p, ell, d = sizes("p ell d", "features")


@theorem(
    "Mean pooling after self-attention is invariant",
    given={
        "X": real(n, p), "W_Q": real(p, ell), "W_K": real(p, ell), "W_V": real(p, d),
        "sigma": permutation(n),
    },
    sources=(
        "document 001, point clouds",
        "cf. Zaheer et al. 2017 (Deep Sets), theorem 2, the easy direction",
    ),
    claims=("T13", "T22b"),
)  # fmt: skip
def statement(X: Array, W_Q: Array, W_K: Array, W_V: Array, sigma: Array) -> Claim:
    """An equivariant map followed by the mean over tokens is a function of the multiset."""
    xp = array_namespace(X)
    output = self_attention(X, W_Q, W_K, W_V)
    return chain(
        xp.mean(self_attention(X[sigma], W_Q, W_K, W_V), axis=0),
        ("self-attention is equivariant", xp.mean(output[sigma], axis=0)),
        ("a mean does not see an order", xp.mean(output, axis=0)),
    )


@statement.twin_of("the first output is taken instead of the mean")
def first_row(X: Array, W_Q: Array, W_K: Array, W_V: Array, sigma: Array) -> Claim:
    return equal(self_attention(X[sigma], W_Q, W_K, W_V)[0], self_attention(X, W_Q, W_K, W_V)[0])
