"""A shift of position is one linear map of the sinusoidal encoding."""

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
    "PE(p + k) = M_k PE(p), with M_k independent of p",
    given={"p": positions(n), "k": positions(), "omega": frequencies(B)},
    sources=("Vaswani et al. 2017, section 3.5", "document 000, sinusoidal embedding"),
    claims=("B14", "R12"),
)
def statement(p: Array, k: Array, omega: Array) -> Claim:
    """One matrix for each offset k serves every position: it turns block b by −k ω_b."""
    return exists(
        real(2 * B, 2 * B),
        "M",
        lambda M: equal(sinusoidal(p + k, omega), sinusoidal(p, omega) @ M.mT),
        witness=block_rotation(-k * omega),
        free_of=(p,),
    )


@statement.twin_of("the encoding has the sines only")
def sines(p: Array, k: Array, omega: Array) -> Claim:
    return exists(
        real(B, B),
        "M",
        lambda M: equal(sine_only(p + k, omega), sine_only(p, omega) @ M.mT),
        free_of=(p,),
    )
