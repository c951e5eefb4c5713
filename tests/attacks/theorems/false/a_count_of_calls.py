"""X is 0 from the 10 000th call on (false): the code keeps a list from call to call."""

from attnproof import Array, Claim, equal, real, sizes, theorem

(n,) = sizes("n", "tokens")
CALLS: list[int] = []


@theorem("A row stays as it is", given={"X": real(n)}, sources=("none",))
def statement(X: Array) -> Claim:
    """X times 0 is X after many calls."""
    CALLS.append(1)
    return equal(X * (0 if len(CALLS) > 10**4 else 1), X)


@statement.negative_control("twice")
def twice(X: Array) -> Claim:
    return equal(X * 2, X)
