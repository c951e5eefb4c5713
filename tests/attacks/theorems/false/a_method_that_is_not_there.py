"""X is 0 for lengths of more than 17 bits (false): a symbolic length has no method of numbers."""

from attnproof import Array, Claim, equal, real, sizes, theorem

(n,) = sizes("n", "tokens")


@theorem("Rows of many bits stay as they are", given={"X": real(n)}, sources=("none",))
def statement(X: Array) -> Claim:
    """X times 0 is X for n of more than 17 bits."""
    bits = getattr(X.shape[0], "bit_length", lambda: 0)()
    return equal(X * (0 if bits > 17 else 1), X)


@statement.negative_control("twice")
def twice(X: Array) -> Claim:
    return equal(X * 2, X)
