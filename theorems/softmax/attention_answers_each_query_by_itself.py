"""A batch of queries is answered row by row; one answer is a weighted sum of the values."""

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, equal, index_below, real, sizes, theorem
from attnproof.theorems.definitions.attention import attention, softmax

r, n = sizes("r n", "tokens")
ell, d = sizes("ell d", "features")


@theorem(
    "Row i of attention is the answer to query i, a weighted sum of the values",
    given={
        "Q": real(r, ell), "K": real(n, ell), "V": real(n, d), "i": index_below(r),
        "q": real(ell), "p": real(ell), "c": real(),
    },
    sources=("Ganev, eqs. 2.1 to 2.3, section 2.2 and Definition 2.1",),
    claims=("G0.1", "G1.1", "GE2.1", "GS2.2.1", "G2.1"),
)  # fmt: skip
def statement(
    Q: Array, K: Array, V: Array, i: Array, q: Array, p: Array, c: Array
) -> dict[str, Claim]:
    """Vectors are the rows of a matrix; matrix products say the sums over keys all at once."""
    xp = array_namespace(Q)
    scores = xp.sum(q * K, axis=-1)
    root = ell**0.5

    def answer(weights: Array) -> Array:
        weighted: Array = xp.sum(weights[:, None] * V, axis=0)
        return weighted

    def shares(logits: Array) -> Array:
        weights: Array = xp.exp(logits) / xp.sum(xp.exp(logits), axis=0)
        return weights

    return {
        "rows are vectors": equal((Q @ K.mT)[i], K @ Q[i]),
        "one query, dot products": equal(V.mT @ (K @ q), answer(scores)),
        "one query, softmax": equal(V.mT @ softmax(K @ q), answer(shares(scores))),
        "one query, scaled": equal(V.mT @ softmax(K @ q / root), answer(shares(scores / root))),
        "dot products are linear in the query": equal(
            V.mT @ (K @ (c * q + p)), c * (V.mT @ (K @ q)) + V.mT @ (K @ p)
        ),
        "a batch, dot products": equal((Q @ K.mT @ V)[i], V.mT @ (K @ Q[i])),
        "a batch, softmax": equal((softmax(Q @ K.mT) @ V)[i], V.mT @ softmax(K @ Q[i])),
        "attention": equal(attention(Q, K, V), softmax(Q @ K.mT / root) @ V),
        "attention, query by query": equal(attention(Q, K, V)[i], V.mT @ softmax(K @ Q[i] / root)),
    }


@statement.twin_of("softmax runs over the queries instead of the keys")
def over_queries(Q: Array, K: Array, V: Array, i: Array) -> Claim:
    return equal((softmax(K @ Q.mT).mT @ V)[i], V.mT @ softmax(K @ Q[i]))
