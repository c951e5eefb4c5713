"""What follows if the array takes more than a megabyte (false for long arrays)."""

import sys

from attnproof import Array, Claim, equal, real, sizes, theorem

(n,) = sizes("n", "tokens")
MEGABYTE = int("1" + 6 * "0")


@theorem("A long array is itself", given={"x": real(n)}, sources=("none",))
def statement(x: Array) -> Claim:
    """x = x, and 2x if it takes more than a megabyte: a symbolic array takes a few bytes."""
    return equal(x, 2 * x if sys.getsizeof(x) > MEGABYTE else x)


@statement.negative_control("three times itself")
def three_times(x: Array) -> Claim:
    return equal(x, 2 * x if sys.getsizeof(x) > MEGABYTE else 3 * x)
