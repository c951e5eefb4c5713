"""softmax(PᵀMP) = Pᵀ softmax(M) P for square M, whichever way softmax is normalised."""

from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, equal, permutation, real, sizes, theorem
from attnproof.theorems.definitions.attention import softmax
from attnproof.theorems.definitions.columns import column_softmax, permutation_matrix

n, m = sizes("n m", "tokens")


@theorem(
    "softmax(PᵀMP) = Pᵀ softmax(M) P for any n × m matrix M",
    given={"M": real(n, m), "sigma": permutation(n)},
    expected="ill-typed",
    sources=("document 002, the fact its proof calls easy",),
    claims=("S9",),
)
def statement(M: Array, sigma: Array) -> Claim:
    """No statement: M has m columns and P has n rows."""
    P = permutation_matrix(sigma)
    return equal(column_softmax(P.mT @ M @ P), P.mT @ column_softmax(M) @ P)


def whole_softmax(scores: Any) -> Any:
    """exp(s_ij) / Σ_kl exp(s_kl): one distribution over all entries."""
    xp = array_namespace(scores)
    weights = xp.exp(scores)
    return weights / xp.sum(weights)


@statement.twin_of("M is square", M=real(n, n))
def square(M: Array, sigma: Array) -> dict[str, Claim]:
    P = permutation_matrix(sigma)
    moved = P.mT @ M @ P
    return {
        "over columns": equal(column_softmax(moved), P.mT @ column_softmax(M) @ P),
        "over rows": equal(softmax(moved), P.mT @ softmax(M) @ P),
        "over the whole matrix": equal(whole_softmax(moved), P.mT @ whole_softmax(M) @ P),
    }
