"""A stack of any depth of equivariant layers, residuals and row-wise maps is equivariant."""

from attnproof.symbolic import (
    Array,
    Claim,
    equal,
    function,
    iterate,
    permutation,
    real,
    sizes,
    theorem,
)  # fmt: skip
from attnproof.symbolic.givens import Function

(n,) = sizes("n", "tokens")
(p,) = sizes("p", "features")
(L,) = sizes("L", "layers")


@theorem(
    "A stack of any depth of equivariant layers is equivariant",
    given={
        "f": function(
            2, 0, out=None, traits=("equivariant",),
            says="any equivariant layer, another at every depth",
        ),
        "phi": function(1, 0, out=None, says="any map of one row, another at every depth"),
        "X": real(n, p),
        "sigma": permutation(n),
    },
    sources=("cf. document 001, bag of words", "cf. Zaheer et al. 2017 (Deep Sets), after lemma 3"),
    claims=("T15",),
)  # fmt: skip
def statement(f: Function, phi: Function, X: Array, sigma: Array) -> Claim:
    """With Z = Y + f_t(Y), layer t takes Y to Z + φ_t(Z) row by row; by induction on depth."""

    def layer(t: Array, Y: Array) -> Array:
        Z = Y + f(Y, t)
        return Z + phi(Z, t)

    return equal(iterate(L, X[sigma], layer), iterate(L, X, layer)[sigma])


@statement.twin_of("every layer adds a position table to its rows", P=real(n, p))
def with_positions(f: Function, phi: Function, X: Array, P: Array, sigma: Array) -> Claim:
    def layer(t: Array, Y: Array) -> Array:
        Z = Y + f(Y, t) + P
        return Z + phi(Z, t)

    return equal(iterate(L, X[sigma], layer), iterate(L, X, layer)[sigma])
