"""Adding a constant to a row of scores changes no weight."""

from attnproof.symbolic import Array, Claim, equal, real, sizes, theorem
from attnproof.theorems.definitions.attention import softmax

r, n = sizes("r n", "tokens")


@theorem(
    "Softmax is unchanged by adding a constant to a row",
    given={"S": real(r, n), "c": real(r)},
    sources=("Milakov and Gimelshein 2018, eq. 2 (safe softmax)",),
)
def statement(S: Array, c: Array) -> Claim:
    """exp(s + c) = exp(s) exp(c), and exp(c) cancels; the ground of subtracting the maximum."""
    return equal(softmax(S + c[:, None]), softmax(S))


@statement.twin_of("the constant belongs to a column", c=real(n))
def column(S: Array, c: Array) -> Claim:
    return equal(softmax(S + c[None, :]), softmax(S))
