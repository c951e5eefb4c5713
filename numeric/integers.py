"""Exact whole numbers: indices, natural numbers, and what is computed from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import array_api_compat.torch as xp
import torch
from torch import Tensor

from attnproof.symbolic.terms import Term

from .reading import RowReading
from .walk import Where

__all__ = ["Integers"]


class Integers(RowReading):
    """A term in whole numbers: plain integers, and arrays of 64 bits on the CPU.

    Raises ``TypeError``, naming it, for a number that need not be whole.
    """

    def __init__(self, sizes: Mapping[str, int], values: Mapping[str, Any]) -> None:
        super().__init__(xp, sizes, values)

    def method(self, term: Term) -> Callable[[Term, Where], Any] | None:
        """How to compute selected rows of a term, or None."""
        counted = term.op in ("floor_divide", "remainder")
        return self.rows_elementwise if counted else super().method(term)

    def constant(self, value: Any) -> int:
        """A literal number that is whole."""
        if Fraction(value).denominator != 1:
            raise TypeError(f"{value} is no whole number; floor division and % are of integers")
        return int(value)

    def op_var(self, t: Term) -> Any:
        value = self.values[t.data[0]]
        if isinstance(value, Tensor) and not value.is_floating_point():
            return value.cpu()
        if type(value) is not int:
            raise TypeError(f"{t.data[0]} is no whole number; floor division and % are of integers")
        return value

    def full(self, shape: Sequence[int], value: float) -> Tensor:
        """One number, repeated."""
        return torch.full(tuple(shape), int(value), dtype=torch.int64)

    def numbers(self, integers: Tensor) -> Tensor:
        """Indices are numbers."""
        return integers.to(torch.int64)

    def truth(self, condition: Tensor) -> Tensor:
        """1 and 0."""
        return condition.to(torch.int64)

    def product(self, left: Any, right: Any) -> Tensor:
        """The product of two matrices of whole numbers."""
        result: Tensor = left @ right
        return result

    def integers(self) -> Integers:
        """Itself."""
        return self
