"""A table of lengths (false for n = 5000): a dict does not find a symbolic length in it."""

from attnproof import Array, Claim, equal, real, sizes, theorem

(n,) = sizes("n", "tokens")
SHARE = {5000: 0}


@theorem("Every length but one keeps its sum", given={"X": real(n)}, sources=("none",))
def statement(X: Array) -> Claim:
    """X times what a table says of its length is X (false where the table says 0)."""
    return equal(X * SHARE.get(X.shape[0], 1), X)


@statement.negative_control("twice as much")
def twice(X: Array) -> Claim:
    return equal(X * SHARE.get(X.shape[0], 1), 2 * X)
