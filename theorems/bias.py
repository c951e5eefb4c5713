"""Biases that are added to attention scores."""

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
)
from attnproof.symbolic.givens import Function
from attnproof.theorems.definitions.attention import biased_attention, causal
from attnproof.theorems.definitions.positions import alibi
from attnproof.theorems.definitions.powers import no_hypotheses

r, n = sizes("r n", "tokens")
(H,) = sizes("H", "heads")
ell, d = sizes("ell d", "features")


@theorem(
    "A bias b(i − j), such as ALiBi, is unchanged by a common shift of all positions",
    given={
        "b": function(0, says="any function of the offset"),
        "Q": real(H, r, ell),
        "K": real(H, n, ell),
        "V": real(H, n, d),
        "u": positions(r),
        "v": positions(n),
        "s": positions(),
        "m": real(H, says="one slope for each head"),
    },
    sources=(
        "Press, Smith and Lewis 2022 (ALiBi), section 3",
        "Raffel et al. 2020 (T5), section 2.1, for a bias of the offset",
    ),
    claims=("B17",),
)
def a_bias_of_the_offset_ignores_a_common_shift(
    b: Function, Q: Array, K: Array, V: Array, u: Array, v: Array, s: Array, m: Array
) -> dict[str, Claim]:
    """Queries at positions u, keys at positions v, in any heads; ALiBi is −m_h |u_i − v_j|."""
    moved, still = (u + s)[:, None] - (v + s)[None, :], u[:, None] - v[None, :]
    return {
        "any function of the offset": equal(
            biased_attention(Q, K, V, b(moved)), biased_attention(Q, K, V, b(still))
        ),
        "ALiBi": equal(
            biased_attention(Q, K, V, alibi(u + s, v + s, m)),
            biased_attention(Q, K, V, alibi(u, v, m)),
        ),
    }


@a_bias_of_the_offset_ignores_a_common_shift.negative_control(
    "the bias depends on the key's position alone"
)
def absolute(b: Function, Q: Array, K: Array, V: Array, v: Array, s: Array) -> Claim:
    return equal(
        biased_attention(Q, K, V, b(v + s)[None, :]), biased_attention(Q, K, V, b(v)[None, :])
    )


@theorem(
    "ALiBi equals a key-only bias under a causal mask",
    given={
        "Q": real(H, n, ell),
        "K": real(H, n, ell),
        "V": real(H, n, d),
        "m": real(H, says="one slope for each head"),
    },
    sources=(
        "Press, Smith and Lewis 2022 (ALiBi), section 3, for the bias; their code has the key form",
    ),
)
def alibi_is_a_key_bias_under_a_causal_mask(Q: Array, K: Array, V: Array, m: Array) -> Claim:
    """−m |i − j| and m·j differ by m·i wherever j <= i: a constant in each row, which cancels."""
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
            "m·i is constant in row i, and softmax is unchanged by it",
            biased_attention(Q, K, V, xp.where(keep, keys, -xp.inf)),
        ),
    )


@alibi_is_a_key_bias_under_a_causal_mask.negative_control("without the mask")
def without_mask(Q: Array, K: Array, V: Array, m: Array) -> Claim:
    xp = array_namespace(Q)
    place = xp.arange(V.shape[1])
    return equal(
        biased_attention(Q, K, V, alibi(place, place, m)),
        biased_attention(Q, K, V, (m[:, None] * place)[:, None, :]),
    )


@theorem(
    "A bias b(|p_i − p_j|) is the same for tokens at positions p and at positions c − p",
    given={
        "b": function(0, says="any function of a distance or of an offset"),
        "Q": real(n, ell),
        "K": real(n, ell),
        "V": real(n, d),
        "p": positions(n),
        "c": positions(),
        "q": positions(n),
        "sigma": permutation(n),
    },
    assume=lambda q, c, sigma: [(q[sigma], c - q)],
    sources=("document 000, absolute against relative embeddings",),
    claims=("B7", "B17", "G0.5"),
)
def a_bias_of_the_distance_does_not_see_a_mirror_image(
    b: Function, Q: Array, K: Array, V: Array, p: Array, c: Array, q: Array, sigma: Array
) -> dict[str, Claim]:
    """With q = 0, .., n − 1 and c = n − 1, q[σ] = c − q says that σ reverses the sequence.

    A bias of the offset is reversed: b(i − j) becomes b(j − i).
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


@a_bias_of_the_distance_does_not_see_a_mirror_image.negative_control(
    "the bias is a function of the signed offset", assume=no_hypotheses
)
def signed(b: Function, Q: Array, K: Array, V: Array, p: Array, c: Array) -> Claim:
    mirror = c - p
    return equal(
        biased_attention(Q, K, V, b(mirror[:, None] - mirror[None, :])),
        biased_attention(Q, K, V, b(p[:, None] - p[None, :])),
    )
