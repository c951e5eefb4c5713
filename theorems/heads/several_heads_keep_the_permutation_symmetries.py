"""Several heads move with their queries and ignore the order of the pairs, as one head does."""

from attnproof.symbolic import Array, Claim, chain, equal, permutation, real, sizes, theorem
from attnproof.theorems.definitions.heads import sum_of_heads

r, n = sizes("r n", "tokens")
(H,) = sizes("H", "heads")
ell, p, d, e = sizes("ell p d e", "features")


@theorem(
    "MultiHeadAtt(τQ, σK, σV) = τ MultiHeadAtt(Q, K, V), for any number of heads",
    given={
        "Q": real(r, ell), "K": real(n, ell), "V": real(n, d),
        "W_Q": real(H, ell, p), "W_K": real(H, ell, p), "W_V": real(H, d, e),
        "tau": permutation(r), "sigma": permutation(n),
    },
    sources=("Ganev, section 2.5 with Lemma 2.3",),
    claims=("GS2.5.3",),
)  # fmt: skip
def statement(
    Q: Array, K: Array, V: Array, W_Q: Array, W_K: Array, W_V: Array, tau: Array, sigma: Array
) -> Claim:
    """Row permutations pass through the maps of each head, and a sum of heads moves along."""
    return chain(
        sum_of_heads(Q[tau], K[sigma], V[sigma], W_Q, W_K, W_V),
        ("each head ignores the order of its pairs", sum_of_heads(Q[tau], K, V, W_Q, W_K, W_V)),
        ("each head moves with its queries", sum_of_heads(Q, K, V, W_Q, W_K, W_V)[tau]),
    )


@statement.twin_of("only the keys are permuted")
def keys_alone(
    Q: Array, K: Array, V: Array, W_Q: Array, W_K: Array, W_V: Array, sigma: Array
) -> Claim:
    return equal(sum_of_heads(Q, K[sigma], V, W_Q, W_K, W_V), sum_of_heads(Q, K, V, W_Q, W_K, W_V))
