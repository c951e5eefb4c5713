"""Rotary position encoding."""

from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    chain,
    differ,
    equal,
    frequencies,
    greater,
    natural,
    permutation,
    positions,
    real,
    sizes,
    theorem,
)
from attnproof.symbolic.definition import definition
from attnproof.theorems.definitions.attention import attention, softmax
from attnproof.theorems.definitions.positions import sinusoidal
from attnproof.theorems.definitions.powers import no_hypotheses
from attnproof.theorems.definitions.rotary import product, rotate, rotate_half, to_half_split, unit

n, r = sizes("n r", "tokens")
(B,) = sizes("B", "blocks")
d, p = sizes("d p", "features")
QUERIES_AND_KEYS = {"Q": real(r, 2 * B), "K": real(n, 2 * B)}
PLACES = {"u": positions(r), "v": positions(n)}


@theorem(
    "Rotary encoding is linear in the token, preserves its norm, and rotates consecutive pairs",
    given={
        "X": real(n, 2 * B),
        "Y": real(n, 2 * B),
        "a": real(),
        "b": real(),
        "p": positions(n),
        "omega": frequencies(B),
        "s": natural("a natural position other than 0"),
    },
    assume=lambda s: [differ(s, 0)],
    sources=("document 004, pairs of coordinates", "Su et al. 2021 (RoFormer), eq. 34"),
    claims=("R24", "R35", "R40"),
)
def rotary_encoding_is_linear_and_keeps_lengths(
    X: Array, Y: Array, a: Array, b: Array, p: Array, omega: Array, s: Array
) -> dict[str, Claim]:
    """Pair (2k, 2k+1) of a token at position p is multiplied by exp(i p ω_k).

    So f(x) − x depends on x: at frequency 1 and a position s ≠ 0 it is 0 for the token 0, and
    (cos s − 1, sin s) for (1, 0).
    """
    xp = array_namespace(X)
    rotated = rotate(X, p, omega)
    one, zero = xp.eye(2)[:1], xp.zeros((1, 2))
    place, frequency = s[None], xp.ones(1)
    added, none = rotate(one, place, frequency) - one, rotate(zero, place, frequency) - zero
    return {
        "linear": equal(rotate(a * X + b * Y, p, omega), a * rotated + b * rotate(Y, p, omega)),
        "of the same length": equal(xp.sum(rotated**2, axis=-1), xp.sum(X**2, axis=-1)),
        "pair by pair": equal(
            xp.reshape(rotated, (n, B, 2)),
            product(xp.reshape(X, (n, B, 2)), unit(p[:, None] * omega)),
        ),
        "what it adds depends on the token": differ(
            added,
            none,
            xp.sin(s),
            ("the second entry, for (1, 0)", added[0, 1]),
            ("if both were the same", none[0, 1]),
            ("the second entry, for 0", 0),
            xp.sin(s),
        ),
    }


@rotary_encoding_is_linear_and_keeps_lengths.negative_control(
    "what it adds to a token does not depend on the token", assume=no_hypotheses
)
def added(X: Array, Y: Array, p: Array, omega: Array) -> Claim:
    return equal(rotate(X, p, omega) - X, rotate(Y, p, omega) - Y)


@theorem(
    "⟨R_u q, R_v k⟩ = ⟨q, R_{v−u} k⟩",
    given={
        "Q": real(n, 2 * B),
        "K": real(n, 2 * B),
        "u": positions(n),
        "v": positions(n),
        "omega": frequencies(B),
    },
    sources=("Su et al. 2021 (RoFormer), eq. 16", "document 004, final formula"),
    claims=("R24", "R25"),
)
def rotary_scores_depend_on_the_offset_only(
    Q: Array, K: Array, u: Array, v: Array, omega: Array
) -> Claim:
    """Row i holds one query at position u_i and one key at position v_i: any pair, any blocks."""
    xp = array_namespace(Q)
    a, b, c, d = Q[:, 0::2], Q[:, 1::2], K[:, 0::2], K[:, 1::2]
    offset = (v - u)[:, None] * omega
    return chain(
        xp.sum(rotate(Q, u, omega) * rotate(K, v, omega), axis=-1),
        (
            "block by block: cos u cos v + sin u sin v = cos(v − u), and so for the sine",
            xp.sum((a * c + b * d) * xp.cos(offset) + (b * c - a * d) * xp.sin(offset), axis=-1),
        ),
        ("which is the query against the key rotated by v − u", rotated(Q, K, v - u, omega)),
    )


def rotated(Q: Array, K: Array, offset: Array, omega: Array) -> Array:
    """⟨q_i, R(offset_i) k_i⟩, row by row."""
    xp = array_namespace(Q)
    result: Array = xp.sum(Q * rotate(K, offset, omega), axis=-1)
    return result


@rotary_scores_depend_on_the_offset_only.negative_control(
    "the key is rotated by the sum of the positions"
)
def by_the_sum(Q: Array, K: Array, u: Array, v: Array, omega: Array) -> Claim:
    xp = array_namespace(Q)
    return equal(
        xp.sum(rotate(Q, u, omega) * rotate(K, v, omega), axis=-1), rotated(Q, K, v + u, omega)
    )


