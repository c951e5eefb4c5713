"""X is 0 where numpy is given a large number (false): symbols are asked for their class."""

import numpy as np

from attnproof import Array, Claim, equal, real, sizes, theorem

(n,) = sizes("n", "tokens")


@theorem("Large numbers stay as they are", given={"X": real(n)}, sources=("none",))
def statement(X: Array) -> Claim:
    """X times 0 is X where some entry is above 10 000."""
    large = isinstance(X, np.ndarray) and bool((X > 1e4).any())
    return equal(X * (0 if large else 1), X)


@statement.negative_control("twice")
def twice(X: Array) -> Claim:
    return equal(X * 2, X)
