"""Elementwise operations on arrays and plain numbers together.

Literal numbers of a term stay Python numbers until they meet an array, as in written code, so
that they take the array's dtype and never widen it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from operator import add, and_, eq, le, lt, mul, or_
from typing import Any

import torch

from attnproof.symbolic.terms import Term, free, postorder

__all__ = ["combine", "is_number", "may_round"]

_FOLDED: dict[str, Callable[[Any, Any], Any]] = {"add": add, "mul": mul, "and": and_, "or": or_}
_COMPARED: dict[str, Callable[[Any, Any], Any]] = {"equal": eq, "less": lt, "less_equal": le}
_OF_NUMBERS: dict[str, Callable[..., float]] = {
    "exp": math.exp, "log": math.log, "cos": math.cos, "sin": math.sin, "tanh": math.tanh,
    "sqrt": math.sqrt, "abs": abs, "maximum": max,
}  # fmt: skip


def is_number(value: Any) -> bool:
    """Whether a value is a plain number, not an array."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def combine(
    op: str, operands: Sequence[Any], data: Any, xp: Any, truth: Callable[[Any], Any]
) -> Any:
    """The elementwise operation ``op`` of these operands, in the order the term has them."""
    plain = all(is_number(x) for x in operands)
    if op in _FOLDED:
        return reduce(_FOLDED[op], operands)
    if op in _COMPARED:
        result = _COMPARED[op](*operands)
        return torch.tensor(result) if isinstance(result, bool) else result
    if op in ("floor_divide", "remainder"):
        return _divided(op, *operands)
    if op == "not":
        return ~operands[0]
    if op == "indicator":
        return truth(operands[0])
    if op == "power":
        return _power(operands[0], data, plain)
    if op == "where":
        return xp.where(*operands)
    if plain:
        return _OF_NUMBERS[op](*operands)
    if op == "maximum":
        first, second = operands
        return xp.maximum(second, first) if is_number(first) else xp.maximum(first, second)
    return getattr(xp, op)(*operands)


def _divided(op: str, a: Any, b: Any) -> Any:
    """⌊a/b⌋ and a − b·⌊a/b⌋ of integers; by 0 they are 0 and a."""
    if isinstance(b, int):
        quotient = a // b if b else 0 * a
    else:
        quotient = torch.where(b == 0, 0, a // torch.where(b == 0, 1, b))
    return quotient if op == "floor_divide" else a - b * quotient


def _power(base: Any, exponent: int, plain: bool) -> Any:
    if plain and base == 0 and exponent < 0:
        return 0.0
    if exponent >= 0:
        return base**exponent
    return 1 / base if exponent == -1 else 1 / base**-exponent


def may_round(t: Term) -> bool:
    """Whether an operation on plain numbers is one that rounds, and not on mere literals.

    Those are drawn or counted numbers, and angles, whose sine may cancel.
    """
    rounds = t.op in ("exp", "log", "cos", "sin", "tanh", "sqrt")
    if not rounds and not (t.op == "power" and t.data < 0):
        return False
    counts = any(v.op == "index" or (v.op == "var" and v.data[1] == "natural") for v in free(t))
    return counts or any(part.op == "pi" for part in postorder(t))
