"""The matrix g that turns queries and keys has their width, not that of the values."""

from attnproof.symbolic import Array, Claim, equal, orthogonal, real, sizes, theorem
from attnproof.theorems.definitions.attention import attention

r, n = sizes("r n", "tokens")
ell, d = sizes("ell d", "features")


@theorem(
    "Att(Qg, Kg, V) = Att(Q, K, V) for g in O(d), d the width of the values",
    given={"Q": real(r, ell), "K": real(n, ell), "V": real(n, d), "g": orthogonal(d)},
    expected="ill-typed",
    sources=("Ganev, Lemma 2.3, as printed",),
    claims=("G2.3",),
)
def statement(Q: Array, K: Array, V: Array, g: Array) -> Claim:
    """No statement: Q has ℓ columns and g has d rows."""
    return equal(attention(Q @ g, K @ g, V), attention(Q, K, V))


@statement.twin_of("g is in O(ℓ)", g=orthogonal(ell))
def width_of_the_keys(Q: Array, K: Array, V: Array, g: Array) -> Claim:
    return equal(attention(Q @ g, K @ g, V), attention(Q, K, V))
