"""If queries and keys have encoders of their own, lengths may change with the position."""

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, equal, frequencies, real, sizes, theorem
from attnproof.theorems.definitions.rotary import rotate

(n,) = sizes("n", "tokens")
(B,) = sizes("B", "blocks")


@theorem(
    "⟨e^{λu} R_u q, e^{−λv} R_v k⟩ = e^{−λ(v−u)} ⟨q, R_{v−u} k⟩",
    given={
        "Q": real(n, 2 * B), "K": real(n, 2 * B), "u": real(n), "v": real(n),
        "omega": frequencies(B), "rate": real(),
    },
    sources=("document 004, one encoder for queries and keys",),
    claims=("R28",),
)  # fmt: skip
def statement(
    Q: Array, K: Array, u: Array, v: Array, omega: Array, rate: Array
) -> dict[str, Claim]:
    """Row i holds one query at u_i and one key at v_i; their lengths are not those of q and k."""
    xp = array_namespace(Q)
    query = grown(rotate(Q, u, omega), rate * u)
    key = grown(rotate(K, v, omega), -rate * v)
    turned = rotate(K, v - u, omega)
    return {
        "the score depends on the offset": equal(
            xp.sum(query * key, axis=-1), xp.exp(-rate * (v - u)) * xp.sum(Q * turned, axis=-1)
        ),
        "the length of the query does not stay": equal(
            xp.sum(query**2, axis=-1), xp.exp(2 * rate * u) * xp.sum(Q**2, axis=-1)
        ),
    }


def grown(x: Array, logarithm: Array) -> Array:
    """Row i of x times the exponential of the logarithm's entry i."""
    xp = array_namespace(x)
    result: Array = xp.exp(logarithm)[:, None] * x
    return result


@statement.twin_of("both encoders grow")
def both_grow(Q: Array, K: Array, u: Array, v: Array, omega: Array, rate: Array) -> Claim:
    xp = array_namespace(Q)
    query, key = grown(rotate(Q, u, omega), rate * u), grown(rotate(K, v, omega), rate * v)
    turned = rotate(K, v - u, omega)
    return equal(
        xp.sum(query * key, axis=-1), xp.exp(-rate * (v - u)) * xp.sum(Q * turned, axis=-1)
    )
