"""Every convolution commutes with translations, and a symmetric one with reversal too."""

from collections.abc import Callable

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, equal, function, real, rows, sizes, theorem
from attnproof.symbolic.givens import Function
from attnproof.theorems.definitions.convolution import convolution, windowed

(K,) = sizes("K", "offsets")


Sequence = Callable[[Array], Array]


def two_sided(s: Sequence, left: Array, middle: Array, right: Array, t: Array) -> Array:
    """Σ_k left_k s(t − 1 − k) + middle s(t) + Σ_k right_k s(t + 1 + k), k = 0, .., K − 1."""
    before, after = rows(K, lambda k: s(t - 1 - k)), rows(K, lambda k: s(t + 1 + k))
    total: Array = left @ before + middle * s(t) + right @ after
    return total


def mirrored(x: Array) -> Array:
    """Four entries in reverse order."""
    reverse: Array = array_namespace(x).stack([x[3 - i] for i in range(4)])
    return reverse


@theorem(
    "A convolution commutes with translations, and with reversal if its kernel is symmetric",
    given={
        "s": function(0, says="any sequence, one that is 0 beyond its ends for instance"),
        "w": real(2 * K + 1, says="any kernel"), "h": real(K, says="one side of a kernel"),
        "g": real(K, says="its other side"), "c": real(says="its middle"),
        "t": real(), "shift": real(), "m": real(says="the sum of a place and its mirror image"),
        "x": real(4), "a": real(), "b": real(),
    },
    sources=("cf. document 001, on convolutional networks",),
    claims=("T18b",),
)  # fmt: skip
def statement(
    s: Function, w: Array, h: Array, c: Array, t: Array, shift: Array, m: Array,
    x: Array, a: Array, b: Array,
) -> dict[str, Claim]:  # fmt: skip
    """With the same weights on both sides left and right are alike, at the padded border too."""
    xp = array_namespace(x)

    def reversed_sequence(place: Array) -> Array:
        return s(m - place)

    kernel = xp.stack((a, b, a))
    return {
        "translation": equal(
            windowed(lambda place: s(place + shift), w, t), windowed(s, w, t + shift)
        ),
        "reversal": equal(two_sided(reversed_sequence, h, c, h, t), two_sided(s, h, c, h, m - t)),
        "four tokens and their border": equal(
            convolution(mirrored(x), kernel), mirrored(convolution(x, kernel))
        ),
    }


@statement.twin_of("the two sides of the kernel may differ")
def any_kernel(s: Function, h: Array, g: Array, c: Array, t: Array, m: Array) -> Claim:
    return equal(two_sided(lambda place: s(m - place), g, c, h, t), two_sided(s, g, c, h, m - t))
