"""Sinusoidal encodings tell positions apart."""

from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    Law,
    differ,
    equal,
    for_all,
    frequencies,
    function,
    greater,
    natural,
    positions,
    positive,
    real,
    sizes,
    theorem,
)
from attnproof.symbolic.givens import Function
from attnproof.theorems.definitions.positions import sinusoidal
from attnproof.theorems.definitions.powers import (
    last_of_each_pair,
    number_power,
    power,
    powers,
    powers_of_blocks,
)
from attnproof.theorems.definitions.rotary import block_rotation

(B,) = sizes("B", "blocks")
(m,) = sizes("m", "features")


@theorem(
    "The periods 2π θ^j of F = k + 1 frequencies grow with j, up to 2π θ^k < 2π θ^F",
    given={"excess": positive(), "j": natural(), "k": natural(), "p": positions()},
    sources=("document 004, the sine-only form and the final formula",),
    claims=("R6", "R12"),
)
def periods_grow_and_stay_below_two_pi_omega(
    excess: Array, j: Array, k: Array, p: Array
) -> dict[str, Claim]:
    """θ = 1 + excess is ω^{1/F} for an ω > 1, and frequency j is ω^{−j/F} = 1/θ^j.

    F = d for sines alone, F = d/2 for pairs of channels; ω itself would be the next frequency.
    """
    xp = array_namespace(p)
    theta, rotate = 1 + excess, 2 * xp.pi
    stretch = number_power(theta, j)
    here, later = p / stretch, (p + rotate * stretch) / stretch
    return {
        "it is a period": equal(xp.sin(later), xp.sin(here)),
        "of the cosine as well": equal(xp.cos(later), xp.cos(here)),
        "the first period": equal(rotate * number_power(theta, 0), rotate),
        "the next period is longer": greater(
            rotate * number_power(theta, j + 1), rotate * stretch, ("", rotate * stretch * excess)
        ),
        "the last period is below 2πω": greater(
            rotate * number_power(theta, k + 1),
            rotate * number_power(theta, k),
            ("", rotate * number_power(theta, k) * excess),
        ),
    }


@periods_grow_and_stay_below_two_pi_omega.negative_control("the last period is 2πω")
def reached(excess: Array, k: Array) -> Claim:
    xp = array_namespace(excess)
    theta = 1 + excess
    return equal(2 * xp.pi * number_power(theta, k), 2 * xp.pi * number_power(theta, k + 1))


@theorem(
    "M^a x ≠ M^b x for a ≠ b, with blocks R(−θ^k), x = (0, 1, .., 0, 1), and every real θ",
    given={"theta": real(), "a": natural("a position"), "b": natural("another position")},
    assume=lambda a, b: [differ(a, b)],
    sources=("Ganev, Examples 3.5 and 3.6, there for θ no rational multiple of π",),
    claims=("G3.5c", "G3.6c"),
)
def the_first_block_tells_positions_apart(
    theta: Array, a: Array, b: Array
) -> dict[str, Claim | Law]:
    """The first block rotates by 1 per position, since θ^0 = 1; so no condition on θ is needed.

    Equal vectors would have sin a cos b − cos a sin b = 0; this is sin(a − b), which is not 0, as
    π is irrational.
    """
    xp = array_namespace(theta)
    omega = powers(theta, B)
    M, x = block_rotation(-omega), last_of_each_pair(omega)
    rotates = powers_of_blocks(-omega)
    here, there = power(M, a) @ x, power(M, b) @ x
    first = for_all(
        {"j": natural()},
        lambda j: equal((power(M, j) @ x)[0], xp.sin(j)).with_facts(rotates.at(j=j)),
    )
    second = for_all(
        {"j": natural()},
        lambda j: equal((power(M, j) @ x)[1], xp.cos(j)).with_facts(rotates.at(j=j)),
    )
    return {
        "powers of M": rotates,
        "M^j x begins with sin j": first,
        "then comes cos j": second,
        "positions are told apart": differ(
            here,
            there,
            here[0] * xp.cos(b) - here[1] * xp.sin(b),
            ("if the vectors were equal", there[0] * xp.cos(b) - there[1] * xp.sin(b)),
            ("M^b x begins with sin b, cos b", 0),
            xp.sin(a - b),
        ).with_facts(first.at(j=a), first.at(j=b), second.at(j=a), second.at(j=b)),
    }


