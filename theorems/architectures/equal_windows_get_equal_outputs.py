"""A convolution tells equal tokens apart by their windows and by nothing else."""

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, chain, equal, real, sizes, theorem
from attnproof.theorems.definitions.convolution import convolution

before, after, left, right = sizes("before after left right", "tokens")
(K,) = sizes("K", "offsets")


def listed(x: Array, *numbers: int) -> Array:
    """These numbers as an array like x."""
    xp = array_namespace(x)
    array: Array = xp.stack([number * xp.ones(()) for number in numbers])
    return array


def amid(first: Array, window: Array, last: Array, w: Array) -> Array:
    """The output at the middle of a window that stands between other tokens."""
    xp = array_namespace(window)
    output: Array = convolution(xp.concat((first, window, last)), w)[first.shape[0] + K]
    return output


@theorem(
    "A convolution gives equal outputs to equal windows, wherever they stand",
    given={
        "z": real(2 * K + 1, says="a window"), "w": real(2 * K + 1, says="a kernel"),
        "a": real(before), "b": real(after), "c": real(left), "d": real(right),
    },
    sources=("cf. document 001, repeated tokens under a convolution",),
    claims=("T18c",),
)  # fmt: skip
def statement(z: Array, w: Array, a: Array, b: Array, c: Array, d: Array) -> dict[str, Claim]:
    """The two 2's of 1, 2, 3, 1, 2, 3 are such a case, for the kernel 0.2, 0.6, 0.2."""
    output = convolution(listed(z, 1, 2, 3, 1, 2, 3), listed(z, 1, 3, 1) / 5)
    return {
        "equal windows": chain(
            amid(a, z, b, w),
            ("nothing else is read", w @ z),
            ("nothing else is read", amid(c, z, d, w)),
        ),
        "the two 2's": equal(output[1], output[4]),
    }


@statement.twin_of("the windows have their middle token in common", y=real(2 * K + 1))
def same_token(z: Array, y: Array, w: Array, a: Array, b: Array) -> Claim:
    xp = array_namespace(z)
    other = xp.where(xp.arange(2 * K + 1) == K, z, y)
    return equal(amid(a, z, b, w), amid(a, other, b, w))
