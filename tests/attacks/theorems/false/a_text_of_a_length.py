"""X is 0 where n has six digits (false): the text of a symbolic length is its name."""

from attnproof import Array, Claim, equal, real, sizes, theorem

(n,) = sizes("n", "tokens")


@theorem("Rows of many tokens stay as they are", given={"X": real(n)}, sources=("none",))
def statement(X: Array) -> Claim:
    """X times 0 is X for n of six digits."""
    return equal(X * (0 if len(f"{X.shape[0]}") > 5 else 1), X)


@statement.negative_control("twice")
def twice(X: Array) -> Claim:
    return equal(X * 2, X)
