"""An order-free readout of an equivariant network is a function of the bag of its tokens."""

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    chain,
    equal,
    function,
    permutation,
    real,
    sizes,
    theorem,
)  # fmt: skip
from attnproof.symbolic.givens import Function

(n,) = sizes("n", "tokens")
p, q = sizes("p q", "features")


@theorem(
    "An invariant pooling after an equivariant map is invariant",
    given={
        "f": function(2, out=None, traits=("equivariant",), says="any equivariant map"),
        "X": real(n, p), "W": real(p, q), "sigma": permutation(n),
    },
    sources=("document 001, point clouds, and its pattern for sets", "Zaheer et al. 2017, lemma 3"),
    claims=("T15", "T22b"),
)  # fmt: skip
def statement(f: Function, X: Array, W: Array, sigma: Array) -> dict[str, Claim]:
    """The sum, the mean, and the sum weighted by any function of the outputs themselves."""
    xp = array_namespace(X)
    moved, still = f(X[sigma]), f(X)

    def weighted(Y: Array) -> Array:
        total: Array = xp.sum(xp.exp(Y @ W)[:, :, None] * Y[:, None, :], axis=0)
        return total

    return {
        "the map": equal(moved, still[sigma]),
        "sum": chain(
            xp.sum(moved, axis=0),
            ("f is equivariant", xp.sum(still[sigma], axis=0)),
            ("a sum does not see an order", xp.sum(still, axis=0)),
        ),
        "mean": equal(xp.mean(moved, axis=0), xp.mean(still, axis=0)),
        "weighted": equal(weighted(moved), weighted(still)),
    }


@statement.twin_of("the map is any map", f=function(2, out=None, says="any map of all rows"))
def any_map(f: Function, X: Array, sigma: Array) -> Claim:
    xp = array_namespace(X)
    return equal(xp.sum(f(X[sigma]), axis=0), xp.sum(f(X), axis=0))
