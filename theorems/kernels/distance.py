"""Scores that are a function of the distance between query and key, and keys of one norm."""

from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    Law,
    at_least,
    chain,
    equal,
    exists,
    for_all,
    greater,
    nonnegative,
    orthogonal,
    positive,
    real,
    sizes,
    theorem,
)
from attnproof.theorems.definitions.attention import softmax
from attnproof.theorems.definitions.kernels import (
    batch_norm,
    box_car,
    centred,
    distances,
    epanechnikov,
    falling,
    half_norms,
    layer_norm,
    squared_distances,
    triangular,
    weights_by_distance,
)
from attnproof.theorems.definitions.powers import no_hypotheses

r, n, m = sizes("r n m", "tokens")
ell, d = sizes("ell d", "features")
QKV = {"Q": real(r, ell), "K": real(n, ell), "V": real(n, d)}


@theorem(
    "−‖q − k‖²/2 = q·k − ‖k‖²/2 − ‖q‖²/2, and softmax over the keys does not depend on ‖q‖",
    given={"Q": real(r, ell), "K": real(n, ell)},
    sources=("Ganev, section 2.7, the expansion of the square",),
    claims=("GS2.7.5",),
)
def the_squared_distance_is_the_dot_product_less_the_norms(Q: Array, K: Array) -> dict[str, Claim]:
    """The dot products here are not divided by √ℓ."""
    half_q, half_k = half_norms(Q)[:, None], half_norms(K)[None, :]
    return {
        "expansion": equal(-squared_distances(Q, K) / 2, Q @ K.mT - half_k - half_q),
        "weights": chain(
            weights_by_distance(Q, K),
            ("the square, multiplied out", softmax(Q @ K.mT - half_k - half_q)),
            ("‖q‖²/2 is constant in each row", softmax(Q @ K.mT - half_k)),
        ),
    }


@the_squared_distance_is_the_dot_product_less_the_norms.negative_control(
    "the norms of the keys are left out too"
)
def without_norms(Q: Array, K: Array) -> Claim:
    return equal(weights_by_distance(Q, K), softmax(Q @ K.mT))


@theorem(
    "‖gq − gk‖ = ‖q − k‖ for g orthogonal, so all four scores of the distance are unchanged",
    given={
        "Q": real(r, ell),
        "K": real(n, ell),
        "g": orthogonal(ell),
        "t": real(ell, says="a translation"),
    },
    sources=("Ganev, Example 2.7",),
    claims=("GS2.7.1", "G2.7"),
)
def scores_of_the_distance_ignore_rotations(
    Q: Array, K: Array, g: Array, t: Array
) -> dict[str, Claim]:
    """Rows of Q and K are mapped by g and translated by t; the scores are −‖·‖, −‖·‖²/2, etc."""
    moved = distances(Q @ g + t, K @ g + t)
    still = falling(distances(Q, K))
    return {
        "the squared distance": chain(
            squared_distances(Q @ g + t, K @ g + t),
            ("t cancels; g is linear", squared_distances(Q @ g, K @ g)),
            ("g gᵀ = 1", squared_distances(Q, K)),
        ),
        "the distance": equal(moved, distances(Q, K)),
        **{name: equal(score, still[name]) for name, score in falling(moved).items()},
    }


@scores_of_the_distance_ignore_rotations.negative_control(
    "g is any square matrix", g=real(ell, ell)
)
def any_matrix(Q: Array, K: Array, g: Array) -> Claim:
    return equal(distances(Q @ g, K @ g), distances(Q, K))


