"""The table is cut down to the width of the data; the data are not widened."""

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, equal, real, sizes, theorem

(n,) = sizes("n", "tokens")
d, e = sizes("d e", "features")


@theorem(
    "Data of width d, plus the first d of d + e columns of a table, have width d + e",
    given={"X": real(n, d), "P": real(n, d + e), "Y": real(n, d + e)},
    expected="ill-typed",
    sources=("Ganev, Definition 3.1 and Remark 3.4",),
    claims=("G3.1d", "G3.4"),
)
def statement(X: Array, P: Array, Y: Array) -> Claim:
    """No statement: X + P[:, :d] has d columns, and Y has d + e."""
    return equal(Y - (X + P[:, :d]), 0 * Y)


@statement.twin_of("the result has width d")
def width_of_the_data(X: Array, P: Array) -> Claim:
    """The same as adding all of P to X with e columns of zeros, and keeping d columns."""
    xp = array_namespace(X)
    wide = xp.concat((X, xp.zeros((n, e))), axis=1)
    return equal(X + P[:, :d], (wide + P)[:, :d])
