"""The sinusoidal encoding gives every natural position a vector of its own."""

from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, differ, frequencies, natural, sizes, theorem
from attnproof.theorems.definitions.sinusoidal import sinusoidal

(B,) = sizes("B", "blocks")


def first_frequency_one(a: Array, b: Array, omega: Array) -> list[Any]:
    """Two positions, and 1 as the first frequency."""
    return [differ(a, b), (omega[0], 1)]


@theorem(
    "PE(a) ≠ PE(b) for natural numbers a ≠ b, if the first frequency is 1",
    given={
        "a": natural("a position"), "b": natural("another position"), "omega": frequencies(B),
    },
    assume=first_frequency_one,
    sources=("document 000, unique positions", "Vaswani et al. 2017, section 3.5"),
    claims=("B15", "R0"),
)  # fmt: skip
def statement(a: Array, b: Array, omega: Array) -> Claim:
    """The first channel, sin p, tells them apart; every other frequency may be anything."""
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


@statement.twin_of("the frequencies are whole turns", assume=lambda a, b: [differ(a, b)])
def whole_turns(a: Array, b: Array) -> Claim:
    xp = array_namespace(a)
    table = sinusoidal(xp.stack((a, b)), 2 * xp.pi * xp.arange(B))
    return differ(table[0], table[1], table[0, 0], ("", table[1, 0]), table[0, 0] - table[1, 0])
