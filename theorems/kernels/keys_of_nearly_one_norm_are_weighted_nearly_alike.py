"""How far the weights by squared distance and those by dot product can lie apart."""

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, at_least, nonnegative, real, sizes, theorem
from attnproof.theorems.definitions.attention import softmax
from attnproof.theorems.definitions.kernels import half_norms, weights_by_distance

r, n = sizes("r n", "tokens")
(ell,) = sizes("ell", "features")


def nearly_one_norm(K: Array, c: Array, delta: Array) -> list[Claim]:
    """| ‖k_i‖²/2 − c | <= δ for every key."""
    return [at_least(delta, half_norms(K) - c), at_least(delta, c - half_norms(K))]


@theorem(
    "If |‖k‖²/2 − c| <= δ for all keys, the two weights differ by a factor of at most exp(2δ)",
    given={"Q": real(r, ell), "K": real(n, ell), "c": real(), "delta": nonnegative()},
    assume=nearly_one_norm,
    sources=("cf. Ganev, section 2.7, on keys of approximately the same norm",),
    claims=("GS2.7.6",),
)
def statement(Q: Array, K: Array, c: Array, delta: Array) -> dict[str, Claim]:
    """Neither weight is less than exp(−2δ) times the other.  The dot product is not scaled.

    With a = q·k and b = ‖k‖²/2 − c the weights are exp(a_i − b_i) / Σ exp(a_j − b_j) and
    exp(a_i) / Σ exp(a_j); δ − b and δ + b are at least 0, and so is exp(x) − 1 for
    x >= 0.
    """
    xp = array_namespace(Q)
    by_distance, by_dot = weights_by_distance(Q, K), softmax(Q @ K.mT)
    least = xp.exp(-2 * delta)
    a, b = Q @ K.mT, half_norms(K) - c
    norms = xp.sum(xp.exp(a), axis=-1)[:, None] * xp.sum(xp.exp(a - b), axis=-1)[:, None]
    both = a[:, :, None] + a[:, None, :]
    here, other = b[None, :, None], b[None, None, :]
    below, above = delta - (half_norms(K) - c), delta - (c - half_norms(K))
    up = below[None, :, None] + above[None, None, :]
    down = above[None, :, None] + below[None, None, :]
    return {
        "the weight by distance": at_least(
            by_distance, least * by_dot,
            (
                "over the product of the two sums",
                least * xp.sum(xp.exp(both - other) * (xp.exp(up) - 1), axis=-1) / norms,
            ),
        ),
        "the weight by dot product": at_least(
            by_dot, least * by_distance,
            (
                "over the product of the two sums",
                least * xp.sum(xp.exp(both - here) * (xp.exp(down) - 1), axis=-1) / norms,
            ),
        ),
    }  # fmt: skip


@statement.twin_of("the weight by distance is at most exp(−2δ) times the other")
def at_most(Q: Array, K: Array, delta: Array) -> Claim:
    xp = array_namespace(Q)
    return at_least(xp.exp(-2 * delta) * softmax(Q @ K.mT), weights_by_distance(Q, K))
