"""Every number is the next one, and is itself: `and` of Python keeps the second claim alone."""

from attnproof import Array, Claim, equal, real, theorem


@theorem("Every number is the next one, and itself", given={"x": real()}, sources=("none",))
def statement(x: Array) -> Claim:
    """x = x + 1 and x = x: the first is false."""
    return equal(x, x + 1) and equal(x, x)


@statement.negative_control("it is the next one alone")
def next_alone(x: Array) -> Claim:
    return equal(x, x + 1)
