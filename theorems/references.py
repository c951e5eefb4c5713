"""Theorems that identify the reference definitions with which programs are compared."""

from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    equal,
    function,
    positions,
    positive,
    real,
    sizes,
    theorem,
)
from attnproof.symbolic.givens import Function
from attnproof.theorems.definitions.attention import (
    attention,
    biased_attention,
    causal,
    masked_attention,
)
from attnproof.theorems.definitions.references import (
    attend,
    capped,
    delta_rule,
    in_heads,
    latent_attention,
    linear_attention,
    of_each_query_head,
    rotated,
)
from attnproof.theorems.definitions.rotary import rotate, rotate_half

# Numbers of tokens are as small as those of features, as a reference is evaluated in full.
ell, d, c, r, n, m = sizes("ell d c r n m", "features")
B, H, G, g = sizes("B H G g", "heads")

VECTORS = {"Q": real(B, H, r, ell), "K": real(B, H, n, ell), "V": real(B, H, n, d)}
OF_ONE_LENGTH = VECTORS | {"Q": real(B, H, n, ell)}


@theorem(
    "The reference for attention is softmax(QKᵀ/√ℓ)V, and causal it is that under the causal mask",
    given=VECTORS | {"P": real(B, H, n, ell)},
    sources=("Vaswani et al. 2017, eq. 1 and section 3.2.3",),
)
def the_reference_is_attention(Q: Array, K: Array, V: Array, P: Array) -> dict[str, Claim]:
    """Hidden keys get the weight 0 directly, not by a score −∞."""
    return {
        "all keys": equal(attend(Q, K, V), attention(Q, K, V)),
        "causal": equal(attend(P, K, V, causal=True), masked_attention(P, K, V, causal(K[0, 0]))),
    }


@the_reference_is_attention.negative_control("each query sees one key more than its own")
def one_key_more(K: Array, V: Array, P: Array) -> Claim:
    place = array_namespace(K).arange(n)
    keep = place[None, :] <= place[:, None] + 1
    return equal(attend(P, K, V, causal=True), masked_attention(P, K, V, keep))


@theorem(
    "With G key heads the query heads h·g, .., h·g + g − 1 share key head h",
    given={"Q": real(B, G * g, r, ell), "K": real(B, G, n, ell), "V": real(B, G, n, d)},
    sources=("Ainslie et al. 2023 (GQA), section 2.2",),
)
def query_heads_in_a_row_share_a_key_head(Q: Array, K: Array, V: Array) -> Claim:
    """With one key head this is multi-query attention, with one per query head multi-head."""
    return equal(attend(Q, K, V), in_groups(Q, K, V))


def in_groups(Q: Array, K: Array, V: Array) -> Array:
    """Attention of one key head in each group of query heads."""
    xp = array_namespace(Q)
    groups = xp.reshape(Q, (B * G, g, r, ell))
    keys, values = xp.reshape(K, (B * G, 1, n, ell)), xp.reshape(V, (B * G, 1, n, d))
    found: Array = xp.reshape(attend(groups, keys, values), (B, G * g, r, d))
    return found


@query_heads_in_a_row_share_a_key_head.negative_control("all share the last key head")
def the_last_alone(Q: Array, K: Array, V: Array) -> Claim:
    return equal(attend(Q, K, V), attend(Q, K[:, G - 1 :], V[:, G - 1 :]))


@theorem(
    "A window at least as long as the keys hides nothing",
    given=OF_ONE_LENGTH,
    sources=("Beltagy, Peters and Cohan 2020 (Longformer), section 3.1, for the window",),
)
def a_window_as_long_as_the_keys_hides_nothing(Q: Array, K: Array, V: Array) -> Claim:
    """No query is n or more positions after a key."""
    return equal(attend(Q, K, V, causal=True, window=n), attend(Q, K, V, causal=True))


@a_window_as_long_as_the_keys_hides_nothing.negative_control("a window of one key")
def of_one_key(Q: Array, K: Array, V: Array) -> Claim:
    return equal(attend(Q, K, V, causal=True, window=1), attend(Q, K, V, causal=True))


