"""Positions counted from 0 or from 1: two tables that differ by one factor M."""

from attnproof.symbolic import Array, Claim, equal, real, rows, sizes, theorem
from attnproof.theorems.definitions.powers import embedding, power

(n,) = sizes("n", "tokens")
(d,) = sizes("d", "features")


@theorem(
    "If row j of n has M^(j−1) x, the first is x; with M^j x the table is the other times Mᵀ",
    given={"M": real(d, d), "x": real(d)},
    sources=("Ganev, introduction, against Definition 3.1",),
    claims=("G0.4",),
)
def statement(M: Array, x: Array) -> dict[str, Claim]:
    """Rows are counted from 1 in the source: its Definition 3.1 starts with M⁰x = x."""
    return {
        "the first row is x": equal(embedding(M, x, n)[0], x),
        "counted from 1": equal(from_one(M, x), embedding(M, x, n) @ M.mT),
    }


def from_one(M: Array, x: Array) -> Array:
    """The table with rows M¹x, M²x, .., Mⁿx."""
    table: Array = rows(n, lambda j: power(M, j + 1) @ x)
    return table


@statement.twin_of("both ways of counting give one table")
def one_table(M: Array, x: Array) -> Claim:
    return equal(from_one(M, x), embedding(M, x, n))
