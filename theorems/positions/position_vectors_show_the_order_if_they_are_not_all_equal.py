"""Adding position vectors makes attention see the order, unless they are all the same."""

from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    equal,
    greater,
    permutation,
    positive,
    real,
    sizes,
    theorem,
)  # fmt: skip
from attnproof.theorems.definitions.attention import attention, softmax

r, n = sizes("r n", "tokens")
p, ell, d = sizes("p ell d", "features")


@theorem(
    "A table of equal rows leaves attention invariant; a table with two different rows need not",
    given={
        "Q": real(r, ell), "X": real(n, p), "P": real(n, p), "t": real(p), "W_K": real(p, ell),
        "W_V": real(p, d), "sigma": permutation(n), "c": positive(),
    },
    sources=("document 000, how to model order",),
    claims=("B7", "T26", "G0.5"),
)  # fmt: skip
def statement(
    Q: Array, X: Array, P: Array, t: Array, W_K: Array, W_V: Array, sigma: Array, c: Array
) -> dict[str, Claim]:
    """The smallest case: tokens 0, c at positions 0, c give more than tokens c, 0 there.

    There one query, 1, looks at two keys that are their own values.
    """
    xp = array_namespace(X)

    def answer(tokens: Array) -> Any:
        return attention(Q, tokens @ W_K, tokens @ W_V)

    def smallest(first: Array, second: Array) -> Any:
        tokens = xp.stack((first, second))
        return xp.sum(softmax(tokens) * tokens, axis=0)

    zero, more = xp.zeros(()), xp.exp(2 * c)
    return {
        "attention still ignores the order of the sums": equal(
            answer((X + P)[sigma]), answer(X + P)
        ),
        "all vectors equal": equal(answer(X[sigma] + t), answer(X + t)),
        "vectors 0 and c": greater(
            smallest(zero + zero, c + c),
            smallest(c + zero, zero + c),
            ("", c * (more - 1) / (more + 1)),
        ),
    }


@statement.twin_of("any table leaves attention invariant")
def any_table(Q: Array, X: Array, P: Array, W_K: Array, W_V: Array, sigma: Array) -> Claim:
    moved, still = X[sigma] + P, X + P
    return equal(attention(Q, moved @ W_K, moved @ W_V), attention(Q, still @ W_K, still @ W_V))
