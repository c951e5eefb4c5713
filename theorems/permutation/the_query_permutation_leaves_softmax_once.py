"""In the proof that attention is equivariant τ comes out of softmax and does not stay inside."""

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
    "softmax(τQg(σKg)ᵀ/√ℓ) σVh = τ softmax(QKᵀ/√ℓ) σᵀσVh, with τ once",
    given={
        "Q": real(r, ell), "K": real(n, ell), "V": real(n, d),
        "tau": permutation(r), "sigma": permutation(n), "g": orthogonal(ell), "h": real(d, e),
    },
    sources=("Ganev, proof of Lemma 2.3, second and third line mended",),
    claims=("G2.3d",),
)  # fmt: skip
def statement(
    Q: Array, K: Array, V: Array, tau: Array, sigma: Array, g: Array, h: Array
) -> dict[str, Claim]:
    """The rows of the weights are permuted by τ; printed with τ inside too, they are twice."""
    root = ell**0.5
    first = softmax(Q[tau] @ g @ (K[sigma] @ g).mT / root) @ (V[sigma] @ h)
    return {
        "the step": chain(
            first,
            ("g gᵀ = 1", softmax((Q @ K.mT / root)[tau][:, sigma]) @ (V[sigma] @ h)),
            ("τ comes out", (softmax(Q @ K.mT / root)[:, sigma] @ V[sigma] @ h)[tau]),
            ("σᵀσ = 1", (attention(Q, K, V) @ h)[tau]),
        ),
        "with τ inside too": equal(
            (softmax(Q[tau] @ K.mT / root)[:, sigma] @ V[sigma] @ h)[tau],
            (attention(Q, K, V) @ h)[tau][tau],
        ),
    }


@statement.twin_of("τ stays inside softmax as well, as printed")
def inside_too(Q: Array, K: Array, V: Array, tau: Array, sigma: Array, g: Array, h: Array) -> Claim:
    root = ell**0.5
    return equal(
        softmax(Q[tau] @ g @ (K[sigma] @ g).mT / root) @ (V[sigma] @ h),
        (softmax(Q[tau] @ K.mT / root)[:, sigma] @ V[sigma] @ h)[tau],
    )
