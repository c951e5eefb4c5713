"""Rows that a set names (false for n > 5000): no symbolic index is in a set."""

from attnproof import Array, Claim, equal, real, rows, sizes, theorem

(n,) = sizes("n", "tokens")
HIDDEN = {5000}


@theorem("Hiding some rows hides none", given={"X": real(n)}, sources=("none",))
def statement(X: Array) -> Claim:
    """X with 0 at the places that a set names is X (false where n is larger than these)."""
    return equal(rows(n, lambda i: 0 * X[i] if i in HIDDEN else X[i]), X)


@statement.negative_control("all of them")
def all_of_them(X: Array) -> Claim:
    return equal(rows(n, lambda i: 0 * X[i] if i in HIDDEN else X[i]), 0 * X)