@the_first_block_tells_positions_apart.negative_control(
    "the second block alone, by its sine, at θ = 0"
)
def second_block(a: Array, b: Array) -> Claim:
    xp = array_namespace(a)
    return differ(xp.sin(a * 0), xp.sin(b * 0))


def first_frequency_one(a: Array, b: Array, omega: Array) -> list[Any]:
    """Two positions, and 1 as the first frequency."""
    return [differ(a, b), (omega[0], 1)]


@theorem(
    "PE(a) ≠ PE(b) for natural numbers a ≠ b, if the first frequency is 1",
    given={"a": natural("a position"), "b": natural("another position"), "omega": frequencies(B)},
    assume=first_frequency_one,
    sources=("document 000, unique positions", "Vaswani et al. 2017, section 3.5"),
    claims=("B15", "R0"),
)
def sinusoidal_positions_are_unique(a: Array, b: Array, omega: Array) -> Claim:
    """The first channel, sin p, separates them; all other frequencies are arbitrary."""
    xp = array_namespace(omega)
    table = sinusoidal(xp.stack((a, b)), omega)
    return differ(
        table[0],
        table[1],
        xp.sin(a),
        ("the first channel, at frequency 1", table[0, 0]),
        ("if the two rows were equal", table[1, 0]),
        ("the first channel, at frequency 1", xp.sin(b)),
        2 * xp.cos((a + b) / 2) * xp.sin((a - b) / 2),
    )


@sinusoidal_positions_are_unique.negative_control(
    "the frequencies are whole turns", assume=lambda a, b: [differ(a, b)]
)
def whole_turns_of_pairs(a: Array, b: Array) -> Claim:
    xp = array_namespace(a)
    table = sinusoidal(xp.stack((a, b)), 2 * xp.pi * xp.arange(B))
    return differ(table[0], table[1], table[0, 0], ("", table[1, 0]), table[0, 0] - table[1, 0])


@theorem(
    "sin a ≠ sin b for natural numbers a ≠ b",
    given={
        "a": natural("a position"),
        "b": natural("another position"),
        "rest": function(0, out=(m,), says="any further channels"),
    },
    assume=lambda a, b: [differ(a, b)],
    sources=("document 000, unique positions; document 004, the sine-only form",),
    claims=("B15", "G3.1e", "G3.5c", "G3.6f", "R7", "R11"),
)
def sine_alone_tells_positions_apart(a: Array, b: Array, rest: Function) -> dict[str, Claim]:
    """sin a − sin b = 2 cos((a+b)/2) sin((a−b)/2), and neither factor is 0."""
    xp = array_namespace(a)
    product = 2 * xp.cos((a + b) / 2) * xp.sin((a - b) / 2)

    def encoded(n: Array) -> Any:
        return xp.concat((xp.sin(n)[None], rest(n)))

    return {
        "the sine": differ(xp.sin(a), xp.sin(b), product),
        "with any further channels": differ(
            encoded(a),
            encoded(b),
            xp.sin(a),
            ("the first channel", encoded(a)[0]),
            ("if the two were equal", encoded(b)[0]),
            ("the first channel", xp.sin(b)),
            product,
        ),
    }


@sine_alone_tells_positions_apart.negative_control("the frequency is one turn for each step")
def whole_turns_of_sines(a: Array, b: Array) -> Claim:
    xp = array_namespace(a)
    return differ(xp.sin(2 * xp.pi * a), xp.sin(2 * xp.pi * b))
