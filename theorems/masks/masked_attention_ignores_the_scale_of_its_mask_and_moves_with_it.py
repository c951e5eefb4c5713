"""A mask may be added before the division by the root of the width or after it, and permuted."""

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, boolean, equal, permutation, real, sizes, theorem
from attnproof.theorems.definitions.attention import masked_attention, softmax

r, n = sizes("r n", "tokens")
ell, d = sizes("ell d", "features")


@theorem(
    "softmax((QKᵀ + Mask)/√ℓ) V = softmax(QKᵀ/√ℓ + Mask) V; a mask moves with queries and keys",
    given={
        "Q": real(r, ell), "K": real(n, ell), "V": real(n, d), "M": boolean(r, n),
        "tau": permutation(r), "sigma": permutation(n),
    },
    sources=("Ganev, Definition 2.5, with Lemma 2.3",),
    claims=("G2.5a", "G2.5c"),
)  # fmt: skip
def statement(Q: Array, K: Array, V: Array, M: Array, tau: Array, sigma: Array) -> dict[str, Claim]:
    """−inf divided by a positive number is −inf.  Every row of M keeps a key at least."""
    xp = array_namespace(Q)
    mask = xp.where(M, 0, -xp.inf)
    inside = softmax((Q @ K.mT + mask) / ell**0.5) @ V
    return {
        "before or after the division": equal(inside, softmax(Q @ K.mT / ell**0.5 + mask) @ V),
        "as scores of −inf": equal(inside, masked_attention(Q, K, V, M)),
        "moved along": equal(
            masked_attention(Q[tau], K[sigma], V[sigma], M[tau][:, sigma]),
            masked_attention(Q, K, V, M)[tau],
        ),
    }


@statement.twin_of("masked scores get −1 more instead of −inf")
def finite_mask(Q: Array, K: Array, V: Array, M: Array) -> Claim:
    xp = array_namespace(Q)
    mask = xp.where(M, 0, -1)
    return equal(softmax((Q @ K.mT + mask) / ell**0.5) @ V, softmax(Q @ K.mT / ell**0.5 + mask) @ V)