@theorem(
    "Rotating only the queries preserves the relative property",
    given={**QUERIES_AND_KEYS, **PLACES, "s": positions(), "omega": frequencies(B)},
    expected="refuted",
    sources=("Su et al. 2021 (RoFormer), eq. 16 needs both",),
)
def rotating_only_the_queries_is_not_relative(
    Q: Array, K: Array, u: Array, s: Array, omega: Array
) -> Claim:
    """False: a common shift s of all positions rotates the queries but not the keys."""
    return equal(rotate(Q, u + s, omega) @ K.mT, rotate(Q, u, omega) @ K.mT)


@rotating_only_the_queries_is_not_relative.negative_control("queries and keys are rotated")
def both(Q: Array, K: Array, u: Array, v: Array, s: Array, omega: Array) -> Claim:
    return equal(
        rotate(Q, u + s, omega) @ rotate(K, v + s, omega).mT,
        rotate(Q, u, omega) @ rotate(K, v, omega).mT,
    )


@theorem(
    "The half-split and the interleaved layout give the same scores",
    given={
        **QUERIES_AND_KEYS,
        **PLACES,
        "omega": frequencies(B),
        "s": natural("a natural position other than 0"),
    },
    assume=lambda s: [differ(s, 0)],
    sources=("Su et al. 2021 (RoFormer), eq. 34, against the layout of GPT-NeoX and Llama code",),
    claims=("R35",),
)
def the_two_rotary_layouts_give_the_same_scores(
    Q: Array, K: Array, u: Array, v: Array, omega: Array, s: Array
) -> dict[str, Claim]:
    """half(x) sends channel 2b + c to c·B + b, for queries and keys alike.

    Without it, (1, 0, 0, 0) at a position s ≠ 0 and frequencies 1 becomes (cos s, sin s, 0, 0) in
    one layout and (cos s, 0, sin s, 0) in the other.
    """
    xp = array_namespace(Q)
    first, place, ones = xp.eye(4)[:1], s[None], xp.ones(2)
    interleaved, halves = rotate(first, place, ones), rotate_half(first, place, ones)
    return {
        "the encodings": equal(
            rotate_half(to_half_split(Q, omega), u, omega),
            to_half_split(rotate(Q, u, omega), omega),
        ),
        "the scores": equal(
            rotate_half(to_half_split(Q, omega), u, omega)
            @ rotate_half(to_half_split(K, omega), v, omega).mT,
            rotate(Q, u, omega) @ rotate(K, v, omega).mT,
        ),
        "another encoding of the same channels": differ(
            interleaved,
            halves,
            xp.sin(s),
            ("channel 1, interleaved", interleaved[0, 1]),
            ("if the two were equal", halves[0, 1]),
            ("channel 1, half-split", 0),
            xp.sin(s),
        ),
    }


@the_two_rotary_layouts_give_the_same_scores.negative_control(
    "the channels are not permuted", assume=no_hypotheses
)
def same_channels(Q: Array, K: Array, u: Array, v: Array, omega: Array) -> Claim:
    return equal(
        rotate_half(Q, u, omega) @ rotate_half(K, v, omega).mT,
        rotate(Q, u, omega) @ rotate(K, v, omega).mT,
    )


@theorem(
    "Rotary attention is unchanged when all positions are shifted by s",
    given={
        **QUERIES_AND_KEYS,
        "V": real(n, d),
        **PLACES,
        "s": positions(),
        "omega": frequencies(B),
    },
    sources=("Su et al. 2021 (RoFormer), eq. 16",),
    claims=("R24", "R34"),
)
def rotary_attention_is_unchanged_when_all_positions_move(
    Q: Array, K: Array, V: Array, u: Array, v: Array, s: Array, omega: Array
) -> Claim:
    """Queries at positions u and keys at positions v, all moved by the same s."""
    root = Q.shape[-1] ** 0.5
    moved = rotate(Q, u + s, omega) @ rotate(K, v + s, omega).mT
    still = rotate(Q, u, omega) @ rotate(K, v, omega).mT
    return chain(
        attention(rotate(Q, u + s, omega), rotate(K, v + s, omega), V),
        ("definition", softmax(moved / root) @ V),
        ("a score depends on the offset, and (v + s) − (u + s) = v − u", softmax(still / root) @ V),
        ("definition", attention(rotate(Q, u, omega), rotate(K, v, omega), V)),
    )


@rotary_attention_is_unchanged_when_all_positions_move.negative_control("only the keys move")
def keys_move(Q: Array, K: Array, V: Array, u: Array, v: Array, s: Array, omega: Array) -> Claim:
    return equal(
        attention(rotate(Q, u, omega), rotate(K, v + s, omega), V),
        attention(rotate(Q, u, omega), rotate(K, v, omega), V),
    )


def rotary_self_attention(
    X: Array, places: Array, S: Array, T: Array, W: Array, omega: Array
) -> Array:
    """Att(rot(X S), rot(X T), X W)."""
    query, key = rotate(X @ S, places, omega), rotate(X @ T, places, omega)
    output: Array = attention(query, key, X @ W)
    return output


