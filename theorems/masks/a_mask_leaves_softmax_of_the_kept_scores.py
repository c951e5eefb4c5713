"""Adding a mask of 0 and minus infinity restricts softmax to the places where it is 0."""

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, equal, injection, real, sizes, theorem
from attnproof.theorems.definitions.attention import softmax

k, m, n = sizes("k m n", "tokens")


@theorem(
    "softmax(a + mask) is softmax over the kept places, extended by zeros",
    given={"a": real(n), "e": injection(k, n), "b": real(m), "c": real(k)},
    sources=("Ganev, section 2.6",),
    claims=("GS2.6.1", "GS2.6.2"),
)
def statement(a: Array, e: Array, b: Array, c: Array) -> dict[str, Claim]:
    """The kept places are those that e lists, any non-empty set, or the first m of m + k.

    A product with the rows e of the identity puts k numbers in the places e, and 0 elsewhere.
    """
    xp = array_namespace(a)
    kept = xp.isin(xp.arange(n), e)
    mask = xp.where(kept, 0, -xp.inf)
    masked = softmax(a + mask)
    return {
        "the first m places": equal(
            softmax(xp.concat((b, c)) + xp.concat((xp.zeros(m), xp.ones(k) * -xp.inf))),
            xp.concat((softmax(b), xp.zeros(k))),
        ),
        "on the kept places": equal(masked[e], softmax(a[e])),
        "zero elsewhere": equal(masked, softmax(a[e]) @ xp.eye(n)[e]),
        "as a product": equal(
            masked, xp.exp(a) * xp.exp(mask) / xp.sum(xp.exp(a) * xp.exp(mask), axis=0)
        ),
    }


@statement.twin_of("the masked scores are set to 0")
def zeros(a: Array, e: Array) -> Claim:
    xp = array_namespace(a)
    return equal(softmax(xp.where(xp.isin(xp.arange(n), e), a, 0))[e], softmax(a[e]))
