"""The four scores of the distance do not rise with it; the dot product may."""

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    at_least,
    greater,
    nonnegative,
    positive,
    sizes,
    theorem,
)  # fmt: skip
from attnproof.theorems.definitions.kernels import box_car, falling, triangular

(ell,) = sizes("ell", "features")


@theorem(
    "A key farther from the query scores no higher in each of the four; q·k may rise with it",
    given={
        "t": nonnegative(), "s": nonnegative(), "q": positive(ell), "u": positive(),
    },
    sources=("Ganev, section 2.7, what follows the table",),
    claims=("GS2.7.3", "GS2.7.4"),
)  # fmt: skip
def statement(t: Array, s: Array, q: Array, u: Array) -> dict[str, Claim]:
    """Scores at distances t and t + s; then the keys q and (1 + u) q beside the query q."""
    xp = array_namespace(t)
    near, far = falling(t), falling(t + s)
    at_hand, beyond = q - q, q - (1 + u) * q
    return {
        "minus the distance": at_least(
            near["minus the distance"], far["minus the distance"], ("t cancels", s)
        ),
        "minus half its square": at_least(
            near["minus half its square"], far["minus half its square"],
            ("half of (t + s)² − t²", t * s + s**2 / 2),
        ),
        "triangular": at_least(
            triangular(t), triangular(t + s),
            (
                "both are positive if t + s < 1; otherwise the second is 0",
                xp.where(t + s <= 1, s, triangular(t)),
            ),
        ),
        "box car": at_least(
            box_car(t), box_car(t + s),
            ("1 only where t <= 1 < t + s", xp.astype((t <= 1) & ~(t + s <= 1), t.dtype)),
        ),
        "the distance rises": greater(
            xp.sum(beyond**2, axis=0), xp.sum(at_hand**2, axis=0),
            ("‖q − (1 + u) q‖² = u² ‖q‖²", u**2 * xp.sum(q**2, axis=0)),
        ),
        "and the dot product with it": greater(
            q @ ((1 + u) * q), q @ q, ("q·(u q)", u * xp.sum(q**2, axis=0))
        ),
    }  # fmt: skip


@statement.twin_of("the score is the dot product")
def dot_product(q: Array, u: Array) -> Claim:
    return at_least(q @ q, q @ ((1 + u) * q))
