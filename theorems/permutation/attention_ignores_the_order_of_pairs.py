"""Attention does not see in which order the key-value pairs are stored."""

from attnproof.symbolic import Array, Claim, chain, equal, permutation, real, sizes, theorem
from attnproof.theorems.definitions.attention import attention, softmax

r, n = sizes("r n", "tokens")
ell, d = sizes("ell d", "features")


@theorem(
    "Attention is unchanged by one permutation of the key-value pairs",
    given={"Q": real(r, ell), "K": real(n, ell), "V": real(n, d), "sigma": permutation(n)},
    sources=("document 000, matrix form", "Ganev, Lemma 2.3 with τ, g and h the identity"),
    claims=("B1", "B4", "GS2.1.1", "GS3.1"),
)
def statement(Q: Array, K: Array, V: Array, sigma: Array) -> Claim:
    """Permuting keys and values together leaves every row of attention as it was."""
    return chain(
        attention(Q, K[sigma], V[sigma]),
        ("definition", softmax(Q @ K[sigma].mT / ell**0.5) @ V[sigma]),
        (
            "the columns of the scores move with the keys",
            softmax((Q @ K.mT / ell**0.5)[:, sigma]) @ V[sigma],
        ),
        (
            "softmax commutes with a permutation of the columns",
            softmax(Q @ K.mT / ell**0.5)[:, sigma] @ V[sigma],
        ),
        ("σ meets every key once", attention(Q, K, V)),
    )


@statement.twin_of("the keys are permuted by σ, the values by τ", tau=permutation(n))
def two_permutations(Q: Array, K: Array, V: Array, sigma: Array, tau: Array) -> Claim:
    return equal(attention(Q, K[sigma], V[tau]), attention(Q, K, V))
