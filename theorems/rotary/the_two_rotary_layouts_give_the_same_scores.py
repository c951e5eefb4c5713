"""Half-split and interleaved rotary encoding differ by one fixed permutation of channels."""

from attnproof.symbolic import (
    Array,
    Claim,
    equal,
    frequencies,
    positions,
    real,
    sizes,
    theorem,
)  # fmt: skip
from attnproof.theorems.definitions.rotary import rotate, rotate_half, to_half_split

r, n = sizes("r n", "tokens")
(B,) = sizes("B", "blocks")


@theorem(
    "The half-split and the interleaved layout give the same scores",
    given={
        "Q": real(r, 2 * B), "K": real(n, 2 * B), "u": positions(r), "v": positions(n),
        "omega": frequencies(B),
    },
    sources=("Su et al. 2021 (RoFormer), eq. 34, against the layout of GPT-NeoX and Llama code",),
)  # fmt: skip
def statement(Q: Array, K: Array, u: Array, v: Array, omega: Array) -> dict[str, Claim]:
    """half(x) sends channel 2b + c to c·B + b, for queries and keys alike."""
    return {
        "the encodings": equal(
            rotate_half(to_half_split(Q, omega), u, omega),
            to_half_split(rotate(Q, u, omega), omega),
        ),
        "the scores": equal(
            rotate_half(to_half_split(Q, omega), u, omega)
            @ rotate_half(to_half_split(K, omega), v, omega).mT,
            rotate(Q, u, omega) @ rotate(K, v, omega).mT,
        ),
    }


@statement.twin_of("the channels are not permuted")
def same_channels(Q: Array, K: Array, u: Array, v: Array, omega: Array) -> Claim:
    return equal(
        rotate_half(Q, u, omega) @ rotate_half(K, v, omega).mT,
        rotate(Q, u, omega) @ rotate(K, v, omega).mT,
    )
