"""A mask of −inf is the same as leaving the masked entries out."""

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, equal, injection, real, sizes, theorem
from attnproof.theorems.definitions.attention import softmax

r, k, n = sizes("r k n", "tokens")


@theorem(
    "Masked softmax is the softmax of the kept entries, extended by zeros",
    given={"S": real(r, n), "e": injection(k, n)},
    sources=("Ganev, section 2.6",),
)
def statement(S: Array, e: Array) -> Claim:
    """e lists the k >= 1 kept places: any non-empty mask, one for all rows (or r = 1)."""
    xp = array_namespace(S)
    kept = xp.isin(xp.arange(S.shape[1]), e)
    places = xp.eye(S.shape[1])[e]
    return equal(softmax(xp.where(kept[None, :], S, -xp.inf)), softmax(S[:, e]) @ places)


@statement.twin_of("masked entries are set to 0 instead of −inf")
def zero_fill(S: Array, e: Array) -> Claim:
    xp = array_namespace(S)
    kept = xp.isin(xp.arange(S.shape[1]), e)
    places = xp.eye(S.shape[1])[e]
    return equal(softmax(xp.where(kept[None, :], S, 0)), softmax(S[:, e]) @ places)
