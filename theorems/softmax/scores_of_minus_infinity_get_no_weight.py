"""Softmax on scores that may be minus infinity, one of them at least being finite."""

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    all_positive,
    at_least,
    equal,
    injection,
    real,
    sizes,
    theorem,
)  # fmt: skip
from attnproof.theorems.definitions.attention import softmax

k, n = sizes("k n", "tokens")


@theorem(
    "With one finite score at least, softmax is a distribution that is 0 exactly where s = −inf",
    given={"s": real(n), "e": injection(k, n)},
    sources=("Ganev, Notation, Softmax",),
    claims=("G1.3",),
)
def statement(s: Array, e: Array) -> dict[str, Claim]:
    """e lists the k >= 1 places whose score is finite, in any order: any non-empty set.

    weights[e] has the weights of these places; its product with the rows e of the identity puts
    them back where they were, and 0 in all other places.
    """
    xp = array_namespace(s)
    finite = xp.isin(xp.arange(n), e)
    weights = softmax(xp.where(finite, s, -xp.inf))
    place = xp.arange(k)
    total = xp.sum(xp.exp(s[e]), axis=0)
    others = xp.sum(xp.where(place[:, None] == place, 0, xp.exp(s[e])), axis=-1)
    return {
        "weights sum to one": equal(xp.sum(weights, axis=0), 1),
        "zero where the score is −inf": equal(weights, weights[e] @ xp.eye(n)[e]),
        "positive where it is finite": all_positive(weights[e]),
        "none is negative": at_least(weights, 0),
        "none is above one": at_least(1, weights[e], ("the others' share", others / total)),
    }


@statement.twin_of("every weight is positive")
def all_places(s: Array, e: Array) -> Claim:
    xp = array_namespace(s)
    return all_positive(softmax(xp.where(xp.isin(xp.arange(n), e), s, -xp.inf)))
