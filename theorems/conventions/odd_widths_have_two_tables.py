"""An odd number of channels: cut down the next even table, or use the formula as it stands."""

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    differ,
    equal,
    frequencies,
    greater,
    natural,
    positive,
    real,
    sizes,
    theorem,
)  # fmt: skip
from attnproof.theorems.definitions.sinusoidal import sinusoidal

(n,) = sizes("n", "tokens")
(B,) = sizes("B", "blocks")


@theorem(
    "For C = 2B + 1 channels the frequencies ω^{−2b/(C+1)} and ω^{−2b/C} differ for b >= 1",
    given={
        "X": real(n, 2 * B - 1), "omega": frequencies(B), "w": positive(),
        "i": natural("b − 1"),
    },
    sources=("Ganev, Example 3.6, odd d'", "document 000, sinusoidal embedding"),
    claims=("G3.6f", "X2"),
)  # fmt: skip
def statement(X: Array, omega: Array, w: Array, i: Array) -> dict[str, Claim]:
    """Document 003 drops the last column of the table for C + 1 channels; 000 has 2b/C itself.

    The column that goes is a cosine, so every pair keeps its sine, even if there is but one pair:
    the data here have 2B − 1 columns, 1 or 3 or more.  Any base ω above 1 is
    exp(C (C + 1) w / 2) for some w > 0.  For C = 3 and ω = 64 the frequencies of the third column
    are 1/8 and 1/16, and its entries at 16 and 32 are sin 2, sin 4 and sin 1, sin 2.
    """
    xp = array_namespace(X)
    place, C, b = xp.arange(n), 2 * B + 1, 1 + i
    kept, table = X.shape[1], sinusoidal(place, omega)
    wide = xp.concat((X, xp.zeros((n, 1))), axis=1)
    wider = 2 * B + 2
    log_base = C * wider * w / 2
    by_cutting, by_formula = xp.exp(-2 * b * log_base / wider), xp.exp(-2 * b * log_base / C)
    one, log_64 = xp.ones(()), 6 * xp.log(2 * xp.ones(()))
    ours, theirs = (
        xp.stack((xp.sin(16 * frequency), xp.sin(32 * frequency)))
        for frequency in (xp.exp(-2 * log_64 / 4), xp.exp(-2 * log_64 / 3))
    )
    s, c = xp.sin(one), xp.cos(one)
    return {
        "the additive encoding": equal(X + table[:, :kept], (wide + table)[:, :kept]),
        "its first column": equal(table[:, :kept][:, 0], xp.sin(place * omega[0])),
        "frequencies": greater(
            by_cutting, by_formula,
            ("the smaller one, and what is left", by_formula * (xp.exp(b * w) - 1)),
        ),
        "the third column for C = 3": differ(
            ours, theirs,
            s * theirs[0],
            ("if the columns were equal", s * ours[0]),
            ("sin 2", s * theirs[1]),
            ("if they were equal", s * ours[1]),
            ("sin 4 by double angles", 2 * c * ours[0] ** 2 - 2 * s * ours[0]),
            ("if they were equal", 2 * c * theirs[0] ** 2 - 2 * s * theirs[0]),
            ("sin 2 = 2 sin 1 cos 1", s * ours[0] - 2 * s**2),
            ("if they were equal", s * theirs[0] - 2 * s**2),
            2 * s**2,
        ),
    }  # fmt: skip


@statement.twin_of("the two frequencies are one")
def one_frequency(w: Array) -> Claim:
    xp = array_namespace(w)
    return equal(xp.exp(-w / (2 * B + 2)), xp.exp(-w / (2 * B + 1)))
