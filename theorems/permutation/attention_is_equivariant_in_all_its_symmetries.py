"""All symmetries of attention at once: two permutations, a rotation, a linear map."""

from attnproof.symbolic import (
    Array,
    Claim,
    chain,
    equal,
    orthogonal,
    permutation,
    real,
    sizes,
    theorem,
)  # fmt: skip
from attnproof.theorems.definitions.attention import attention, softmax

r, n = sizes("r n", "tokens")
ell, d, e = sizes("ell d e", "features")


@theorem(
    "Att(τQg, σKg, σVh) = τ Att(Q, K, V) h for g orthogonal and any matrix h",
    given={
        "Q": real(r, ell), "K": real(n, ell), "V": real(n, d),
        "tau": permutation(r), "sigma": permutation(n),
        "g": orthogonal(ell), "h": real(d, e),
    },
    sources=("Ganev, Lemma 2.3, with g in O(ℓ), and h any d × e matrix",),
    claims=("G2.3", "G2.3b", "GS3.1"),
)  # fmt: skip
def statement(Q: Array, K: Array, V: Array, tau: Array, sigma: Array, g: Array, h: Array) -> Claim:
    """Queries and pairs may be reordered, queries and keys turned together, values mapped.

    Q[τ] has row τ(i) of Q as its row i.  The lemma's τQ has row i of Q as its row τ(i), which is
    Q[τ⁻¹]; as τ and σ are any permutations, the two ways of writing say the same.
    """
    root = ell**0.5
    return chain(
        attention(Q[tau] @ g, K[sigma] @ g, V[sigma] @ h),
        ("definition", softmax(Q[tau] @ g @ (K[sigma] @ g).mT / root) @ (V[sigma] @ h)),
        ("g gᵀ = 1", softmax(Q[tau] @ K[sigma].mT / root) @ (V[sigma] @ h)),
        (
            "softmax commutes with permutations",
            softmax(Q @ K.mT / root)[tau][:, sigma] @ (V[sigma] @ h),
        ),
        ("σᵀσ = 1", softmax(Q @ K.mT / root)[tau] @ (V @ h)),
        ("the product is associative; definition", attention(Q, K, V)[tau] @ h),
    )


@statement.twin_of("g is any square matrix", g=real(ell, ell))
def any_matrix(Q: Array, K: Array, V: Array, tau: Array, sigma: Array, g: Array, h: Array) -> Claim:
    return equal(attention(Q[tau] @ g, K[sigma] @ g, V[sigma] @ h), attention(Q, K, V)[tau] @ h)
