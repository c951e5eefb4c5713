"""The dot product of two sinusoidal encodings depends on their offset only."""

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, equal, frequencies, positions, sizes, theorem
from attnproof.theorems.definitions.sinusoidal import sine_only, sinusoidal

r, n = sizes("r n", "tokens")
(B,) = sizes("B", "blocks")


@theorem(
    "PE(p)·PE(q) depends on p − q only",
    given={
        "p": positions(r), "q": positions(n), "s": positions(), "omega": frequencies(B),
    },
    sources=("cf. document 000, sinusoidal embedding",),
    claims=("B16", "R32"),
)  # fmt: skip
def statement(p: Array, q: Array, s: Array, omega: Array) -> dict[str, Claim]:
    """PE(p)·PE(q) = Σ_b cos((p − q) ω_b), and ‖PE(p)‖² = B; a common shift s changes nothing."""
    xp = array_namespace(p)
    gram = sinusoidal(p, omega) @ sinusoidal(q, omega).mT
    offsets = p[:, None] - q[None, :]
    return {
        "as a function of the offset": equal(
            gram, xp.sum(xp.cos(offsets[:, :, None] * omega), axis=-1)
        ),
        "under a common shift": equal(sinusoidal(p + s, omega) @ sinusoidal(q + s, omega).mT, gram),
        "the squared norm": equal(xp.sum(sinusoidal(p, omega) ** 2, axis=-1), B * xp.ones(r)),
    }


@statement.twin_of("the encoding has the sines only")
def sines(p: Array, q: Array, s: Array, omega: Array) -> Claim:
    return equal(
        sine_only(p + s, omega) @ sine_only(q + s, omega).mT,
        sine_only(p, omega) @ sine_only(q, omega).mT,
    )
