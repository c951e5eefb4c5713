"""Scores in a head are divided by the root of the width of the head, not of the input."""

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, equal, real, sizes, theorem
from attnproof.theorems.definitions.attention import softmax
from attnproof.theorems.definitions.heads import sum_of_heads

r, n = sizes("r n", "tokens")
(H,) = sizes("H", "heads")
ell, p, d, e = sizes("ell p d e", "features")


@theorem(
    "Σ_h Att(QW_Q, KW_K, VW_V) = Σ_h softmax(QW_Q W_Kᵀ Kᵀ / √p) VW_V, p the width of a head",
    given={
        "Q": real(r, ell), "K": real(n, ell), "V": real(n, d),
        "W_Q": real(H, ell, p), "W_K": real(H, ell, p), "W_V": real(H, d, e),
    },
    sources=("Ganev, section 2.5 and Remark 2.4, with √p for √ℓ",),
    claims=("GS2.5.2",),
)  # fmt: skip
def statement(Q: Array, K: Array, V: Array, W_Q: Array, W_K: Array, W_V: Array) -> Claim:
    """Att divides by the root of the number of columns it is given, and QW_Q has p of them."""
    return equal(sum_of_heads(Q, K, V, W_Q, W_K, W_V), written_out(Q, K, V, W_Q, W_K, W_V, p))


def written_out(
    Q: Array, K: Array, V: Array, W_Q: Array, W_K: Array, W_V: Array, width: Array
) -> Array:
    """The heads with their scores written as one product."""
    xp = array_namespace(Q)
    heads = softmax(Q @ W_Q @ W_K.mT @ K.mT / width**0.5) @ V @ W_V
    total: Array = xp.sum(heads, axis=0)
    return total


@statement.twin_of("the scores are divided by √ℓ, as printed")
def width_of_the_input(Q: Array, K: Array, V: Array, W_Q: Array, W_K: Array, W_V: Array) -> Claim:
    return equal(sum_of_heads(Q, K, V, W_Q, W_K, W_V), written_out(Q, K, V, W_Q, W_K, W_V, ell))
