"""Multi-head attention moves with its tokens, for any number of heads."""

from attnproof.symbolic import Array, Claim, equal, permutation, real, sizes, theorem
from attnproof.theorems.definitions.attention import multi_head

(n,) = sizes("n", "tokens")
(H,) = sizes("H", "heads")
p, ell, d, e = sizes("p ell d e", "features")


@theorem(
    "Multi-head attention with an output projection is equivariant",
    given={
        "X": real(n, p), "W_Q": real(H, p, ell), "W_K": real(H, p, ell), "W_V": real(H, p, d),
        "W_O": real(H, d, e), "sigma": permutation(n),
    },
    sources=("Vaswani et al. 2017, section 3.2.2", "Ganev, Remark 2.4"),
    claims=("T15",),
)  # fmt: skip
def statement(X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, sigma: Array) -> Claim:
    """H heads, their outputs summed through H matrices (side by side times one), move along."""
    return equal(multi_head(X[sigma], W_Q, W_K, W_V, W_O), multi_head(X, W_Q, W_K, W_V, W_O)[sigma])


@statement.twin_of("a position table is added to the tokens first", P=real(n, p))
def with_positions(
    X: Array, P: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, sigma: Array
) -> Claim:
    return equal(
        multi_head(X[sigma] + P, W_Q, W_K, W_V, W_O),
        multi_head(X + P, W_Q, W_K, W_V, W_O)[sigma],
    )
