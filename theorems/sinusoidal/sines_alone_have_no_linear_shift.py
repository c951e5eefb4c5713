"""Without the cosines no linear map shifts the encoding."""

from attnproof.symbolic import (
    Array,
    Claim,
    equal,
    exists,
    frequencies,
    positions,
    real,
    sizes,
    theorem,
)  # fmt: skip
from attnproof.theorems.definitions.rotary import block_rotation
from attnproof.theorems.definitions.sinusoidal import sine_only, sinusoidal

(n,) = sizes("n", "tokens")
(B,) = sizes("B", "blocks")


@theorem(
    "The sine-only encoding has a linear shift map",
    given={"p": positions(n), "k": positions(), "omega": frequencies(B)},
    expected="refuted",
    sources=("document 004, the sine-only form",),
    claims=("B14",),
)
def statement(p: Array, k: Array, omega: Array) -> Claim:
    """False: position 0 is encoded as 0, which every linear map keeps, and sin(kω) is not 0."""
    return exists(
        real(B, B),
        "M",
        lambda M: equal(sine_only(p + k, omega), sine_only(p, omega) @ M.mT),
        free_of=(p,),
    )


@statement.twin_of("the encoding has sines and cosines")
def pairs(p: Array, k: Array, omega: Array) -> Claim:
    return exists(
        real(2 * B, 2 * B),
        "M",
        lambda M: equal(sinusoidal(p + k, omega), sinusoidal(p, omega) @ M.mT),
        witness=block_rotation(-k * omega),
        free_of=(p,),
    )
