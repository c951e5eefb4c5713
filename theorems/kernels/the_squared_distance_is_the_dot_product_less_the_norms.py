"""Scoring by the squared distance is scoring by the dot product with a bias of each key."""

from attnproof.symbolic import Array, Claim, chain, equal, real, sizes, theorem
from attnproof.theorems.definitions.attention import softmax
from attnproof.theorems.definitions.kernels import (
    half_norms,
    squared_distances,
    weights_by_distance,
)  # fmt: skip

r, n = sizes("r n", "tokens")
(ell,) = sizes("ell", "features")


@theorem(
    "−‖q − k‖²/2 = q·k − ‖k‖²/2 − ‖q‖²/2, and softmax over the keys does not see ‖q‖",
    given={"Q": real(r, ell), "K": real(n, ell)},
    sources=("Ganev, section 2.7, the expansion of the square",),
    claims=("GS2.7.5",),
)
def statement(Q: Array, K: Array) -> dict[str, Claim]:
    """The dot products here are not divided by √ℓ."""
    half_q, half_k = half_norms(Q)[:, None], half_norms(K)[None, :]
    return {
        "expansion": equal(-squared_distances(Q, K) / 2, Q @ K.mT - half_k - half_q),
        "weights": chain(
            weights_by_distance(Q, K),
            ("the square, multiplied out", softmax(Q @ K.mT - half_k - half_q)),
            ("‖q‖²/2 is one constant in each row", softmax(Q @ K.mT - half_k)),
        ),
    }


@statement.twin_of("the norms of the keys are left out too")
def without_norms(Q: Array, K: Array) -> Claim:
    return equal(weights_by_distance(Q, K), softmax(Q @ K.mT))
