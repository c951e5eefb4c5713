"""Position vectors for the patches of an image: one part for the row, one for the column."""

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, equal, frequencies, positions, sizes, theorem
from attnproof.theorems.definitions.sinusoidal import sinusoidal

(n,) = sizes("n", "tokens")
(B,) = sizes("B", "blocks")


def side_by_side(row: Array, column: Array, omega: Array) -> Array:
    """The sinusoidal vectors of the row and of the column, one after the other."""
    xp = array_namespace(row)
    both: Array = xp.concat((sinusoidal(row, omega), sinusoidal(column, omega)), axis=1)
    return both


@theorem(
    "Dot products of grid positions depend on the offsets in rows and in columns only",
    given={
        "row": positions(n), "column": positions(n), "s": positions(), "t": positions(),
        "omega": frequencies(B),
    },
    sources=("cf. document 001, its pattern for images",),
)  # fmt: skip
def statement(row: Array, column: Array, s: Array, t: Array, omega: Array) -> dict[str, Claim]:
    """Σ_b cos((r − r′) ω_b) + Σ_b cos((c − c′) ω_b): moving the picture changes nothing."""
    xp = array_namespace(row)
    still = side_by_side(row, column, omega)
    moved = side_by_side(row + s, column + t, omega)
    rows, columns = (p[:, None] - p[None, :] for p in (row, column))
    return {
        "as a function of both offsets": equal(
            still @ still.mT,
            xp.sum(xp.cos(rows[:, :, None] * omega) + xp.cos(columns[:, :, None] * omega), axis=-1),
        ),
        "when the picture moves": equal(moved @ moved.mT, still @ still.mT),
    }


@statement.twin_of("the two vectors are added up")
def added(row: Array, column: Array, s: Array, t: Array, omega: Array) -> Claim:
    still = sinusoidal(row, omega) + sinusoidal(column, omega)
    moved = sinusoidal(row + s, omega) + sinusoidal(column + t, omega)
    return equal(moved @ moved.mT, still @ still.mT)
