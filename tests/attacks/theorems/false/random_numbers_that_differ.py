"""A difference where there is no probability (false): random numbers that differ there alone."""

from array_api_compat import array_namespace

from attnproof import Array, Claim, differ, greater, probability_space, real, theorem

one = probability_space("Ω")


@theorem(
    "Random numbers that differ are at a distance",
    given={"X": real(one), "Y": real(one)},
    sources=("none",),
    assume=lambda X, Y: [differ(X, Y)],
)
def statement(X: Array, Y: Array) -> Claim:
    """E (X − Y)² > 0 if X and Y differ (false where they do with probability 0)."""
    xp = array_namespace(X)
    return greater(xp.sum((X - Y) ** 2, axis=0), 0)


@statement.negative_control("the other way round")
def below(X: Array, Y: Array) -> Claim:
    xp = array_namespace(X)
    return greater(0, xp.sum((X - Y) ** 2, axis=0))
