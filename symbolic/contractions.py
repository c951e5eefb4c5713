"""Hypotheses that say a product is the identity: the columns of K are orthonormal, A B = 1."""

from __future__ import annotations

from dataclasses import dataclass

from .terms import Term

__all__ = ["Contraction", "contraction"]


@dataclass(frozen=True)
class Contraction:
    """``first @ second = 1`` of two given matrices, or of one and its transpose.

    ``kind`` is "inverse", "columns" (Kᵀ K = 1) or "rows" (K Kᵀ = 1; K is then both).
    """

    kind: str
    first: Term
    second: Term


def contraction(left: Term, right: Term) -> Contraction | None:
    """What an equation says if one side is the identity and the other a product of givens.

    >>> from attnproof.symbolic.givens import real, sizes
    >>> from attnproof.symbolic.namespace import eye
    >>> n, d = sizes("n d")
    >>> K = real(n, d).named("K")
    >>> contraction((K.mT @ K).term, eye(d).term).kind
    'columns'
    >>> contraction((K @ K.mT).term, eye(d).term)
    """
    for product, one in ((left, right), (right, left)):
        if product.op != "matmul" or one.op != "eye" or product.shape != one.shape:
            continue
        a, b = product.args
        if _transposed(a) is b and b.op == "var":
            return Contraction("columns", b, b)
        if _transposed(b) is a and a.op == "var":
            return Contraction("rows", a, a)
        if a.op == b.op == "var" and a is not b:
            return Contraction("inverse", a, b)
    return None


def _transposed(t: Term) -> Term | None:
    return t.args[0] if t.op == "permute" and t.data == (1, 0) else None
