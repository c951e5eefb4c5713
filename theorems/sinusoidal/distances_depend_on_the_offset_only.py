"""The distance of two sinusoidal encodings depends on their offset; of two sine-only ones not."""

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, equal, frequencies, positions, sizes, theorem
from attnproof.theorems.definitions.sinusoidal import sine_only, sinusoidal

(n,) = sizes("n", "tokens")
(B,) = sizes("B", "blocks")


@theorem(
    "‖PE(p) − PE(q)‖² = Σ_b (2 − 2 cos((p − q) ω_b))",
    given={
        "p": positions(n), "q": positions(n), "s": positions(), "omega": frequencies(B),
    },
    sources=("document 004, relative positions",),
    claims=("R0", "R8"),
)  # fmt: skip
def statement(p: Array, q: Array, s: Array, omega: Array) -> dict[str, Claim]:
    """Row i compares positions p_i and q_i; a common shift s changes nothing."""
    xp = array_namespace(p)
    gap = xp.sum((sinusoidal(p, omega) - sinusoidal(q, omega)) ** 2, axis=-1)
    moved = xp.sum((sinusoidal(p + s, omega) - sinusoidal(q + s, omega)) ** 2, axis=-1)
    return {
        "as a function of the offset": equal(
            gap, xp.sum(2 - 2 * xp.cos((p - q)[:, None] * omega), axis=-1)
        ),
        "under a common shift": equal(moved, gap),
    }


@statement.twin_of("the encoding has the sines only")
def sines(p: Array, q: Array, s: Array, omega: Array) -> Claim:
    xp = array_namespace(p)
    gap = xp.sum((sine_only(p, omega) - sine_only(q, omega)) ** 2, axis=-1)
    moved = xp.sum((sine_only(p + s, omega) - sine_only(q + s, omega)) ** 2, axis=-1)
    return equal(moved, gap)
