"""A convolution as a sum over a window, and the two ways to write its indices."""

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    equal,
    function,
    index_below,
    real,
    rows,
    sizes,
    theorem,
)  # fmt: skip
from attnproof.symbolic.givens import Function
from attnproof.theorems.definitions.convolution import convolution, windowed

(n,) = sizes("n", "tokens")
(K,) = sizes("K", "offsets")


@theorem(
    "y_t = Σ_k w_k x_{t+k}, k = −K, .., K, is the sum over j of w_j x_{t+j−K}",
    given={
        "x": real(n + 2 * K), "w": real(2 * K + 1, says="a kernel of odd length"),
        "i": index_below(n), "t": real(),
        "s": function(0, says="any sequence, one that is 0 beyond its ends for instance"),
    },
    sources=("document 001, the formula for convolution and the loop that computes it",),
    claims=("T18a",),
)  # fmt: skip
def statement(x: Array, w: Array, i: Array, s: Function, t: Array) -> dict[str, Claim]:
    """Where the window does not reach the border, output K + i reads x_i, .., x_{i+2K} only."""
    xp = array_namespace(x)
    left, right = w[:K], w[K:][1:]
    before = left @ rows(K, lambda k: s(t - K + k))
    after = right @ rows(K, lambda k: s(t + 1 + k))
    window = rows(2 * K + 1, lambda j: x[i + j])
    return {
        "left, middle and right": equal(windowed(s, w, t), before + w[K] * s(t) + after),
        "away from the border": equal(convolution(x, w)[K + i], xp.sum(w * window, axis=0)),
    }


@statement.twin_of("the kernel is turned round")
def turned(x: Array, w: Array, i: Array) -> Claim:
    xp = array_namespace(x)
    window = rows(2 * K + 1, lambda j: x[i + 2 * K - j])
    return equal(convolution(x, w)[K + i], xp.sum(w * window, axis=0))
