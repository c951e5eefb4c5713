"""A bias of the unsigned distance cannot tell a sequence from its mirror image."""

from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    chain,
    equal,
    function,
    permutation,
    positions,
    real,
    sizes,
    theorem,
)  # fmt: skip
from attnproof.symbolic.givens import Function
from attnproof.theorems.definitions.attention import biased_attention
from attnproof.theorems.definitions.hypotheses import nothing

(n,) = sizes("n", "tokens")
ell, d = sizes("ell d", "features")


@theorem(
    "A bias b(|p_i − p_j|) is the same for tokens at positions p and at positions c − p",
    given={
        "b": function(0, says="any function of a distance or of an offset"),
        "Q": real(n, ell), "K": real(n, ell), "V": real(n, d),
        "p": positions(n), "c": positions(), "q": positions(n), "sigma": permutation(n),
    },
    assume=lambda q, c, sigma: [(q[sigma], c - q)],
    sources=("document 000, absolute against relative embeddings",),
    claims=("B7", "B17", "G0.5"),
)  # fmt: skip
def statement(
    b: Function, Q: Array, K: Array, V: Array, p: Array, c: Array, q: Array, sigma: Array
) -> dict[str, Claim]:
    """With q = 0, .., n − 1 and c = n − 1, q[σ] = c − q says that σ reverses the sequence.

    A bias of the offset turns round: b(i − j) becomes b(j − i).
    """
    xp = array_namespace(Q)

    def by_distance(Q: Array, K: Array, V: Array, p: Array) -> Any:
        return biased_attention(Q, K, V, b(xp.abs(p[:, None] - p[None, :])))

    def by_offset(p: Array) -> Any:
        return biased_attention(Q, K, V, b(p[:, None] - p[None, :]))

    def reversed_rows(p: Array) -> Any:
        return by_distance(Q[sigma], K[sigma], V[sigma], p)

    return {
        "the distance": equal(by_distance(Q, K, V, c - p), by_distance(Q, K, V, p)),
        "the reversed sequence": chain(
            reversed_rows(q),
            ("the mirror image has the same distances", reversed_rows(c - q)),
            ("q[σ] = c − q", reversed_rows(q[sigma])),
            ("tokens move with their positions", by_distance(Q, K, V, q)[sigma]),
        ),
        "the offset": equal(by_offset(c - p), by_offset(-p)),
    }


@statement.twin_of("the bias is a function of the signed offset", assume=nothing)
def signed(b: Function, Q: Array, K: Array, V: Array, p: Array, c: Array) -> Claim:
    mirror = c - p
    return equal(
        biased_attention(Q, K, V, b(mirror[:, None] - mirror[None, :])),
        biased_attention(Q, K, V, b(p[:, None] - p[None, :])),
    )