@theorem(
    "In each of the four, a key farther from the query scores no higher; q·k may be higher",
    given={"t": nonnegative(), "s": nonnegative(), "q": positive(ell), "u": positive()},
    sources=("Ganev, section 2.7, what follows the table",),
    claims=("GS2.7.3", "GS2.7.4"),
)
def scores_of_the_distance_fall_as_it_grows(
    t: Array, s: Array, q: Array, u: Array
) -> dict[str, Claim]:
    """Scores at distances t and t + s; then the keys q and (1 + u) q beside the query q."""
    xp = array_namespace(t)
    near, far = falling(t), falling(t + s)
    at_hand, beyond = q - q, q - (1 + u) * q
    return {
        "minus the distance": at_least(
            near["minus the distance"], far["minus the distance"], ("t cancels", s)
        ),
        "minus half its square": at_least(
            near["minus half its square"],
            far["minus half its square"],
            ("half of (t + s)² − t²", t * s + s**2 / 2),
        ),
        "triangular": at_least(
            triangular(t),
            triangular(t + s),
            (
                "both are positive if t + s < 1; otherwise the second is 0",
                xp.where(t + s <= 1, s, triangular(t)),
            ),
        ),
        "box car": at_least(
            box_car(t),
            box_car(t + s),
            ("1 only where t <= 1 < t + s", xp.astype((t <= 1) & ~(t + s <= 1), t.dtype)),
        ),
        "the distance rises": greater(
            xp.sum(beyond**2, axis=0),
            xp.sum(at_hand**2, axis=0),
            ("‖q − (1 + u) q‖² = u² ‖q‖²", u**2 * xp.sum(q**2, axis=0)),
        ),
        "and the dot product with it": greater(
            q @ ((1 + u) * q), q @ q, ("q·(u q)", u * xp.sum(q**2, axis=0))
        ),
    }


@scores_of_the_distance_fall_as_it_grows.negative_control("the score is the dot product")
def dot_product(q: Array, u: Array) -> Claim:
    return at_least(q @ q, q @ ((1 + u) * q))


def one_norm(K: Array, c: Array) -> list[tuple[Any, Any]]:
    """‖k_i‖²/2 = c for every key."""
    return [(half_norms(K), same(c))]


def same(c: Array) -> Array:
    """The same number for all keys."""
    xp = array_namespace(c)
    numbers: Array = c * xp.ones(n)
    return numbers


@theorem(
    "For keys of equal norm, attention with the score −‖q − k‖²/2 is attention with q·k",
    given={**QKV, "c": real()},
    assume=one_norm,
    sources=("Ganev, section 2.7, on keys of the same norm",),
    claims=("GS2.7.6", "GS2.7.7"),
)
def keys_of_one_norm_are_weighted_alike(Q: Array, K: Array, V: Array, c: Array) -> Claim:
    """The dot product is not divided by √ℓ; the bias ‖k‖²/2 is the same for all keys."""
    return chain(
        weights_by_distance(Q, K) @ V,
        ("the square, multiplied out", softmax(Q @ K.mT - half_norms(K)[None, :]) @ V),
        ("all keys have the same norm", softmax(Q @ K.mT - same(c)[None, :]) @ V),
        ("softmax is invariant under adding a constant", softmax(Q @ K.mT) @ V),
    )


@keys_of_one_norm_are_weighted_alike.negative_control(
    "the keys are batch-normalised instead", assume=no_hypotheses
)
def batch_normalised(Q: Array, K: Array, V: Array) -> Claim:
    keys = batch_norm(K)
    return equal(weights_by_distance(Q, keys) @ V, softmax(Q @ keys.mT) @ V)


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
def keys_of_nearly_one_norm_are_weighted_nearly_alike(
    Q: Array, K: Array, c: Array, delta: Array
) -> dict[str, Claim]:
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
            by_distance,
            least * by_dot,
            (
                "over the product of the two sums",
                least * xp.sum(xp.exp(both - other) * (xp.exp(up) - 1), axis=-1) / norms,
            ),
        ),
        "the weight by dot product": at_least(
            by_dot,
            least * by_distance,
            (
                "over the product of the two sums",
                least * xp.sum(xp.exp(both - here) * (xp.exp(down) - 1), axis=-1) / norms,
            ),
        ),
    }


@keys_of_nearly_one_norm_are_weighted_nearly_alike.negative_control(
    "the weight by distance is at most exp(−2δ) times the other"
)
def at_most(Q: Array, K: Array, delta: Array) -> Claim:
    xp = array_namespace(Q)
    return at_least(xp.exp(-2 * delta) * softmax(Q @ K.mT), weights_by_distance(Q, K))


