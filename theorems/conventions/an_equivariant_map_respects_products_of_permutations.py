"""An equivariant map commutes with a product of permutations, one factor after the other."""

from attnproof.symbolic import (
    Array,
    Claim,
    chain,
    equal,
    function,
    inverse,
    permutation,
    real,
    sizes,
    theorem,
)  # fmt: skip
from attnproof.symbolic.givens import Function

(n,) = sizes("n", "tokens")
(p,) = sizes("p", "features")


@theorem(
    "f(στX) = σ f(τX) = στ f(X) for an equivariant map f",
    given={
        "f": function(2, out=None, traits=("equivariant",), says="any equivariant map"),
        "X": real(n, p),
        "s": permutation(n), "t": permutation(n),
    },
    sources=("Ganev, section 2.3, with document 001's equivariance",),
    claims=("X9",),
)  # fmt: skip
def statement(f: Function, X: Array, s: Array, t: Array) -> dict[str, Claim]:
    """Here s = σ⁻¹ and t = τ⁻¹: σX is X[s], for row σ(i) of X[s] is row i of X."""
    return {
        "row i goes to row σ(i)": equal(X[s][inverse(s)], X),
        "σ(τX) is (στ)X: row i goes to row σ(τ(i))": equal(X[t][s][inverse(s)][inverse(t)], X),
        "the product": chain(
            f(X[t][s]),
            ("f commutes with σ", f(X[t])[s]),
            ("f commutes with τ", f(X)[t][s]),
        ),
    }


@statement.twin_of("the factors of the product are exchanged")
def exchanged(f: Function, X: Array, s: Array, t: Array) -> Claim:
    return equal(f(X[t][s]), f(X)[s][t])
