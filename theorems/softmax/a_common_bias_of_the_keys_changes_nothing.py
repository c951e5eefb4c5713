"""One vector added to every key leaves attention as it was."""

from attnproof.symbolic import Array, Claim, chain, equal, real, sizes, theorem
from attnproof.theorems.definitions.attention import attention, softmax

r, n = sizes("r n", "tokens")
ell, d = sizes("ell d", "features")


@theorem(
    "A bias that all keys share changes nothing",
    given={"Q": real(r, ell), "K": real(n, ell), "V": real(n, d), "t": real(ell)},
    sources=("consequence of Ganev, Definition 2.1",),
    claims=("X6",),
)
def statement(Q: Array, K: Array, V: Array, t: Array) -> Claim:
    """Att(Q, K + 1tᵀ, V) = Att(Q, K, V) for every t."""
    root = ell**0.5
    return chain(
        attention(Q, K + t, V),
        (
            "each row of scores moves by one number",
            softmax(Q @ K.mT / root + (Q @ t / root)[:, None]) @ V,
        ),
        ("softmax does not see it", attention(Q, K, V)),
    )


@statement.twin_of("the bias is added to the queries")
def queries(Q: Array, K: Array, V: Array, t: Array) -> Claim:
    return equal(attention(Q + t, K, V), attention(Q, K, V))
