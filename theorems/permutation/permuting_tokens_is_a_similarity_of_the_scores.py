"""Permuting the tokens changes the score matrix as a change of basis does."""

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, equal, permutation, real, sizes, theorem

(n,) = sizes("n", "tokens")
(ell,) = sizes("ell", "features")


def trace(S: Array) -> Array:
    """The sum of the diagonal."""
    xp = array_namespace(S)
    total: Array = xp.sum(S * xp.eye(n))
    return total


@theorem(
    "(P Q)(P K)ᵀ = P S Pᵀ = P S P⁻¹, and the traces of S and of S² stay",
    given={"Q": real(n, ell), "K": real(n, ell), "S": real(n, n), "sigma": permutation(n)},
    sources=("document 001, step 2 of its proof",),
    claims=("T7",),
)
def statement(Q: Array, K: Array, S: Array, sigma: Array) -> dict[str, Claim]:
    """g S gᵀ is a similarity because a permutation matrix has its transpose as its inverse."""
    xp = array_namespace(S)
    P = xp.eye(n)[sigma]
    moved = P @ S @ P.mT
    return {
        "scores": equal((P @ Q) @ (P @ K).mT, P @ (Q @ K.mT) @ P.mT),
        "P Pᵀ = 1": equal(P @ P.mT, xp.eye(n)),
        "Pᵀ P = 1": equal(P.mT @ P, xp.eye(n)),
        "trace": equal(trace(moved), trace(S)),
        "trace of the square": equal(trace(moved @ moved), trace(S @ S)),
    }


@statement.twin_of("any square matrix stands for P", g=real(n, n))
def congruence(S: Array, g: Array) -> Claim:
    return equal(trace(g @ S @ g.mT), trace(S))