@theorem(
    "A sink is an additional key with that score and the value 0",
    given=VECTORS | {"s": real(H, says="the score of the sink in each head")},
    sources=(
        "OpenAI 2025 (gpt-oss)",
        "Xiao et al. 2024 (StreamingLLM), section 3.1, for the value 0",
    ),
)
def a_sink_is_one_more_key(Q: Array, K: Array, V: Array, s: Array) -> Claim:
    """Its key is 0, so that its score is the added number."""
    return equal(attend(Q, K, V, sink=s), with_one_more(Q, K, V, s, 0))


def with_one_more(Q: Array, K: Array, V: Array, s: Array, value: int) -> Array:
    """Attention with one more key, of score s, whose value is constant."""
    xp = array_namespace(Q)
    zero = xp.zeros((B, H, 1, ell))
    bias = xp.concat((xp.zeros((H, r, n)), xp.broadcast_to(s[:, None, None], (H, r, 1))), axis=-1)
    more = xp.zeros((B, H, 1, d)) + value
    found: Array = attend(
        Q, xp.concat((K, zero), axis=2), xp.concat((V, more), axis=2), mask=bias[None]
    )
    return found


@a_sink_is_one_more_key.negative_control("its value is 1")
def of_value_one(Q: Array, K: Array, V: Array, s: Array) -> Claim:
    return equal(attend(Q, K, V, sink=s), with_one_more(Q, K, V, s, 1))


@theorem(
    "ALiBi's bias −m(i − j) has the effect of m·j: a constant in each row cancels",
    given=OF_ONE_LENGTH | {"m": real(H, says="one slope for each head")},
    sources=("Press, Smith and Lewis 2022 (ALiBi), section 3",),
)
def slopes_may_be_of_the_key_alone(Q: Array, K: Array, V: Array, m: Array) -> Claim:
    """Causal or not: the reference has the offset j − i, and not its absolute value."""
    keys = m[:, None, None] * array_namespace(Q).arange(n)
    return equal(attend(Q, K, V, slopes=m), attend(Q, K, V, mask=keys))


@slopes_may_be_of_the_key_alone.negative_control("m·i does the same")
def of_the_query(Q: Array, K: Array, V: Array, m: Array) -> Claim:
    queries = m[:, None, None] * array_namespace(Q).arange(n)[:, None]
    return equal(attend(Q, K, V, slopes=m), attend(Q, K, V, mask=queries))


@theorem(
    "T5 adds b(j − i) to QKᵀ without scaling: it is attention of √ℓ·Q with the bias b(j − i)",
    given=VECTORS
    | {
        "b": function(0, says="any function of the offset, as of buckets"),
        "u": positions(r),
        "v": positions(n),
        "s": positions(),
    },
    sources=("Raffel et al. 2020 (T5), section 2.1",),
)
def t5_divides_nothing(
    Q: Array, K: Array, V: Array, b: Function, u: Array, v: Array, s: Array
) -> dict[str, Claim]:
    """Queries at positions u, keys at positions v; all positions may be shifted together."""
    still, moved = v[None, :] - u[:, None], (v + s)[None, :] - (u + s)[:, None]
    t5 = attend(Q, K, V, scale=1, mask=b(still))
    return {
        "longer queries": equal(t5, biased_attention(ell**0.5 * Q, K, V, b(still))),
        "all positions move": equal(t5, attend(Q, K, V, scale=1, mask=b(moved))),
    }


@t5_divides_nothing.negative_control(
    "the queries are left as they are", Q=real(B, H, r, 4), K=real(B, H, n, 4)
)
def of_queries_as_they_are(Q: Array, K: Array, V: Array, b: Function, u: Array, v: Array) -> Claim:
    offset = v[None, :] - u[:, None]
    return equal(attend(Q, K, V, scale=1, mask=b(offset)), biased_attention(Q, K, V, b(offset)))


@theorem(
    "A soft cap is odd, and c·tanh(s/c) = c − 2c/(exp(2s/c) + 1)",
    given={"S": real(r, n), "c": positive()},
    sources=("Gemma Team 2024 (Gemma 2), section 2",),
)
def a_soft_cap_is_odd(S: Array, c: Array) -> dict[str, Claim]:
    """So it is a sigmoid on (−c, c), for scores of any sign."""
    xp = array_namespace(S)
    return {
        "odd": equal(capped(-S, c), -capped(S, c)),
        "by an exponential": equal(capped(S, c), c - 2 * c / (xp.exp(2 * (S / c)) + 1)),
    }


