"""Whole numbers in terms: which are some by their form, and their values; exponentials in them."""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Any

import torch
from torch import Tensor

from attnproof.symbolic.terms import Term, free, postorder

from ..integers import Integers
from ..walk import TooLarge, Where

__all__ = ["WHOLE_KINDS", "Whole", "depth_of", "is_whole", "positions_in", "whole"]

WHOLE_KINDS = ("natural", "position", "permutation", "injection", "index map")


class Whole(Integers):
    """Whole numbers of 64 bits that refuse to overflow."""

    def rows_elementwise(self, t: Term, where: Where) -> Any:
        """An operation entry by entry."""
        if t.op in ("add", "mul", "power"):
            sizes = [_most(self.rows(arg, where)) for arg in t.args]
            reached = {"add": sum(sizes), "mul": prod(sizes)}.get(t.op)
            if t.op == "power":
                reached = sizes[0] ** max(0, int(t.data))
            if reached is not None and reached >= 1 << 62:
                raise TooLarge("whole numbers of more than 62 bits")
        return super().rows_elementwise(t, where)

    def product(self, left: Any, right: Any) -> Tensor:
        """The product of two matrices of whole numbers."""
        if _most(left) * _most(right) * left.shape[-1] >= 1 << 62:
            raise TooLarge("whole numbers of more than 62 bits")
        return super().product(left, right)


def _most(value: Any) -> int:
    if not isinstance(value, Tensor):
        return abs(int(value))
    return int(value.abs().max()) if value.numel() and value.dtype != torch.bool else 1


@cache
def whole(term: Term) -> bool:
    """Whether a term is a whole number by its form."""
    for part in postorder(term):
        if part.op == "var" and part.data[1] not in WHOLE_KINDS:
            return False
        if part.op == "num" and part.data.denominator != 1:
            return False
        if part.op == "power" and part.data < 0:
            return False
        if part.op in ("exp", "log", "cos", "sin", "tanh", "sqrt", "call", "pi", "minus infinity",
                       "inverse", "space", "boolean"):  # fmt: skip
            return False
    return True


def positions_in(*terms: Term) -> list[str]:
    """The positions that terms read: drawn whole, and claimed of all real numbers."""
    found = frozenset[Term]().union(*map(free, terms))
    return sorted(str(v.data[0]) for v in found if v.op == "var" and v.data[1] == "position")


@cache
def depth_of(term: Term) -> int:
    """How many exponentials stand inside one another."""
    inner = max((depth_of(arg) for arg in term.args), default=0)
    return inner + (term.op == "exp")


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number, or an array of some."""
    return isinstance(value, int) or (
        isinstance(value, Tensor) and not value.is_floating_point()
    )
