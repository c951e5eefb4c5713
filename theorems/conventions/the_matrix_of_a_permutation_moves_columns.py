"""The matrix with columns e_σ(1), e_σ(2), .. gathers columns from the right; it is orthogonal."""

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, equal, permutation, real, sizes, theorem
from attnproof.theorems.definitions.columns import permutation_matrix

(n,) = sizes("n", "tokens")
(d,) = sizes("d", "features")


@theorem(
    "Column j of X P_σ is column σ(j) of X, products turn round, and P_σ is orthogonal",
    given={"X": real(d, n), "sigma": permutation(n), "tau": permutation(n)},
    sources=("document 002, spatial permutations, and the note in its proof",),
    claims=("S2", "S13"),
)
def statement(X: Array, sigma: Array, tau: Array) -> dict[str, Claim]:
    """T_σ(X) = X P_σ; T_σ after T_τ gathers by τ∘σ, so spatial permutations act from the right."""
    xp = array_namespace(X)
    P, T = permutation_matrix(sigma), permutation_matrix(tau)
    return {
        "column j is column σ(j)": equal(X @ P, X[:, sigma]),
        "P_σ P_τ gathers by σ∘τ": equal(X @ (P @ T), X[:, sigma][:, tau]),
        "T_σ after T_τ gathers by τ∘σ": equal((X @ T) @ P, X[:, tau][:, sigma]),
        "P Pᵀ = 1": equal(P @ P.mT, xp.eye(n)),
        "Pᵀ P = 1": equal(P.mT @ P, xp.eye(n)),
        "Pᵀ gathers rows from the left": equal(P.mT @ X.mT, X.mT[sigma]),
    }


@statement.twin_of("T_σ after T_τ is said to gather by σ∘τ")
def from_the_left(X: Array, sigma: Array, tau: Array) -> Claim:
    after = (X @ permutation_matrix(tau)) @ permutation_matrix(sigma)
    return equal(after, X[:, sigma][:, tau])
