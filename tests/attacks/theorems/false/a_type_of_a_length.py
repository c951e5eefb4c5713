"""X is 0 from n = 11 176 on (false): a symbolic length has a type of its own."""

from attnproof import Array, Claim, equal, real, sizes, theorem

(n,) = sizes("n", "tokens")


@theorem("Rows of any length stay as they are", given={"X": real(n)}, sources=("none",))
def statement(X: Array) -> Claim:
    """X times 0 is X for n above 11 175."""
    length = X.shape[0]
    many = type(length) is int and length > sum(range(150))
    return equal(X * (0 if many else 1), X)


@statement.negative_control("twice")
def twice(X: Array) -> Claim:
    return equal(X * 2, X)
