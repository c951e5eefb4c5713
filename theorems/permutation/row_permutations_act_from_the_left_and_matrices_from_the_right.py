"""Permutations act on rows from the left, matrices on columns from the right; they commute."""

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
(ell,) = sizes("ell", "features")


@theorem(
    "σX, whose row σ(i) is row i of X, is a left action; X g is a right one; they commute",
    given={
        "X": real(n, ell), "sigma": permutation(n), "tau": permutation(n),
        "g": real(ell, ell), "h": real(ell, ell),
    },
    sources=("Ganev, section 2.3, and the proof of Lemma 2.3, fact (2)",),
    claims=("GS2.3.1", "G2.3e"),
)  # fmt: skip
def statement(X: Array, sigma: Array, tau: Array, g: Array, h: Array) -> dict[str, Claim]:
    """X[σ] in code gathers: its row i is row σ(i) of X.  So σX is X[σ⁻¹], and P_σ is 1[σ]ᵀ."""
    xp = array_namespace(X)
    one = xp.eye(n)
    P, T = one[sigma].mT, one[tau].mT
    return {
        "the matrix of σ": equal(P @ X, X[inverse(sigma)]),
        "row i becomes row σ(i)": equal((P @ X)[sigma], X),
        "P_σ P_τ takes row i to row σ(τ(i))": equal(((P @ T) @ X)[sigma][tau], X),
        "permutation matrices are orthogonal": equal(P @ P.mT, one),
        "their transposes are their inverses": equal(P.mT @ P, one),
        "matrices act from the right": equal((X @ g) @ h, X @ (g @ h)),
        "the two actions commute": equal((P @ X) @ g, P @ (X @ g)),
    }


@statement.twin_of("P_σ P_τ is said to take row i to row τ(σ(i))")
def other_order(X: Array, sigma: Array, tau: Array) -> Claim:
    one = array_namespace(X).eye(n)
    return equal((one[sigma].mT @ one[tau].mT @ X)[tau][sigma], X)
