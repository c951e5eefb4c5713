"""Two sequences of the same tokens, equally often each, are one to a fixed query."""

from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, chain, equal, index_map, real, sizes, theorem
from attnproof.theorems.definitions.attention import attention

r, n, m = sizes("r n m", "tokens")
a, b, c = sizes("a b c", "tokens")
p, ell, d = sizes("p ell d", "features")


@theorem(
    "Attention from a fixed query depends on how often each token occurs, and on nothing else",
    given={
        "Q": real(r, ell, says="queries that do not come from the tokens"),
        "E": real(m, p, says="one embedding for each token of the vocabulary"),
        "w": index_map(n, m), "W_K": real(p, ell), "W_V": real(p, d),
        "X": real(a, p), "Y": real(b, p), "Z": real(c, p),
    },
    sources=("document 000, the two sentences on a movie",),
    claims=("B6", "T1", "GS2.1.1"),
)  # fmt: skip
def statement(
    Q: Array, E: Array, w: Array, W_K: Array, W_V: Array, X: Array, Y: Array, Z: Array
) -> dict[str, Claim]:
    """If token t stands at c_t places, its weight is c_t exp(s_t), normalised.

    "my kid" "likes" "this movie" and "this movie" "likes" "my kid" are blocks X, Y, Z of tokens
    in two orders, whether the tokens are words or characters.
    """
    xp = array_namespace(E)
    count = xp.sum(xp.eye(m)[w], axis=0)
    weights = count * xp.exp(Q @ (E @ W_K).mT / ell**0.5)
    bag = weights @ (E @ W_V) / xp.sum(weights, axis=-1, keepdims=True)

    def answer(tokens: Array) -> Any:
        return attention(Q, tokens @ W_K, tokens @ W_V)

    def block(tokens: Array) -> tuple[Array, Array]:
        """What a block of tokens adds to the numerator and to the denominator."""
        weights = xp.exp(Q @ (tokens @ W_K).mT / ell**0.5)
        return weights @ (tokens @ W_V), xp.sum(weights, axis=-1, keepdims=True)

    (x, s), (y, t), (z, u) = block(X), block(Y), block(Z)
    return {
        "as a function of the counts": equal(answer(E[w]), bag),
        "first and last block exchanged": chain(
            answer(xp.concat((X, xp.concat((Y, Z))))),
            ("every block adds its part", (x + y + z) / (s + t + u)),
            ("sums have no order", answer(xp.concat((Z, xp.concat((Y, X)))))),
        ),
    }


@statement.twin_of("a token that occurs twice counts like one that occurs once")
def as_a_set(Q: Array, W_K: Array, W_V: Array, X: Array, Y: Array) -> Claim:
    xp = array_namespace(X)
    once, twice = xp.concat((X, Y)), xp.concat((X, xp.concat((Y, Y))))
    return equal(attention(Q, twice @ W_K, twice @ W_V), attention(Q, once @ W_K, once @ W_V))
