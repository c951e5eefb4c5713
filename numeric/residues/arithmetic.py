"""The functions of arrays of residues, under the names of the array API standard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import prod
from typing import Any

import torch
from torch import Tensor

from .residue import CONSTANT, EXACT, ONCE, NoResidue, Residue

__all__ = ["FieldArithmetic"]

FEW = 64  # numbers that are inverted one by one


class FieldArithmetic:
    """Z_p for one prime p, on one device."""

    __name__ = "attnproof.numeric.residues.arithmetic"

    def __init__(self, prime: int, device: torch.device | None = None) -> None:
        self.prime, self.device = prime, device or torch.device("cpu")
        self._scratch: dict[tuple[torch.dtype, int], Tensor] = {}

    def scratch(self, dtype: torch.dtype, shape: Sequence[int]) -> Tensor:
        """Room for an array that nobody keeps; new memory costs more than a pass over it."""
        key = (dtype, prod(shape))
        if key not in self._scratch:
            self._scratch = {k: v for k, v in self._scratch.items() if k[0] != dtype}
            self._scratch[key] = torch.empty(key[1], dtype=dtype, device=self.device)
        return self._scratch[key].view(tuple(shape))

    def reduced(self, x: Tensor, bound: int = ONCE) -> Tensor:
        """Whole numbers as residues between −p/2 and p/2: x − p·round(x/p).

        x/p is computed with a relative error below 2^−52 (of 1/p, and of the product).  Its
        distance from the half between two whole numbers is at least 1/(2p), so that it is rounded
        to the right one where |x| · 2^−52 < 1/2, as up to 2^50.  Up to 2^53 it may be rounded to
        the other neighbour, which leaves a number below p in size: once more mends that.
        """
        quotient = torch.mul(x, 1 / self.prime).round_()
        found = torch.sub(x, quotient, alpha=self.prime, out=quotient)
        return found if bound <= ONCE else self.reduced(found)

    def product(
        self, left: Tensor, right: Tensor, out: Tensor | None = None
    ) -> tuple[Tensor, int]:
        """A product of matrices of residues, not reduced, and a bound on its entries.

        So few products of two residues are added at once that every partial sum, in whatever
        order, is a whole number below 2^53.
        """
        half, length = self.prime // 2, left.shape[-1]
        block = EXACT // (half + 1) ** 2 - 1
        if length <= block:
            return torch.matmul(left, right, out=out), length * half * half
        total: Any = 0
        starts = range(0, length, block)
        for start in starts:
            part = slice(start, start + block)
            rows = right[part] if right.ndim == 1 else right[..., part, :]
            total = total + self.reduced(left[..., part] @ rows, EXACT)
        return total, len(starts) * half

    def inverted(self, x: Tensor) -> Tensor:
        """1/x for residues that are not 0: of x y first, then y/(x y) and x/(x y)."""
        flat = x.reshape(-1)
        if len(flat) <= FEW:
            few = [float(pow(int(v), -1, self.prime)) for v in flat.tolist()]
            one = torch.tensor(few, dtype=torch.float64, device=x.device)
            return self.reduced(one).reshape(x.shape)
        odd = flat[len(flat) // 2 * 2 :]
        first, second = flat[0 : len(flat) - len(odd) : 2], flat[1::2]
        both = self.inverted(torch.cat((self.reduced(first * second), odd)))
        pairs = torch.stack((both[: len(first)] * second, both[: len(first)] * first), 1)
        found = torch.cat((self.reduced(pairs).reshape(-1), both[len(first) :]))
        return found.reshape(x.shape)

    def of(self, value: Any) -> Residue:
        """A residue, a whole number, a fraction, or an array of whole numbers, in the field."""
        if isinstance(value, Residue):
            return value
        if isinstance(value, Tensor):
            if value.is_floating_point():
                raise NoResidue("numbers of a dtype have no meaning in a field")
            reduced = torch.remainder(value.to(torch.int64), self.prime).to(torch.float64)
            return Residue(self, self.reduced(reduced.to(self.device)))
        number = Fraction(value)
        if number.denominator % self.prime == 0:
            raise NoResidue(f"{number} has no meaning modulo {self.prime}")
        found = number.numerator * pow(number.denominator, -1, self.prime) % self.prime
        return Residue(self, self.reduced(self.tensor(found)))

    def tensor(self, value: int) -> Tensor:
        """One number in float64."""
        return torch.tensor(float(value), dtype=torch.float64, device=self.device)

    def _moved(self, x: Any, how: Callable[[Tensor], Tensor]) -> Any:
        return x.moved(how) if isinstance(x, Residue) else how(x)

    def broadcast_to(self, x: Any, shape: Sequence[int]) -> Any:
        """x repeated."""
        return self._moved(x, lambda a: torch.broadcast_to(a, tuple(shape)))

    def permute_dims(self, x: Any, axes: Sequence[int]) -> Any:
        """The axes in another order."""
        return self._moved(x, lambda a: a.permute(tuple(axes)))

    def expand_dims(self, x: Any, axis: int) -> Any:
        """A new axis of length 1."""
        return self._moved(x, lambda a: a.unsqueeze(axis))

    def reshape(self, x: Any, shape: Sequence[int]) -> Any:
        """The same entries in row-major order."""
        return self._moved(x, lambda a: a.reshape(tuple(shape)))

    def take(self, x: Any, indices: Tensor, axis: int) -> Any:
        """The entries at some places of an axis."""
        return self._moved(x, lambda a: a.index_select(axis, indices.to(a.device)))

    def concat(self, parts: Sequence[Any], axis: int) -> Any:
        """Arrays one after the other."""
        return self._joined(parts, lambda arrays: torch.cat(arrays, dim=axis))

    def stack(self, parts: Sequence[Any], axis: int) -> Any:
        """Arrays along a new axis."""
        return self._joined(parts, lambda arrays: torch.stack(arrays, dim=axis))

    def _joined(self, parts: Sequence[Any], how: Callable[[list[Tensor]], Tensor]) -> Any:
        if not any(isinstance(part, Residue) for part in parts):
            return how(list(parts))
        residues = [self.of(part) for part in parts]
        masks: list[Tensor | None] = []
        for name in ("undefined", "hidden"):
            marks = [getattr(part, name) for part in residues]
            some = any(mark is not None for mark in marks)
            filled = [torch.zeros_like(part.value, dtype=torch.bool) if mark is None else mark
                      for mark, part in zip(marks, residues, strict=True)]  # fmt: skip
            masks.append(how(filled) if some else None)
        degree = CONSTANT
        for part in residues:
            degree = degree.either(part.degree)
        return Residue(self, how([part.value for part in residues]), masks[0], masks[1], degree)

    def where(self, condition: Tensor, x: Any, y: Any) -> Residue:
        """x or y, entry by entry."""
        a, b = self.of(x), self.of(y)
        condition = condition.to(self.device)
        masks: list[Tensor | None] = []
        for name in ("undefined", "hidden"):
            first, second = (getattr(part, name) for part in (a, b))
            if first is None and second is None:
                masks.append(None)
                continue
            false = torch.zeros((), dtype=torch.bool, device=self.device)
            x_mark, y_mark = (false if mark is None else mark for mark in (first, second))
            masks.append(torch.where(condition, x_mark, y_mark))
        value = torch.where(condition, a.value, b.value)
        return Residue(self, value, masks[0], masks[1], a.degree.either(b.degree))

    def minus_infinity(self) -> Residue:
        """−inf, which only an exponential takes away."""
        hidden = torch.ones((), dtype=torch.bool, device=self.device)
        return Residue(self, self.tensor(0), None, hidden)
