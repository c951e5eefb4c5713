"""max(0, 1 − t) and max(0, 1 − t²) are not one kernel, whatever the factor."""

from attnproof.symbolic import Array, Claim, equal, exists, nonnegative, real, theorem
from attnproof.theorems.definitions.kernels import epanechnikov, triangular


@theorem(
    "max(0, 1 − t) is the Epanechnikov kernel of the distance t, up to a factor",
    given={"u": nonnegative()},
    expected="refuted",
    sources=("Ganev, section 2.7, the table", "Epanechnikov 1969"),
    claims=("GS2.7.2",),
)
def statement(u: Array) -> Claim:
    """False: the factor would be 1 at t = 0 and 3/2 at t = 1/2.

    Here t = u/2, which is any distance as u is.
    """
    t = u / 2
    return exists(real(), "c", lambda c: equal(c * triangular(t), epanechnikov(t)), free_of=(u,))


@statement.twin_of("the triangular kernel of the squared distance")
def of_the_square(u: Array) -> Claim:
    t = u / 2
    return exists(
        real(), "c", lambda c: equal(c * triangular(t**2), epanechnikov(t)), witness=1, free_of=(u,)
    )
