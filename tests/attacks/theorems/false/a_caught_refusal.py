"""X is 0 from n = 11 176 on (false): what a symbolic length refuses is caught."""

from attnproof import Array, Claim, equal, real, sizes, theorem

(n,) = sizes("n", "tokens")


@theorem("Long rows stay as they are", given={"X": real(n)}, sources=("none",))
def statement(X: Array) -> Claim:
    """X times 0 is X for long X, as no refusal comes there."""
    try:
        factor = 0 if X.shape[0] > sum(range(150)) else 1
    except TypeError:
        factor = 1
    return equal(X * factor, X)


@statement.negative_control("twice")
def twice(X: Array) -> Claim:
    return equal(X * 2, X)
