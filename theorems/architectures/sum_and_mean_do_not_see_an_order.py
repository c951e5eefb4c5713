"""Sums and means over the tokens forget their order."""

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, equal, permutation, real, sizes, theorem

(n,) = sizes("n", "tokens")
(p,) = sizes("p", "features")


@theorem(
    "Sum and mean over the tokens are permutation invariant",
    given={"X": real(n, p), "sigma": permutation(n)},
    sources=("document 001, equivariance against invariance", "Zaheer et al. 2017 (Deep Sets)"),
    claims=("T3", "T22b"),
)
def statement(X: Array, sigma: Array) -> dict[str, Claim]:
    """Each column is summed over all its entries, in whatever order they come."""
    xp = array_namespace(X)
    return {
        "sum": equal(xp.sum(X[sigma], axis=0), xp.sum(X, axis=0)),
        "mean": equal(xp.mean(X[sigma], axis=0), xp.mean(X, axis=0)),
    }


@statement.twin_of("the first row is taken")
def first_row(X: Array, sigma: Array) -> Claim:
    return equal(X[sigma][0], X[0])