@a_soft_cap_is_odd.negative_control("it is even")
def even(S: Array, c: Array) -> Claim:
    return equal(capped(-S, c), capped(S, c))


@theorem(
    "With tables of cos pω and sin pω the reference rotates as RoPE does, in either layout",
    given={"X": real(B, H, n, 2 * d), "p": positions(n), "omega": real(d)},
    sources=("Su et al. 2021 (RoFormer), eq. 34",),
)
def the_reference_rotates(X: Array, p: Array, omega: Array) -> dict[str, Claim]:
    """Tables of d columns, and in the layout of halves of 2d, each column twice."""
    xp = array_namespace(X)
    cos, sin = tables(p, omega)
    twice = (xp.concat((cos, cos), axis=-1), xp.concat((sin, sin), axis=-1))
    return {
        "halves": equal(rotated(X, cos, sin), rotate_half(X, p, omega)),
        "halves, from tables twice as wide": equal(rotated(X, *twice), rotate_half(X, p, omega)),
        "interleaved": equal(rotated(X, cos, sin, layout="interleaved"), rotate(X, p, omega)),
    }


def tables(p: Array, omega: Array) -> tuple[Any, Any]:
    """cos pω and sin pω: (n, d)."""
    xp = array_namespace(p)
    angles = p[:, None] * omega
    return xp.cos(angles), xp.sin(angles)


@the_reference_rotates.negative_control(
    "the two layouts are one", X=real(B, H, n, 4), omega=real(2)
)
def one_layout(X: Array, p: Array, omega: Array) -> Claim:
    cos, sin = tables(p, omega)
    return equal(rotated(X, cos, sin), rotated(X, cos, sin, layout="interleaved"))


@theorem(
    "Causal linear attention carries the preceding tokens in one matrix KᵀV",
    given={"Q": real(B, H, n + m, ell), "K": real(B, H, n + m, ell), "V": real(B, H, n + m, d)},
    sources=("Katharopoulos et al. 2020, eq. 8 and 18",),
)
def linear_attention_carries_one_matrix(Q: Array, K: Array, V: Array) -> Claim:
    """The last m tokens, by their own linear attention and the state of the n before them."""
    return equal(linear_attention(Q, K, V)[:, :, n:], in_two_parts(Q, K, V))


def in_two_parts(Q: Array, K: Array, V: Array) -> Array:
    """The last m tokens by the state that the first n leave."""
    state = K[:, :, :n].mT @ V[:, :, :n]
    found: Array = linear_attention(Q[:, :, n:], K[:, :, n:], V[:, :, n:]) + Q[:, :, n:] @ state
    return found


@linear_attention_carries_one_matrix.negative_control("the first tokens are forgotten")
def forgotten(Q: Array, K: Array, V: Array) -> Claim:
    own = linear_attention(Q[:, :, n:], K[:, :, n:], V[:, :, n:])
    return equal(linear_attention(Q, K, V)[:, :, n:], own)


THREE = {
    "Q": real(B, H, 3, ell),
    "K": real(B, H, 3, ell),
    "V": real(B, H, 3, d),
    "beta": real(B, H, 3),
}


@theorem(
    "Three steps of the delta rule are S_i = α_i (I − β_i k_i k_iᵀ) S_{i−1} + β_i k_i v_iᵀ",
    given=THREE | {"g": real(B, H, 3, says="the logarithm of the decay α")},
    sources=("Yang, Kautz and Hatamizadeh 2024 (gated delta networks), eq. 10",),
)
def the_delta_rule_takes_away_before_it_adds(
    Q: Array, K: Array, V: Array, beta: Array, g: Array
) -> dict[str, Claim]:
    """o_i = q_i S_i.  The reference subtracts from v what k reads; it forms no I − β k kᵀ."""
    xp = array_namespace(Q)
    state = xp.zeros((B, H, ell, d))
    claims = {}
    for i, name in enumerate(("first step", "second step", "third step")):
        k, v, b = K[:, :, i, :, None], V[:, :, i, None, :], beta[:, :, i, None, None]
        decayed = xp.exp(g[:, :, i, None, None]) * state
        state = (xp.eye(ell) - b * (k @ k.mT)) @ decayed + b * (k @ v)
        read = (Q[:, :, i, None, :] @ state)[:, :, 0]
        claims[name] = equal(delta_rule(Q, K, V, beta, g)[:, :, i], read)
    return claims


