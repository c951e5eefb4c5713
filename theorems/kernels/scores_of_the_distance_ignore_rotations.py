"""Scores that depend on the distance do not see a rotation, a reflection or a translation."""

from attnproof.symbolic import Array, Claim, chain, equal, orthogonal, real, sizes, theorem
from attnproof.theorems.definitions.kernels import distances, falling, squared_distances

r, n = sizes("r n", "tokens")
(ell,) = sizes("ell", "features")


@theorem(
    "‖gq − gk‖ = ‖q − k‖ for g orthogonal, so all four scores of the distance are unchanged",
    given={
        "Q": real(r, ell), "K": real(n, ell), "g": orthogonal(ell),
        "t": real(ell, says="a translation"),
    },
    sources=("Ganev, Example 2.7",),
    claims=("GS2.7.1", "G2.7"),
)  # fmt: skip
def statement(Q: Array, K: Array, g: Array, t: Array) -> dict[str, Claim]:
    """Rows of Q and K turned by g and moved by t; the scores are −‖·‖, −‖·‖²/2, and so on."""
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


@statement.twin_of("g is any square matrix", g=real(ell, ell))
def any_matrix(Q: Array, K: Array, g: Array) -> Claim:
    return equal(distances(Q @ g, K @ g), distances(Q, K))
