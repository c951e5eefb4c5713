"""Adding positions leaves one symmetry: tokens and their positions moved together."""

from attnproof.symbolic import (
    Array,
    Claim,
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
    "With positions added, what is left of equivariance moves tokens and positions together",
    given={
        "f": function(2, out=None, traits=("equivariant",), says="any equivariant map"),
        "X": real(n, p), "P": real(n, p), "sigma": permutation(n),
    },
    sources=("cf. document 001, on sets and positional encodings",),
    claims=("T26",),
)  # fmt: skip
def statement(f: Function, X: Array, P: Array, sigma: Array) -> dict[str, Claim]:
    """Moving the tokens alone is moving the positions the other way: X[σ] + P = (X + P[σ⁻¹])[σ]."""
    return {
        "tokens and positions": equal(f(X[sigma] + P[sigma]), f(X + P)[sigma]),
        "tokens alone": equal(X[sigma] + P, (X + P[inverse(sigma)])[sigma]),
    }


@statement.twin_of("the positions stay where they are")
def positions_stay(f: Function, X: Array, P: Array, sigma: Array) -> Claim:
    return equal(f(X[sigma] + P), f(X + P)[sigma])