@the_delta_rule_takes_away_before_it_adds.negative_control("what is read is not decayed first")
def of_the_state_before_its_decay(Q: Array, K: Array, V: Array, beta: Array, g: Array) -> Claim:
    k, v = K[:, :, 0, :, None], V[:, :, 0, None, :]
    l, w = K[:, :, 1, :, None], V[:, :, 1, None, :]
    b, c = beta[:, :, 0, None, None], beta[:, :, 1, None, None]
    first = b * (k @ v)
    decayed = array_namespace(Q).exp(g[:, :, 1, None, None]) * first
    second = decayed + c * l * (w - l.mT @ first)
    return equal(delta_rule(Q, K, V, beta, g)[:, :, 1], (Q[:, :, 1, None, :] @ second)[:, :, 0])


@theorem(
    "With decay 1 the gated delta rule is the delta rule, in three steps",
    given=THREE,
    sources=("Yang, Kautz and Hatamizadeh 2024 (gated delta networks), section 3.1",),
)
def a_decay_of_one_is_none(Q: Array, K: Array, V: Array, beta: Array) -> Claim:
    """Its logarithm is 0."""
    return equal(delta_rule(Q, K, V, beta, 0.0 * beta), delta_rule(Q, K, V, beta))


@a_decay_of_one_is_none.negative_control("a decay of e has no effect")
def of_a_decay_of_e(Q: Array, K: Array, V: Array, beta: Array) -> Claim:
    return equal(delta_rule(Q, K, V, beta, 0.0 * beta + 1), delta_rule(Q, K, V, beta))


@theorem(
    "Latent attention is attention over latent vectors: W_K acts on queries, W_V on the output",
    given={
        "Q": real(1, H, r, ell),
        "C": real(1, n, c),
        "W_K": real(H, c, ell),
        "W_V": real(H, c, d),
    },
    sources=("DeepSeek-AI 2024 (DeepSeek-V2), section 2.1.2",),
)
def the_maps_of_latent_attention_are_absorbed(Q: Array, C: Array, W_K: Array, W_V: Array) -> Claim:
    """So one vector per token is cached, and not its keys and values for all heads.

    The statement is about one row of a batch.
    """
    return equal(latent_attention(Q, C, W_K, W_V), absorbed(Q, C, W_K, W_V, ell))


def absorbed(Q: Array, C: Array, W_K: Array, W_V: Array, width: Array) -> Array:
    """Attention over latent vectors, the scores divided by the root of a width."""
    xp = array_namespace(Q)
    all_heads = xp.broadcast_to(C[:, None], (1, H, n, c))
    found: Array = attend(Q @ W_K.mT / width**0.5, all_heads, all_heads, scale=1) @ W_V
    return found


@the_maps_of_latent_attention_are_absorbed.negative_control("scores over √c, the latent width")
def over_the_latent_width(Q: Array, C: Array, W_K: Array, W_V: Array) -> Claim:
    return equal(latent_attention(Q, C, W_K, W_V), absorbed(Q, C, W_K, W_V, c))


@theorem(
    "Channels are split into heads and concatenated again",
    given={"X": real(B, n, 3 * d)},
    sources=("Vaswani et al. 2017, section 3.2.2",),
)
def heads_are_cut_and_joined(X: Array) -> Claim:
    """Channel h·d + a of a token is channel a of its head h, of three."""
    return equal(of_each_query_head(in_heads(X, 3)), X)


@heads_are_cut_and_joined.negative_control("channel a·3 + h is channel a of head h")
def interleaved(X: Array) -> Claim:
    xp = array_namespace(X)
    heads = xp.permute_dims(xp.reshape(X, (B, n, d, 3)), (0, 3, 1, 2))
    return equal(in_heads(X, 3), heads)
