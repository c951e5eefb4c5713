"""The sequential mask itself has minus infinity above the diagonal, its exponential has 0."""

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, equal, real, sizes, theorem
from attnproof.theorems.definitions.attention import causal, softmax

(n,) = sizes("n", "tokens")


@theorem(
    "exp of the sequential mask is the lower triangular matrix of ones",
    given={"S": real(n, n)},
    sources=("Ganev, section 2.6, the sequential mask",),
    claims=("G2.5b",),
)
def statement(S: Array) -> dict[str, Claim]:
    """Row i keeps the keys j <= i, the first one always; its weights divide by that part."""
    xp = array_namespace(S)
    keep = causal(S)
    mask = xp.where(keep, 0, -xp.inf)
    lower = xp.astype(keep, S.dtype)
    return {
        "lower triangular": equal(xp.exp(mask), lower),
        "nothing above the diagonal": equal(xp.where(keep, 0, xp.exp(mask)), xp.zeros((n, n))),
        "each row keeps its first key": equal(xp.exp(mask)[:, 0], xp.ones(n)),
        "masked weights": equal(
            softmax(S + mask),
            xp.exp(S) * lower / xp.sum(xp.exp(S) * lower, axis=-1, keepdims=True),
        ),
    }


@statement.twin_of("the mask itself is 0 above the diagonal, so that its exponential is 1 there")
def zero_above(S: Array) -> Claim:
    xp = array_namespace(S)
    keep = causal(S)
    mask = xp.where(keep, 0, -xp.inf)
    return equal(xp.where(keep, 1, xp.exp(mask)), xp.ones((n, n)))
