"""The readings of integers, and of angles as integer multiples of frequencies on the circle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from attnproof.symbolic.scalars import CARRIES
from attnproof.symbolic.terms import Term, free, postorder

from ..reading import RowReading
from ..row_selection import Moves, TooLarge, Where
from ..torch_reading import Integers
from .residue import FieldArithmetic, NoResidue
from .towers import Points

if TYPE_CHECKING:
    from .draws import Draws
    from .reading import ResidueReading


# Integers in terms: by form, and by value; exponentials in terms

WHOLE_KINDS = ("natural", "position", "permutation", "injection", "index map")


class Whole(Integers):
    """Integers of 64 bits that raise ``TooLarge`` instead of overflowing."""

    def rows_elementwise(self, t: Term, where: Where) -> Any:
        """Apply an operation entry by entry."""
        if t.op in ("add", "mul", "power"):
            sizes = [_most(self.rows(arg, where)) for arg in t.args]
            reached = {"add": sum(sizes), "mul": prod(sizes)}.get(t.op)
            if t.op == "power":
                reached = sizes[0] ** max(0, int(t.data))
            if reached is not None and reached >= 1 << 62:
                raise TooLarge("whole numbers of more than 62 bits")
        return super().rows_elementwise(t, where)

    def product(self, left: Any, right: Any) -> Any:
        """The product of two integer matrices."""
        if _most(left) * _most(right) * left.shape[-1] >= 1 << 62:
            raise TooLarge("whole numbers of more than 62 bits")
        return super().product(left, right)


def _most(value: Any) -> int:
    if not isinstance(value, Tensor):
        return abs(int(value))
    return int(value.abs().max()) if value.numel() and value.dtype != torch.bool else 1


@cache
def whole(term: Term) -> bool:
    """Whether a term is an integer by its form."""
    for part in postorder(term):
        if part.op == "var" and part.data[1] not in WHOLE_KINDS:
            return False
        if part.op == "num" and part.data.denominator != 1:
            return False
        if part.op == "power" and part.data < 0:
            return False
        if part.op in (
            "exp",
            "log",
            "cos",
            "sin",
            "tanh",
            "sqrt",
            "call",
            "pi",
            "minus infinity",
            "inverse",
            "space",
            "boolean",
        ):
            return False
    return True


def positions_in(*terms: Term) -> list[str]:
    """The positions that terms read: drawn as integers, but claimed for all real numbers."""
    found = frozenset[Term]().union(*map(free, terms))
    return sorted(str(v.data[0]) for v in found if v.op == "var" and v.data[1] == "position")


@cache
def depth_of(term: Term) -> int:
    """The nesting depth of exponentials."""
    inner = max((depth_of(arg) for arg in term.args), default=0)
    return inner + (term.op == "exp")


def is_whole(value: Any) -> bool:
    """Whether a value is an integer, or an array of integers."""
    return isinstance(value, int) or (isinstance(value, Tensor) and not value.is_floating_point())


# The reading of angles: sums of integer multiples of frequencies, as points of the circle

MOVES = (CARRIES - {"entry", "row"}) | {"tabulate"}


class PointArithmetic(Moves):
    """Structural operations only: moving points, cosines and sines together."""

    __name__ = "attnproof.numeric.residues.angles"

    def __init__(self, inner: FieldArithmetic) -> None:
        self.inner = inner

    def joined(self, parts: Sequence[Any], how: Callable[[list[Tensor]], Tensor]) -> Any:
        """Combine several arrays into one."""
        if not isinstance(parts[0], Points):
            return self.inner.joined(parts, how)
        cosines, sines = ([getattr(p, name) for p in parts] for name in ("cos", "sin"))
        return Points(self.inner.joined(cosines, how), self.inner.joined(sines, how))


class AngleReading(RowReading):
    """Evaluate a term that is an angle, modulo the prime of one level."""

    def __init__(self, outer: ResidueReading, draws: Draws) -> None:
        super().__init__(PointArithmetic(outer.arithmetic), outer.sizes, {})
        self.outer, self.draws = outer, draws

    @property
    def unit(self) -> Points:
        """One radian."""
        return self.draws.angle(self.outer.arithmetic, "one radian", ())

    def array(self, term: Term, where: Where) -> Any:
        """The selected rows, as points."""
        if whole(term):
            integers = self.outer.integers()
            value = integers.array(term, where)
            count = torch.as_tensor(value, dtype=torch.int64).expand(self.counts(term, where))
            return self.unit.times(count)
        if term.op == "num":
            raise NoResidue(f"the angle {term.data}")
        if term.op == "var":
            if term.data[1] not in ("frequency", "angle", "real", "positive", "nonnegative"):
                raise NoResidue(f"an angle made of {term.data[0]}")
            points = self.draws.angle(self.outer.arithmetic, str(term.data[0]), self.lengths(term))
            return self.select(points, where)
        if term.op == "add":
            parts = [self.array(arg, where) for arg in term.args]
            total = parts[0]
            for part in parts[1:]:
                total = total.plus(part)
            return total
        if term.op == "mul":
            return self._multiple(term, where)
        if term.op == "pi":
            minus = self.outer.arithmetic.of(-1)
            return Points(minus, self.outer.arithmetic.of(0))
        if term.op == "where":
            return self._chosen(term, where)
        if term.op not in MOVES:
            raise NoResidue(f"an angle computed by {term.op}")
        return super().array(term, where)

    def _chosen(self, term: Term, where: Where) -> Points:
        condition = self.outer.array(term.args[0], where)
        first, second = (self.array(arg, where) for arg in term.args[1:])
        chosen = self.outer.arithmetic.where
        return Points(
            chosen(condition, first.cos, second.cos), chosen(condition, first.sin, second.sin)
        )

    def _multiple(self, term: Term, where: Where) -> Points:
        counts = [arg for arg in term.args if whole(arg)]
        angles = [arg for arg in term.args if not whole(arg)]
        if len(angles) != 1:
            raise NoResidue("an angle that is not an integer multiple of a frequency")
        rotated = any(part.op == "pi" for part in postorder(angles[0]))
        if rotated and (found := positions_in(*counts)):
            raise NoResidue(f"π times {found[0]}, which may be any real number")
        count: Any = 1
        for arg in counts:
            value = self.outer.integers().array(arg, where)
            count = torch.as_tensor(value, dtype=torch.int64) * count
        shape = self.counts(term, where)
        points: Points = self.array(angles[0], where)
        return points.times(torch.as_tensor(count).expand(shape))

    def rows(self, term: Term, where: Where) -> Any:
        """Evaluate everything as points."""
        if term.op in MOVES:
            method = self.method(term)
            assert method is not None
            return method(term, where)
        return self.array(term, where)

    def __call__(self, term: Term) -> Any:
        return self.array(term, (None,) * term.ndim)

    def move(self, variable: Term, value: Any) -> None:
        """Move a bound variable in the outer reading, since nothing is cached here."""
        self.outer.move(variable, value)

    def places(self, map_: Term) -> Tensor:
        """An index map."""
        return self.outer.places(map_)

    def select(self, value: Any, where: Where) -> Any:
        """Select places of a computed value."""
        if not isinstance(value, Points):
            return super().select(value, where)
        for axis, rows in enumerate(where):
            if rows is not None:
                value = self.xp.take(value, rows.places, axis=axis)
        return value

    def integer(self, term: Term) -> int:
        """An integer, as in the reading of residues."""
        return self.outer.integer(term)

    def integers(self) -> Integers:
        """The exact reading of integers."""
        return self.outer.integers()

    def full(self, shape: Sequence[int], value: Any) -> Any:
        """Raise ``NoResidue``: a literal number is not an angle here."""
        del shape
        raise NoResidue(f"the angle {value}")

    def numbers(self, integers: Tensor) -> Points:
        """Integer multiples of one radian."""
        return self.unit.times(integers)

    def truth(self, condition: Tensor) -> Any:
        """Raise ``NoResidue``: truth values are not angles."""
        del condition
        raise NoResidue("an angle made of truth values")

    def product(self, left: Any, right: Any) -> Any:
        """Raise ``NoResidue``: a matrix product is not an angle here."""
        del left, right
        raise NoResidue("an angle computed by a product of matrices")
