"""The periods of geometric frequencies grow from 2π towards 2πω and do not reach it."""

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    equal,
    greater,
    natural,
    positions,
    positive,
    theorem,
)  # fmt: skip
from attnproof.theorems.definitions.powers import number_power


@theorem(
    "The periods 2π θ^j of F = k + 1 frequencies grow with j, up to 2π θ^k < 2π θ^F",
    given={"excess": positive(), "j": natural(), "k": natural(), "p": positions()},
    sources=("document 004, the sine-only form and the final formula",),
    claims=("R6", "R12"),
)
def statement(excess: Array, j: Array, k: Array, p: Array) -> dict[str, Claim]:
    """θ = 1 + excess is ω^{1/F} for an ω > 1, and frequency j is ω^{−j/F} = 1/θ^j.

    F = d for sines alone, F = d/2 for pairs of channels; ω itself would be the next frequency.
    """
    xp = array_namespace(p)
    theta, turn = 1 + excess, 2 * xp.pi
    stretch = number_power(theta, j)
    here, later = p / stretch, (p + turn * stretch) / stretch
    return {
        "it is a period": equal(xp.sin(later), xp.sin(here)),
        "of the cosine as well": equal(xp.cos(later), xp.cos(here)),
        "the first period": equal(turn * number_power(theta, 0), turn),
        "the next period is longer": greater(
            turn * number_power(theta, j + 1), turn * stretch, ("", turn * stretch * excess)
        ),
        "the last period is below 2πω": greater(
            turn * number_power(theta, k + 1),
            turn * number_power(theta, k),
            ("", turn * number_power(theta, k) * excess),
        ),
    }


@statement.twin_of("the last period is 2πω")
def reached(excess: Array, k: Array) -> Claim:
    xp = array_namespace(excess)
    theta = 1 + excess
    return equal(2 * xp.pi * number_power(theta, k), 2 * xp.pi * number_power(theta, k + 1))
