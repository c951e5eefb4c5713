"""Attention with the tokens as columns, and the matrix of a permutation."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic.definition import definition

__all__ = [
    "column_self_attention", "column_softmax", "learned_query_attention", "permutation_matrix",
]  # fmt: skip


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
