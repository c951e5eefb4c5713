"""What code that breaks a law may be meant to do, though nothing declares it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from ..asked import IN_ORDER, declared_of
from ..draw import Draw
from ..influence import influences, told_matrix
from ..response import allowance, gap
from ..subjects import Layer, Mask, Subject
from .softmax import DECLARE, no_order

__all__ = ["meant_otherwise"]

KEYS = 8
SCORES = ("what is returned beside the output is not what multiplies the values, and its rows do "
          "not add up to 1: scores may be meant")  # fmt: skip
NEAR_ONE = 1e-2  # far above what short formats leave of a sum of weights, far below scores


def meant_otherwise(law: str, subject: Subject, draw: Draw, floor: float = 0.0) -> str:
    """Why code in which order counts need not be at fault; "" where its declaration says it is.

    Relative positions leave equal tokens equal outputs; a mask hides some tokens from others.
    """
    if law == "true-means-visible" and isinstance(subject, Mask):
        declared = declared_of(subject)
        told = "some query does not see its own key; declare the mask to have it compared"
        return "" if declared.causal is not None or declared.window else told
    if law == "weights-as-shown":
        return _of_scores(subject, draw)
    if law not in IN_ORDER:
        return ""
    known: Any = subject
    call = known.call if isinstance(subject, Layer) else known.layer
    if law == "permutation" and call is not None:
        return _tokens(known, call, draw, floor)
    return no_order(known, draw, KEYS)


def _of_scores(subject: Any, draw: Draw) -> str:
    """Whether what is returned beside the output adds up to no one: scores, by their sums."""
    q = draw.normal(1, subject.heads, KEYS, subject.width or 5, salt=81)
    k = draw.normal(1, subject.groups, KEYS, subject.width or 5, salt=82)
    off = (subject.weights(q, k).double().sum(-1) - 1).abs().max()
    return "" if off < NEAR_ONE else SCORES


def _tokens(subject: Any, call: Callable[[Tensor], Tensor], draw: Draw, floor: float) -> str:
    declared = declared_of(subject)
    if declared.positions == "none" and declared.causal is False:
        return ""
    x = draw.normal(2, KEYS, subject.embed, salt=81)
    reached = influences(call, x, draw) > 0
    if not bool(reached.all()):
        hidden = ("permuted tokens gave other outputs, and some tokens do not reach others "
                  f"({' '.join(told_matrix(reached))}): a mask that is not declared, or tokens "
                  f"that are mixed with heads; {DECLARE}")  # fmt: skip
        return "" if declared.causal is False else hidden
    one = x[:, :1].expand_as(x).contiguous()
    equal = allowance(call, one, draw=draw, floor=floor)
    alike = gap(equal.output, equal.output[:, :1].expand_as(equal.output)) <= equal()
    if declared.causal is False and not alike:
        return ""
    words = "relative" if alike else "absolute"
    return (f"permuted tokens gave other outputs: the code looks at positions ({words}) that are "
            f"not declared, or is at fault; {DECLARE}")  # fmt: skip
