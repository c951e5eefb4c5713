"""In an orthonormal basis a vector has its dot products as coefficients, and no others."""

from attnproof.symbolic import Array, Claim, equal, orthogonal, real, sizes, theorem

(ell,) = sizes("ell", "features")


@theorem(
    "q = Σ_i ⟨q, k_i⟩ k_i for an orthonormal basis k_1, .., k_ℓ, in this way only",
    given={"K": orthogonal(ell), "q": real(ell), "c": real(ell)},
    sources=("Ganev, section 2.1, after eq. 2.1",),
    claims=("GS2.1.2",),
)
def statement(K: Array, q: Array, c: Array) -> dict[str, Claim]:
    """The rows of K are the keys; the dot products of Σ_i c_i k_i with them are the c_i."""
    return {
        "dot products are coefficients": equal(K.mT @ (K @ q), q),
        "no other coefficients": equal(K @ (K.mT @ c), c),
    }


@statement.twin_of("the keys are any ℓ vectors", K=real(ell, ell))
def any_keys(K: Array, q: Array) -> Claim:
    return equal(K.mT @ (K @ q), q)
