"""Softmax over columns: each column is a distribution and moves with its keys."""

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, all_positive, equal, permutation, real, sizes, theorem
from attnproof.theorems.definitions.attention import softmax
from attnproof.theorems.definitions.columns import column_softmax, permutation_matrix

n, m = sizes("n m", "tokens")


@theorem(
    "Columns of column softmax sum to one, and softmax(PᵀN) = Pᵀ softmax(N)",
    given={"N": real(n, m), "sigma": permutation(n)},
    sources=("document 002, the axis its proof needs, and the step of its second half",),
    claims=("S10", "S11"),
)
def statement(N: Array, sigma: Array) -> dict[str, Claim]:
    """Scores of n keys by m queries; a column of the output is a weighted mean of the values."""
    xp = array_namespace(N)
    P = permutation_matrix(sigma)
    return {
        "columns sum to one": equal(xp.sum(column_softmax(N), axis=0), xp.ones(m)),
        "weights are positive": all_positive(column_softmax(N)),
        "one side": equal(column_softmax(P.mT @ N), P.mT @ column_softmax(N)),
        "it is row softmax transposed": equal(column_softmax(N), softmax(N.mT).mT),
    }


@statement.twin_of("rows sum to one")
def rows_sum_to_one(N: Array) -> Claim:
    xp = array_namespace(N)
    return equal(xp.sum(column_softmax(N), axis=1), xp.ones(n))
