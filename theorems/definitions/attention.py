"""Softmax and attention as defined in the sources.

Plain array code, which runs on symbolic, NumPy and torch arrays.
"""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic.definition import definition


@definition(r"\operatorname{softmax}")
def softmax(scores: Any) -> Any:
    r"""Row softmax: exp(s_j) / Σ_k exp(s_k) along the last axis; exp(−inf) is 0.

    Vaswani et al. 2017, section 3.2.1; Ganev, Notation.
    """
    xp = array_namespace(scores)
    weights = xp.exp(scores)
    return weights / xp.sum(weights, axis=-1, keepdims=True)


@definition(r"\operatorname{Att}")
def attention(query: Any, key: Any, value: Any) -> Any:
    r"""softmax(Q Kᵀ / √ℓ) V for Q: (.., r, ℓ), K: (.., n, ℓ), V: (.., n, d).

    Vaswani et al. 2017, eq. 1; Ganev, Definition 2.1.
    """
    return softmax(query @ key.mT / query.shape[-1] ** 0.5) @ value


@definition(r"\operatorname{MaskedAtt}")
def masked_attention(query: Any, key: Any, value: Any, keep: Any) -> Any:
    r"""Attention with the score −inf wherever ``keep``: (.., r, n) is False.

    Vaswani et al. 2017, section 3.2.3; Ganev, section 2.6.
    """
    xp = array_namespace(query)
    scores = query @ key.mT / query.shape[-1] ** 0.5
    return softmax(xp.where(keep, scores, -xp.inf)) @ value


@definition(r"\operatorname{BiasedAtt}")
def biased_attention(query: Any, key: Any, value: Any, bias: Any) -> Any:
    r"""softmax(Q Kᵀ / √ℓ + bias) V; the bias: (.., r, n) may hold −inf.

    Press, Smith and Lewis 2022, section 3.
    """
    return softmax(query @ key.mT / query.shape[-1] ** 0.5 + bias) @ value


@definition(r"\operatorname{SelfAtt}")
def self_attention(tokens: Any, to_query: Any, to_key: Any, to_value: Any) -> Any:
    r"""Att(X W_Q, X W_K, X W_V) for X: (n, p), W_Q, W_K: (p, ℓ), W_V: (p, d).

    Ganev, section 2.4.
    """
    return attention(tokens @ to_query, tokens @ to_key, tokens @ to_value)


@definition(r"\operatorname{MultiHead}")
def multi_head(tokens: Any, to_query: Any, to_key: Any, to_value: Any, output: Any) -> Any:
    r"""Σ_h Att(X W_Q^h, X W_K^h, X W_V^h) W_O^h, with one matrix per head.

    X: (n, p), W_Q, W_K: (H, p, ℓ), W_V: (H, p, d), W_O: (H, d, e).

    Vaswani et al. 2017, section 3.2.2; Ganev, Remark 2.4.
    """
    xp = array_namespace(tokens)
    heads = attention(tokens @ to_query, tokens @ to_key, tokens @ to_value)
    return xp.sum(heads @ output, axis=0)


def causal(tokens: Any) -> Any:
    """The mask (n, n) that keeps keys j <= i, for tokens: (n, ..)."""
    xp = array_namespace(tokens)
    place = xp.arange(tokens.shape[0], device=tokens.device)
    return place[None, :] <= place[:, None]


def causal_self_attention(tokens: Any, to_query: Any, to_key: Any, to_value: Any) -> Any:
    """Self-attention in which token i sees the tokens j <= i."""
    return masked_attention(tokens @ to_query, tokens @ to_key, tokens @ to_value, causal(tokens))


@definition(r"\operatorname{MultiHeadAtt}")
def sum_of_heads(
    query: Any, key: Any, value: Any, to_query: Any, to_key: Any, to_value: Any
) -> Any:
    r"""Σ_h Att(Q W_Q^h, K W_K^h, V W_V^h), with one matrix of each kind per head.

    Q: (r, ℓ), K: (n, ℓ), V: (n, d), W_Q, W_K: (H, ℓ, p), W_V: (H, d, e) -> (r, e).

    Ganev, section 2.5.
    """
    xp = array_namespace(query)
    return xp.sum(attention(query @ to_query, key @ to_key, value @ to_value), axis=0)


def side_by_side(heads: Any) -> Any:
    """The outputs of H heads concatenated for each query: (H, r, q) -> (r, H·q)."""
    xp = array_namespace(heads)
    count, rows, width = heads.shape
    return xp.reshape(xp.permute_dims(heads, (1, 0, 2)), (rows, count * width))


@definition("P")
def permutation_matrix(sigma: Any) -> Any:
    r"""The matrix whose column j is the basis vector e_{σ(j)}: (n,) -> (n, n).

    Column j of X P is column σ(j) of X.  Document 002, definition of a spatial permutation.
    """
    xp = array_namespace(sigma)
    return xp.eye(sigma.shape[0])[:, sigma]


@definition(r"\operatorname{softmax}_{\mathrm{col}}")
def column_softmax(scores: Any) -> Any:
    r"""exp(s_ij) / Σ_k exp(s_kj): every column of (n, m) becomes a distribution over n keys."""
    xp = array_namespace(scores)
    weights = xp.exp(scores)
    return weights / xp.sum(weights, axis=0, keepdims=True)


@definition(r"A_{s}")
def column_self_attention(tokens: Any, to_key: Any, to_query: Any, to_value: Any) -> Any:
    r"""W_v X softmax((W_k X)ᵀ W_q X) over columns, for X: (d, n), W_k, W_q: (ℓ, d), W_v: (e, d).

    No scale.  Document 002, as its proof uses it.
    """
    scores = (to_key @ tokens).mT @ (to_query @ tokens)
    return to_value @ tokens @ column_softmax(scores)


@definition(r"A_{Q}")
def learned_query_attention(tokens: Any, to_key: Any, query: Any, to_value: Any) -> Any:
    r"""W_v X softmax((W_k X)ᵀ Q) over columns, for X: (d, n), W_k: (ℓ, d), Q: (ℓ, m).

    With W_v: (e, d) the output has one column for each query: (e, m).  Document 002, as its
    proof uses it.
    """
    return to_value @ tokens @ column_softmax((to_key @ tokens).mT @ query)


Summary = tuple[Any, Any, Any]


def summary(scores: Any, values: Any, shift: Any) -> Summary:
    r"""(m, Σ_j exp(s_j − m), Σ_j exp(s_j − m) v_j) for scores: (n,), values: (n, d), any shift m.

    Milakov and Gimelshein 2018, algorithm 3; Dao et al. 2022 (FlashAttention), section 3.1.
    """
    xp = array_namespace(scores)
    weights = xp.exp(scores - shift)
    return shift, xp.sum(weights, axis=-1), weights @ values


def merge(first: Summary, second: Summary) -> Summary:
    r"""The summary of two blocks merged, at the larger of their shifts.

    Milakov and Gimelshein 2018, section 3.1; with the outputs, Dao et al. 2022, section 3.1.
    """
    (m1, z1, o1), (m2, z2, o2) = first, second
    xp = array_namespace(o1, o2)
    m = xp.maximum(m1, m2)
    a, b = xp.exp(m1 - m), xp.exp(m2 - m)
    return m, a * z1 + b * z2, a * o1 + b * o2
