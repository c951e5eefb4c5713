"""Stacks of layers that are powers: from 1, each layer multiplies by one and the same factor.

A reading only: what a reader sees as M^m the kernel keeps as ``iterate``.
"""

from __future__ import annotations

from .scalars import ONE, mul
from .terms import Term, free, instantiate, make

__all__ = ["power_base"]


def power_base(stack: Term) -> Term | None:
    """What the stack is the power of; None if it is no power.

    Only Y ↦ M Y from the identity counts, not Y ↦ Y M, and not a start other than 1: that these
    are powers too is a theorem, whose two sides must not look alike.

    >>> from attnproof.symbolic.claim import iterate
    >>> from attnproof.symbolic.givens import natural, real, sizes
    >>> from attnproof.symbolic.namespace import eye
    >>> (d,) = sizes("d")
    >>> M, x, m = real(d, d).named("M"), real(d).named("x"), natural().named("m")
    >>> power_base(iterate(m, eye(d), lambda t, Y: M @ Y).term)
    M
    >>> power_base(iterate(m, eye(d), lambda t, Y: Y @ M).term) is None
    True
    >>> power_base(iterate(m, x, lambda t, y: M @ y).term) is None
    True
    """
    depth, start, body = stack.args
    while start.op == "broadcast":
        start = start.args[0]
    if body.loose > 2 or not (start.op == "eye" if stack.ndim else start is ONE):
        return None
    layer = make("index", (depth,), "the layer")
    state = make("var", (), ("the state", "real"), stack.shape)
    filled = instantiate(body, layer, state)
    base = _factor(filled, state)
    return None if base is None or free(base) & {layer, state} else base


def _factor(t: Term, state: Term) -> Term | None:
    """A, where the term is A Y (or c y for numbers)."""
    if t.op == "matmul" and t.args[1] is state:
        return t.args[0]
    if t.op == "mul" and not t.ndim and state in t.args:
        others = list(t.args)
        others.remove(state)
        return mul(*others)
    if t.op == "matmul":
        inner = _factor(t.args[1], state)
        if inner is not None and inner.ndim:
            return make("matmul", (t.args[0], inner), shape=t.shape)
    return None