def not_constant(K: Array, v: Array) -> list[tuple[Any, Any]]:
    """No key has all its features equal: the squares of its centred features add up to v > 0."""
    xp = array_namespace(K)
    return [(xp.sum(centred(K, 1) ** 2, axis=1, keepdims=True), v)]


@theorem(
    "Layer norm gives every key the norm √ℓ; after batch norm squared norms may be m and 1/m",
    given={"K": real(n, ell), "v": positive(n, 1), "u": positive()},
    assume=not_constant,
    sources=("cf. Ganev, section 2.7, which says it of batch normalisation",),
    claims=("GS2.7.7",),
)
def layer_norm_gives_keys_one_norm_and_batch_norm_does_not(
    K: Array, v: Array, u: Array
) -> dict[str, Claim | Law]:
    """For keys not constant over their features, and for m + 1 keys 0, .., 0, t of one feature.

    With t = (m + 1) u their mean is u and their variance m u².
    """
    xp = array_namespace(K)
    squares = xp.sum(centred(K, 1) ** 2, axis=1, keepdims=True)
    keys = xp.concat((xp.zeros((m, 1)), (m + 1) * u * xp.ones((1, 1))))
    keys_centred = centred(keys, 0)
    keys_variance = xp.mean(keys_centred**2, axis=0, keepdims=True)
    computed = for_all({}, lambda: equal(keys_variance, m * u**2 * xp.ones((1, 1))))
    return {
        "layer norm": chain(
            xp.sum(layer_norm(K) ** 2, axis=1),
            ("definition", xp.sum((centred(K, 1) / xp.sqrt(squares / ell)) ** 2, axis=1)),
            ("the squares add up to v", xp.sum((centred(K, 1) / xp.sqrt(v / ell)) ** 2, axis=1)),
            ("√(v/ℓ) is one number for each key", (squares / (v / ell))[:, 0]),
            ("the squares add up to v", (v / (v / ell))[:, 0]),
            ("v is not 0", ell * xp.ones(n)),
        ),
        "variance of 0, .., 0, t": computed,
        "batch norm of 0, .., 0, t": chain(
            xp.sum(batch_norm(keys) ** 2, axis=1),
            ("definition", xp.sum((keys_centred / xp.sqrt(keys_variance)) ** 2, axis=1)),
            (
                "the variance is m u²",
                xp.sum((keys_centred / xp.sqrt(m * u**2 * xp.ones((1, 1)))) ** 2, axis=1),
            ),
            (
                "(−u)² = u² for the m zeros, (m u)² for the outlier",
                xp.concat((xp.ones(m) / m, m * xp.ones(1))),
            ),
        ).with_facts(computed.at()),
    }


@layer_norm_gives_keys_one_norm_and_batch_norm_does_not.negative_control(
    "batch norm gives every key the norm √ℓ", assume=no_hypotheses
)
def of_batch_norm(K: Array) -> Claim:
    xp = array_namespace(K)
    return equal(xp.sum(batch_norm(K) ** 2, axis=-1), ell * xp.ones(n))


@theorem(
    "max(0, 1 − t) is the Epanechnikov kernel of the distance t, up to a factor",
    given={"u": nonnegative()},
    expected="refuted",
    sources=("Ganev, section 2.7, the table", "Epanechnikov 1969"),
    claims=("GS2.7.2",),
)
def the_triangular_kernel_is_not_epanechnikovs(u: Array) -> Claim:
    """False: the factor would be 1 at t = 0 and 3/2 at t = 1/2.

    Here t = u/2, which is any distance as u is.
    """
    t = u / 2
    return exists(real(), "c", lambda c: equal(c * triangular(t), epanechnikov(t)), free_of=(u,))


@the_triangular_kernel_is_not_epanechnikovs.negative_control(
    "the triangular kernel of the squared distance"
)
def of_the_square(u: Array) -> Claim:
    t = u / 2
    return exists(
        real(), "c", lambda c: equal(c * triangular(t**2), epanechnikov(t)), witness=1, free_of=(u,)
    )
