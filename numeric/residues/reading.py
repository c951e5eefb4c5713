"""Evaluate a term in a tower of fields.

At level L every number is a residue modulo p_L; the argument of an exponential is evaluated at
level L − 1; an angle is a point of the circle modulo p_L.  Indices, natural numbers and positions
are integers, the same at every level.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from attnproof.symbolic.terms import Term

from ..reading import RowReading
from ..row_selection import Where
from ..torch_reading import Integers
from .angles import AngleReading, Whole, is_whole, positions_in, whole
from .draws import Draws
from .residue import Degree, FieldArithmetic, NoResidue, Residue
from .roots import roots
from .towers import Tower, power

ENTRIES = 1 << 21  # a compromise: large pieces leave the cache, small ones repeat products
COMPARED = ("equal", "less", "less_equal")
DIVIDED = ("floor_divide", "remainder")
INTEGER_OPERATIONS = ("abs", "maximum", *DIVIDED)
WHY_NOT = {
    "log": "a logarithm",
    "tanh": "a hyperbolic tangent",
    "abs": "an absolute value",
    "maximum": "a maximum",
    "floor_divide": "a floor",
    "remainder": "a remainder",
}


class ResidueReading(RowReading):
    """Evaluate a term modulo the prime of one level."""

    def __init__(
        self,
        tower: Tower,
        level: int,
        sizes: Mapping[str, int],
        draws: Draws,
        device: torch.device | None = None,
        values: Mapping[str, Any] | None = None,
    ) -> None:
        """Use ``values``, or by default those drawn, changed so that they obey the hypotheses."""
        self.tower, self.level, self.draws = tower, level, draws
        self.arithmetic = FieldArithmetic(tower.primes[level], device)
        drawn = draws.values(self.arithmetic) if values is None else values
        super().__init__(self.arithmetic, sizes, drawn, entries=ENTRIES)
        self.angles = AngleReading(self, draws)
        self._below: ResidueReading | None = None
        self.exponents: list[Degree] = []
        if values is None and draws.hypotheses is not None:
            self.values.update(draws.hypotheses.obeying_values(self))

    def at(self, values: Mapping[str, Any]) -> ResidueReading:
        """The reading of the same level at other values."""
        other = ResidueReading(
            self.tower, self.level, self.sizes, self.draws, self.arithmetic.device, values
        )
        other.arithmetic = other.xp = self.arithmetic
        return other

    def again(self) -> ResidueReading:
        """The same reading at the same values, with an empty cache."""
        other = ResidueReading(
            self.tower,
            self.level,
            self.sizes,
            self.draws.again(),
            self.arithmetic.device,
            self.values,
        )
        other.arithmetic = other.xp = self.arithmetic
        return other

    @property
    def below(self) -> ResidueReading:
        """The reading for the arguments of exponentials."""
        if self._below is None:
            if not self.level:
                raise NoResidue("more nested exponentials than the tower has levels")
            self._below = ResidueReading(
                self.tower, self.level - 1, self.sizes, self.draws, self.arithmetic.device
            )
            for variable in self._moving:
                name = variable.data if variable.op == "index" else variable.data[0]
                self._below.move(variable, self.values[str(name)])
        return self._below

    def move(self, variable: Term, value: Any) -> None:
        """Set a bound variable to its next value, here and in the levels below."""
        super().move(variable, value)
        self.composed.clear()  # it holds places for the old value
        if self._below is not None:
            self._below.move(variable, value)

    def op_var(self, t: Term) -> Any:
        value = self.values[str(t.data[0])]
        if isinstance(value, Residue) and value.arithmetic is not self.arithmetic:
            raise NoResidue("an exponential of the state of a stack")
        return value

    def places(self, map_: Term) -> Tensor:
        """An index map."""
        found: Tensor = self.integers().array(map_, (None,) * map_.ndim)
        return found

    # methods that the walk requires

    def constant(self, value: Any) -> Residue:
        """A literal number."""
        return self.arithmetic.of(value)

    def full(self, shape: Sequence[int], value: Any) -> Residue:
        """An array filled with one number."""
        repeated: Residue = self.arithmetic.broadcast_to(self.arithmetic.of(value), tuple(shape))
        return repeated

    def numbers(self, integers: Tensor) -> Residue:
        """Indices as residues."""
        return self.arithmetic.of(integers)

    def truth(self, condition: Tensor) -> Residue:
        """1 and 0."""
        return self.arithmetic.of(condition.to(torch.int64))

    def product(self, left: Any, right: Any) -> Residue:
        """A matrix product."""
        return self.arithmetic.of(left) @ self.arithmetic.of(right)

    def integers(self) -> Integers:
        """The exact reading of integers."""
        return Whole(self.sizes, {k: v for k, v in self.values.items() if is_whole(v)})

    def op_minus_infinity(self, _: Term) -> Residue:
        return self.arithmetic.minus_infinity()

    def op_pi(self, _: Term) -> Any:
        raise NoResidue("π outside an angle")

    def op_space(self, _: Term) -> Any:
        raise NoResidue("an expectation")

    def averaged(self, total: Any, axis: Term) -> Any:
        """A sum over an axis; expectations are not supported."""
        if axis.op == "space":
            raise NoResidue("an expectation")
        return total

    def method(self, term: Term) -> Callable[[Term, Where], Any] | None:
        """Return the function that computes selected rows of a term."""
        found = super().method(term)
        return self.rows_elementwise if found == self.rows_of_integers else found

    # elementwise

    def rows_elementwise(self, t: Term, where: Where) -> Any:
        if t.op in COMPARED or (t.op in INTEGER_OPERATIONS and whole(t)):
            return self._integer_operation(t, where)
        if t.op == "exp":
            return self._exp(t, where)
        if t.op in ("cos", "sin"):
            points = self.angles.array(t.args[0], where)
            return points.cos if t.op == "cos" else points.sin
        if t.op == "sqrt":
            return self._root(t, where)
        if t.op in WHY_NOT:
            raise NoResidue(f"{WHY_NOT[t.op]} of numbers that need not be whole")
        operands = [self._field(self._operand(arg, where)) for arg in t.args]
        result = self.elementwise(t.op, t.data, *operands)
        return self.repeated(result, self.counts(t, where)) if result.ndim < t.ndim else result

    def rows_isin(self, t: Term, where: Where) -> Any:
        """Whether integers are in a list of indices."""
        return self.integers().rows_isin(t, where)

    def _field(self, value: Any) -> Any:
        """Integers as residues; truth values unchanged."""
        truth = isinstance(value, Tensor) and value.dtype == torch.bool
        return value if truth else self.arithmetic.of(value)

    def _integer_operation(self, t: Term, where: Where) -> Any:
        if not all(whole(arg) for arg in t.args):
            raise NoResidue("a comparison of numbers that need not be whole: a field has no order")
        if t.op in DIVIDED and (found := positions_in(t)):
            raise NoResidue(f"a floor of {found[0]}, which may be any real number")
        exact = self.integers().rows_elementwise(t, where)
        if isinstance(exact, Tensor) and exact.dtype == torch.bool:
            return exact.expand(self.counts(t, where))
        return self.repeated(self.arithmetic.of(exact), self.counts(t, where))

    def _exp(self, t: Term, where: Where) -> Residue:
        """w^x, and 0 at −inf."""
        below = self.below
        x = below.arithmetic.of(below.array(t.args[0], where))
        self.exponents.append(x.degree)
        value = power(x, self.tower.bases[self.level - 1], self.arithmetic.prime)
        if x.hidden is not None:
            value = torch.where(x.hidden, 0.0, value)
        return Residue(self.arithmetic, value, x.undefined)

    def _root(self, t: Term, where: Where) -> Residue:
        """The root of integers; see ``roots``."""
        if not whole(t.args[0]):
            raise NoResidue("a root of numbers that need not be whole")
        exact = torch.as_tensor(self.integers().array(t.args[0], where), dtype=torch.int64)
        return self.arithmetic.of(roots(exact, self.arithmetic.prime))

    def rows_call(self, t: Term, where: Where) -> Any:
        name, batch, _ = t.data
        args = [
            self.arithmetic.of(self.array(a, (*where[:batch], *(None,) * (a.ndim - batch))))
            for a in t.args
        ]
        value = self.draws.function(self.arithmetic, str(name), args, batch)
        return self.select(value, (*(None,) * batch, *where[batch:]))