@definition(r"\operatorname{quarter}")
def quarter_turns(X: Array) -> Array:
    """Rotary self-attention of two tokens (2, 2) at positions 0 and 1: (2,).

    A step rotates queries and keys, the tokens themselves, by π/2; values are second entries.
    """
    xp = array_namespace(X)
    places, omega = xp.arange(2), xp.pi / 2 * xp.ones(1)
    rotated = rotate(X, places, omega)
    output: Array = attention(rotated, rotated, X[:, 1:])[:, 0]
    return output


@theorem(
    "Rotary self-attention commutes with permutations of tokens together with their positions",
    given={
        "X": real(n, p),
        "S": real(p, 2 * B),
        "T": real(p, 2 * B),
        "W": real(p, d),
        "u": positions(n),
        "omega": frequencies(B),
        "sigma": permutation(n),
    },
    sources=("Su et al. 2021 (RoFormer), eq. 16", "cf. document 004"),
    claims=("R34",),
)
def rotary_attention_is_equivariant_when_tokens_carry_their_positions(
    X: Array, S: Array, T: Array, W: Array, u: Array, omega: Array, sigma: Array
) -> dict[str, Claim]:
    """Token i stands at position u_i before and after.

    If positions stay fixed, the score of (1, 0) for (0, 1) is −1/√2 in this order and 1/√2 in the
    other.
    """
    xp = array_namespace(X)
    still = rotary_self_attention(X, u, S, T, W, omega)
    moved = attention(
        rotate(X @ S, u, omega)[sigma], rotate(X @ T, u, omega)[sigma], (X @ W)[sigma]
    )
    first, second = xp.eye(2)[0], xp.eye(2)[1]
    root = xp.exp(1 / xp.sqrt(2 * xp.ones(())))
    return {
        "with their positions": chain(
            rotary_self_attention(X[sigma], u[sigma], S, T, W, omega),
            ("each row is rotated by its own position", moved),
            ("attention is equivariant", still[sigma]),
        ),
        "not if the positions stay": greater(
            quarter_turns(xp.stack((second, first)))[1],
            quarter_turns(xp.stack((first, second)))[0],
            ("1/2 − 1/(1 + e^√2)", (root - 1) * (root + 1) / (root**2 + 1) / 2),
        ),
    }


@rotary_attention_is_equivariant_when_tokens_carry_their_positions.negative_control(
    "the positions stay where they are"
)
def positions_stay(
    X: Array, S: Array, T: Array, W: Array, u: Array, omega: Array, sigma: Array
) -> Claim:
    return equal(
        rotary_self_attention(X[sigma], u, S, T, W, omega),
        rotary_self_attention(X, u, S, T, W, omega)[sigma],
    )


@theorem(
    "⟨x + PE(u), y + PE(v)⟩ is x·y + x·PE(v) + PE(u)·y + a function of v − u",
    given={
        "X": real(n, 2 * B),
        "Y": real(n, 2 * B),
        "u": positions(n),
        "v": positions(n),
        "s": natural(),
        "omega": frequencies(B),
        "W": real(2 * B, d),
    },
    assume=lambda s: [differ(s, 0)],
    sources=("document 004, absolute and rotary encodings",),
    claims=("R0", "R32", "R36"),
)
def added_positions_leave_cross_terms_in_the_scores(
    X: Array, Y: Array, u: Array, v: Array, s: Array, omega: Array, W: Array
) -> dict[str, Claim]:
    """Moving a query (1, 0) and a key 0 together from position 0 to s adds sin s to their score."""
    xp = array_namespace(X)
    P, R = sinusoidal(u, omega), sinusoidal(v, omega)
    relative = xp.sum(xp.cos((u - v)[:, None] * omega), axis=-1)
    crossed = xp.sum(X * R, axis=-1) + xp.sum(P * Y, axis=-1)
    return {
        "through a linear map": equal((X + P) @ W, X @ W + P @ W),
        "four terms": equal(
            xp.sum((X + P) * (Y + R), axis=-1), xp.sum(X * Y, axis=-1) + crossed + relative
        ),
        "a common shift is seen": differ(pair_score(s), pair_score(xp.zeros(())), xp.sin(s)),
    }


def pair_score(s: Array) -> Any:
    """The score of the query (1, 0) + PE(s) and the key (0, 0) + PE(s), at frequency 1."""
    xp = array_namespace(s)
    here = xp.stack((xp.sin(s), xp.cos(s)))
    return (xp.stack((xp.ones(()), xp.zeros(()))) + here) @ here


@added_positions_leave_cross_terms_in_the_scores.negative_control(
    "the scores are unchanged by a common shift", assume=no_hypotheses
)
def shifted(X: Array, Y: Array, u: Array, v: Array, s: Array, omega: Array) -> Claim:
    xp = array_namespace(X)
    moved = (X + sinusoidal(u + s, omega)) * (Y + sinusoidal(v + s, omega))
    still = (X + sinusoidal(u, omega)) * (Y + sinusoidal(v, omega))
    return equal(xp.sum(moved, axis=-1), xp.sum(still, axis=-1))
