"""Permuting keys alone is not a symmetry of attention."""

from attnproof.symbolic import Array, Claim, equal, permutation, real, sizes, theorem
from attnproof.theorems.definitions.attention import attention

r, n = sizes("r n", "tokens")
ell, d = sizes("ell d", "features")


@theorem(
    "Attention is unchanged when keys alone are permuted",
    given={"Q": real(r, ell), "K": real(n, ell), "V": real(n, d), "sigma": permutation(n)},
    expected="refuted",
    sources=("document 000, first sentence (keys or values)",),
    claims=("B1", "GS3.1"),
)
def statement(Q: Array, K: Array, V: Array, sigma: Array) -> Claim:
    """A sentence one meets; it is false: the keys must take the values with them."""
    return equal(attention(Q, K[sigma], V), attention(Q, K, V))


@statement.twin_of("keys and values are permuted together")
def together(Q: Array, K: Array, V: Array, sigma: Array) -> Claim:
    return equal(attention(Q, K[sigma], V[sigma]), attention(Q, K, V))
