"""Laws about attention: what comes out, and what it depends on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from array_api_compat import array_namespace

from ..encoding.applicability import ANYWHERE
from ..encoding.base import Encoding
from ..encoding.law import law
from ..encoding.names import c, r
from ..symbolic.claim import Claim, equal
from ..symbolic.givens import Given, natural, positions, real
from ..theorems.laws.law import by_offset, permuted


def tokens(e: Encoding) -> Given:
    """Return as many queries as there are keys: one of each for every token."""
    return real(c, e.width)


def another_length(e: Encoding) -> Given:
    """Return a number of tokens, as the encoding declares its own."""
    name = type(e).length
    return e.declared()[name] if name else positions()


law_of_attention = partial(law, group="attention")


@law_of_attention(
    "Attention is unchanged when all positions move", example="rope", breaks="sinusoidal"
)
def translation(e: Encoding, Q: Any, K: Any, V: Any, u: Any, p: Any, s: Any) -> Claim:
    """attention(Q, K, V; m + s, n + s) = attention(Q, K, V; m, n).

    Scores that depend only on the offset have this property; so do others, such as a bias that is
    linear in the key's position: a shift adds the same number to all scores of a query, and softmax
    cancels it.
    """
    return equal(*by_offset(partial(e.attention, Q, K, V), u, p, s=s))


@translation.negative_control("the keys move twice as far")
def translation_twice(e: Encoding, Q: Any, K: Any, V: Any, u: Any, p: Any, s: Any) -> Claim:
    return equal(e.attention(Q, K, V, u + s, p + 2 * s), e.attention(Q, K, V, u, p))


@law_of_attention(
    "Attention depends on the order of the tokens",
    example="rope",
    breaks="nope",
    some=True,
    given={"Q": tokens},
)
def sees_order(e: Encoding, Q: Any, K: Any, V: Any, p: Any, sigma: Any) -> Claim:
    """attention(Q[σ], K[σ], V[σ]) ≠ attention(Q, K, V)[σ] for some parameters, tokens and σ.

    The contrary: self-attention is equivariant under every permutation σ of the tokens.

    Token i is at position i, whichever token it is; if positions are vectors, at p_i.
    """
    at = p if e.axes else array_namespace(Q).arange(Q.shape[0])
    in_place = partial(e.attention, m=at, n=at)
    return equal(*permuted(in_place, [Q, K, V], sigma, [0] * 3))


@sees_order.negative_control("the positions are permuted with the tokens")
def sees_order_of_pairs(e: Encoding, Q: Any, K: Any, V: Any, p: Any, sigma: Any) -> Claim:
    return equal(*permuted(e.attention, [Q, K, V, p, p], sigma, [0] * 5))


@law_of_attention(
    "Attention is unchanged when tokens are permuted with their positions",
    example="rope",
    breaks="alibi-by-place",
    given={"Q": tokens},
)
def travels_with_tokens(e: Encoding, Q: Any, K: Any, V: Any, p: Any, sigma: Any) -> Claim:
    """attention(Q[σ], K[σ], V[σ]; p[σ], p[σ]) = attention(Q, K, V; p, p)[σ].

    The index of a token in memory does not matter, only its position p_i.
    """
    return equal(*permuted(e.attention, [Q, K, V, p, p], sigma, [0] * 5))


@travels_with_tokens.negative_control("the positions of the keys are unchanged")
def positions_stay(e: Encoding, Q: Any, K: Any, V: Any, p: Any, sigma: Any) -> Claim:
    moving = partial(e.attention, n=p)
    return equal(*permuted(moving, [Q, K, V, p], sigma, [0] * 4))


@law_of_attention(
    "Scores and values do not depend on the other tokens or their number",
    example="rope",
    breaks="normalised-index",
    given={**ANYWHERE, "other": another_length},
)
def independent_of_length(
    e: Encoding, Q: Any, K: Any, V: Any, u: Any, p: Any, row: Any, column: Any, other: Any
) -> dict[str, Claim]:
    """score(q_i, k_j, m_i, n_j) among r queries and c keys is the score of q_i and k_j alone.

    The same holds of the value at j as the query at i reads it.  If the encoding depends on the
    number of tokens, the two sides use different numbers.
    """
    alone = e.of_length(other)
    here, there = u[row], p[column]
    mark = equal(e.marks(Q, K, u, p)[row, column], alone.mark(Q[row], K[column], here, there))
    if not e.defines("add", "value"):
        return {"": mark}
    among = values_read(e, V, u, p)[row, column]
    return {
        "scores": mark,
        "values": equal(among, values_read(alone, V[column][None], here[None], there[None])[0, 0]),
    }


def values_read(e: Encoding, V: Any, m: Any, n: Any) -> Any:
    """Return the values as each query reads them: (r, c, e)."""
    values = (V + e.add(n) if e.defines("add") else V)[None]
    read = e.value(values, m[:, None], n[None]) if e.defines("value") else values
    return array_namespace(V).broadcast_to(read, (m.shape[0], *V.shape))


@independent_of_length.negative_control("alone, the key is at the query's position")
def alone_at_the_query(e: Encoding, Q: Any, K: Any, u: Any, p: Any, row: Any, column: Any) -> Claim:
    return equal(e.marks(Q, K, u, p)[row, column], e.mark(Q[row], K[column], u[row], u[row]))


def other_places(length: Any) -> Callable[[Encoding], Given]:
    """Return other positions; for whole ones, which are consecutive, the first.

    Values that equal those at arbitrary positions are equal everywhere.
    """
    return lambda e: natural() if e.whole else positions(length, *(e.axes,) * bool(e.axes))


@law_of_attention(
    "Positions affect the scores",
    example="rope",
    breaks="nope",
    some=True,
    given={"others": other_places(r), "rest": other_places(c)},
)
def acts_on_scores(e: Encoding, Q: Any, K: Any, u: Any, p: Any, others: Any, rest: Any) -> Claim:
    """score(q, k, m, n) ≠ score(q, k, m′, n′) for some parameters, q, k and positions.

    A mask counts.  The contrary: the scores are the same wherever the tokens are.
    """
    if e.whole:
        others, rest = (
            first + array_namespace(Q).arange(tokens.shape[0])
            for first, tokens in ((others, Q), (rest, K))
        )
    return equal(e.marks(Q, K, u, p), e.marks(Q, K, others, rest))


@acts_on_scores.negative_control("query and key have the same position")
def acts_on_tokens_at_one_place(e: Encoding, x: Any, y: Any, a: Any, b: Any) -> Claim:
    return equal(e.mark(x, y, a, a), e.mark(x, y, b, b))


@law_of_attention("Values do not depend on positions", example="rope", breaks="sinusoidal")
def leaves_values(e: Encoding, Q: Any, K: Any, V: Any, u: Any, p: Any) -> Claim:
    """attention(Q, K, V; m, n) = weights(Q, K; m, n) V: positions act through weights alone."""
    return equal(e.attention(Q, K, V, u, p), e.weights(Q, K, u, p) @ V)


@leaves_values.negative_control("the weights are those without positions")
def leaves_weights(e: Encoding, Q: Any, K: Any, V: Any, u: Any, p: Any) -> Claim:
    return equal(e.attention(Q, K, V, u, p), Encoding().weights(Q, K, u, p) @ V)
