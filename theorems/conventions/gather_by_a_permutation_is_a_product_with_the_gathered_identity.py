"""Gathering rows by a permutation, as array code does it, and the matrix that does the same."""

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    equal,
    inverse,
    permutation,
    real,
    sizes,
    theorem,
)  # fmt: skip

(n,) = sizes("n", "tokens")
(p,) = sizes("p", "features")


@theorem(
    "With P = 1[σ], row i of P X is row σ(i) of X, and entry (i, j) of P S Pᵀ is S_σ(i),σ(j)",
    given={
        "X": real(n, p), "S": real(n, n), "sigma": permutation(n), "tau": permutation(n),
    },
    sources=("document 001, its code for permutations, and step 2 of its proof",),
    claims=("T4", "T8"),
)  # fmt: skip
def statement(X: Array, S: Array, sigma: Array, tau: Array) -> dict[str, Claim]:
    """The inverse of σ belongs to the other matrix: Pᵀ X has row i of X as its row σ(i).

    Gathering twice multiplies in reverse, so it is a right action.
    """
    xp = array_namespace(X)
    P = xp.eye(n)[sigma]
    return {
        "rows": equal(P @ X, X[sigma]),
        "twice": equal(X[sigma][tau], xp.eye(n)[tau] @ (P @ X)),
        "the scattered identity": equal(P.mT @ X, X[inverse(sigma)]),
        "scores, gathered": equal(P @ S @ P.mT, S[sigma][:, sigma]),
        "scores, scattered": equal(P.mT @ S @ P, S[inverse(sigma)][:, inverse(sigma)]),
    }


@statement.twin_of("the inverse permutation is taken with the gathered identity")
def inverse_indices(S: Array, sigma: Array) -> Claim:
    P = array_namespace(S).eye(n)[sigma]
    return equal(P @ S @ P.mT, S[inverse(sigma)][:, inverse(sigma)])
