"""No matrix takes the sine-only encoding of every position to that of the shifted position."""

from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    differ,
    frequencies,
    natural,
    real,
    sizes,
    theorem,
)  # fmt: skip
from attnproof.theorems.definitions.hypotheses import nothing
from attnproof.theorems.definitions.sinusoidal import sine_only

(n,) = sizes("n", "tokens")
(B,) = sizes("B", "blocks")


def a_shift(a: Array, b: Array, omega: Array) -> list[Any]:
    """The shift a − b is not 0, and the first frequency is 1."""
    return [differ(a, b), (omega[0], 1)]


@theorem(
    "PE(p + s) = T PE(p) for p = 0, 1, .. holds for no matrix T and no integer s ≠ 0",
    given={"T": real(B, B), "a": natural(), "b": natural(), "omega": frequencies(B)},
    assume=a_shift,
    sources=("document 004, the question before its compound angles",),
    claims=("R10",),
)
def statement(T: Array, a: Array, b: Array, omega: Array) -> Claim:
    """s = a − b.  Position 0 has the code 0, which T keeps, and sin s is not 0."""
    xp = array_namespace(omega)
    places = xp.arange(n)
    moved, mapped = sine_only(places + (a - b), omega), sine_only(places, omega) @ T.mT
    return differ(
        moved,
        mapped,
        xp.sin(a - b),
        ("position 0, shifted, at frequency 1", moved[0, 0]),
        ("if T shifted the table", mapped[0, 0]),
        ("sin 0 = 0", 0),
        xp.sin(a - b),
    )


@statement.twin_of("the shift is 0 and T the identity", assume=nothing)
def no_shift(omega: Array) -> Claim:
    xp = array_namespace(omega)
    table = sine_only(xp.arange(n), omega)
    return differ(table, table @ xp.eye(B), table[0, 0], ("", (table @ xp.eye(B))[0, 0]), 1)
