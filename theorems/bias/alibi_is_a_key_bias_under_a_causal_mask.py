"""Under a causal mask ALiBi adds the same to every query: a bias of the key alone."""

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, chain, equal, real, sizes, theorem
from attnproof.theorems.definitions.attention import biased_attention, causal
from attnproof.theorems.definitions.bias import alibi

(n,) = sizes("n", "tokens")
(H,) = sizes("H", "heads")
ell, d = sizes("ell d", "features")


@theorem(
    "ALiBi equals a key-only bias under a causal mask",
    given={
        "Q": real(H, n, ell), "K": real(H, n, ell), "V": real(H, n, d),
        "m": real(H, says="one slope for each head"),
    },
    sources=(
        "Press, Smith and Lewis 2022 (ALiBi), section 3, for the bias; their code has the key form",
    ),
)  # fmt: skip
def statement(Q: Array, K: Array, V: Array, m: Array) -> Claim:
    """−m |i − j| and m·j differ by m·i wherever j <= i: one constant a row, which cancels."""
    xp = array_namespace(Q)
    keep = causal(V[0])
    place = xp.arange(V.shape[1])
    distance = alibi(place, place, m)
    keys = (m[:, None] * place)[:, None, :]
    queries = (m[:, None] * place)[:, :, None]
    return chain(
        biased_attention(Q, K, V, xp.where(keep, distance, -xp.inf)),
        (
            "|i − j| = i − j wherever j <= i",
            biased_attention(Q, K, V, xp.where(keep, keys - queries, -xp.inf)),
        ),
        (
            "m·i is one constant in row i, and softmax does not see it",
            biased_attention(Q, K, V, xp.where(keep, keys, -xp.inf)),
        ),
    )


@statement.twin_of("without the mask")
def without_mask(Q: Array, K: Array, V: Array, m: Array) -> Claim:
    xp = array_namespace(Q)
    place = xp.arange(V.shape[1])
    return equal(
        biased_attention(Q, K, V, alibi(place, place, m)),
        biased_attention(Q, K, V, (m[:, None] * place)[:, None, :]),
    )
