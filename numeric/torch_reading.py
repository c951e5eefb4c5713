"""The numeric evaluations of a term: a dtype on a device, values with radii, and exact integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import ceil
from typing import Any

import array_api_compat.torch as xp
import torch
from torch import Tensor

from attnproof.symbolic.terms import Term, free, postorder

from .arithmetic import Arithmetic
from .devices import wide_dtype
from .error_analysis import LARGEST, Rounded, selects
from .reading import RowReading
from .row_selection import ENTRIES, Replacement, Rows, Where, repeats

# Exact integers: indices, natural numbers, and functions of them


class Integers(RowReading):
    """Evaluate a term in integers: Python ints, and int64 arrays on the CPU.

    Raises ``TypeError``, naming it, for a number that need not be an integer.
    """

    def __init__(self, sizes: Mapping[str, int], values: Mapping[str, Any]) -> None:
        super().__init__(xp, sizes, values)

    def method(self, term: Term) -> Callable[[Term, Where], Any] | None:
        """Return the function that computes selected rows of a term, or None."""
        counted = term.op in ("floor_divide", "remainder")
        return self.rows_elementwise if counted else super().method(term)

    def constant(self, value: Any) -> int:
        """A literal that is an integer."""
        if Fraction(value).denominator != 1:
            raise TypeError(
                f"{value} is not an integer; floor division and % are defined for integers"
            )
        return int(value)

    def op_var(self, t: Term) -> Any:
        value = self.values[t.data[0]]
        if isinstance(value, Tensor) and not value.is_floating_point():
            return value.cpu()
        if type(value) is not int:
            raise TypeError(
                f"{t.data[0]} is not an integer; floor division and % are defined for integers"
            )
        return value

    def full(self, shape: Sequence[int], value: float) -> Tensor:
        """An array filled with one number."""
        return torch.full(tuple(shape), int(value), dtype=torch.int64)

    def numbers(self, integers: Tensor) -> Tensor:
        """Indices, as numbers."""
        return integers.to(torch.int64)

    def truth(self, condition: Tensor) -> Tensor:
        """1 and 0."""
        return condition.to(torch.int64)

    def integers(self) -> Integers:
        """The reading itself."""
        return self


# The two readings in floats: a dtype on a device, and values with radii


class NumberedReading(RowReading):
    """A reading in which indices used in computations become numbers of the dtype of positions.

    PyTorch converts integers that meet a float to the default dtype, whichever the float is.
    Indices that select entries stay integers.
    """

    def _operand(self, arg: Term, where: Where) -> Any:
        return self._numbered(super()._operand(arg, where))

    def rows_call(self, t: Term, where: Where) -> Any:
        name, *_ = t.data
        function = self.values[name]
        self.values[name] = lambda *args: function(*map(self._numbered, args))
        try:
            return super().rows_call(t, where)
        finally:
            self.values[name] = function

    def _numbered(self, value: Any) -> Any:
        if not isinstance(value, Tensor) or value.is_floating_point() or value.dtype == torch.bool:
            return value
        return self.numbers(value)


MULTIPLICATIONS = 1 << 24
"""The least multiplications of a product in 16 bits for which its layout is chosen."""


def laid_out(left: Tensor, right: Tensor) -> Tensor:
    """The left factor, by columns if that makes the same product faster.

    A processor without units for 16 bits multiplies two factors stored by rows up to 60 times more
    slowly than by columns and rows.  Both add in different orders, which makes no difference only
    if one factor selects: then every sum has at most one term that is not 0.
    """
    short = left.dtype in (torch.bfloat16, torch.float16) and left.device.type == "cpu"
    if not short or left.ndim != 2 or right.ndim != 2:
        return left
    if left.numel() * right.shape[1] < MULTIPLICATIONS or left.stride(1) != 1:
        return left
    if right.stride(1) != 1 or not (selects(left, -1) or selects(right, -2)):
        return left
    return left.mT.contiguous().mT


class TorchReading(NumberedReading):
    """Evaluate a term in one dtype on one device, operation by operation, as PyTorch runs it.

    Positions, frequencies and angles are kept in float32 if the dtype is lower, and orthogonal
    matrices in float64, so that they stay orthogonal; the results of applying them are stored in
    the dtype.  ``replaced`` definitions run as other code.
    """

    def __init__(
        self,
        sizes: Mapping[str, int],
        values: Mapping[str, Any],
        dtype: torch.dtype,
        device: torch.device,
        replaced: Mapping[str, Replacement] | None = None,
        entries: int = ENTRIES,
    ) -> None:
        super().__init__(xp, sizes, values, replaced, entries)
        self.dtype, self.device = dtype, device

    def full(self, shape: Sequence[int], value: float) -> Tensor:
        """An array filled with one number, in the dtype."""
        return torch.tensor(value, dtype=self.dtype, device=self.device).expand(tuple(shape))

    def numbers(self, integers: Tensor) -> Tensor:
        """Indices in the dtype of positions."""
        return integers.to(self.device, wide_dtype(self.dtype))

    def truth(self, condition: Tensor) -> Tensor:
        """1 and 0 in the dtype."""
        return condition.to(self.device, self.dtype)

    def product(self, left: Any, right: Any) -> Tensor:
        """Multiply in the wider dtype of both operands, and store the result in the dtype."""
        if left.dtype != right.dtype:
            wide = torch.promote_types(left.dtype, right.dtype)
            left, right = left.to(wide), right.to(wide)
        result: Tensor = (laid_out(left, right) @ right).to(self.dtype)
        return result

    def integers(self) -> Integers:
        """The exact reading in integers."""
        return Integers(self.sizes, self.values)

    def rows_elementwise(self, t: Term, where: Where) -> Any:
        value = super().rows_elementwise(t, where)
        return (
            value.to(self.dtype) if t.op in ("cos", "sin") and isinstance(value, Tensor) else value
        )


CACHED = 1 << 16
"""The largest array whose radii are computed at once, in entries."""
FEWEST = 16
"""At least this many rows are read together: products of fewer are summed in another order."""


class BoundReading(NumberedReading):
    """Evaluate the same term in float64 with radii for a profile, and with spread if tracked.

    A definition that runs as other code has the bound of that code in ``replaced``.
    Implementations differ only in these: an array whose term contains none of them, such as the
    rotated keys that attention reads, is the same for all implementations, whole and row by row,
    and is taken from ``plain``, the reading without replacements.
    """

    def __init__(
        self,
        sizes: Mapping[str, int],
        values: Mapping[str, Any],
        arithmetic: Arithmetic,
        replaced: Mapping[str, Replacement] | None = None,
        plain: BoundReading | None = None,
    ) -> None:
        self.arithmetic: Arithmetic = arithmetic if plain is None else plain.arithmetic
        super().__init__(self.arithmetic, sizes, values, replaced)
        self.plain, self.given = plain, frozenset(values)
        if plain is not None:
            self.cut, self.composed = plain.cut, plain.composed
            self.passing = [plain.composed, plain.known_rows]
        self._plain: dict[Term, bool] = {}

    @property
    def givens(self) -> dict[str, Any]:
        """The values with which the reading was made."""
        return {name: self.values[name] for name in self.given}

    def __call__(self, term: Term) -> Any:
        """The value of a whole term, taken from the plain reading if it is the same there."""
        if self.plain is None or term in self.known or not self.is_plain(term):
            return super().__call__(term)
        return self.plain(term)

    def rows(self, term: Term, where: Where) -> Any:
        """Selected rows; rows of an array that is known whole keep the errors of the whole."""
        if self.plain is None or not any(where) or not self.is_plain(term):
            return super().rows(term, where)
        return self.plain.kept_rows(term, where)

    def rows_structural(self, t: Term, where: Where) -> Any:
        """Selected rows; in a product with a permutation, only the selected places are computed."""
        found = self._permuted(t, where) if t.op == "matmul" and any(where) else None
        return super().rows_structural(t, where) if found is None else found

    def _permuted(self, t: Term, where: Where) -> Rounded | None:
        """Compute columns of X P or rows of P X from only the part of X that P selects, or None.

        None also if norms bound the errors of the product, since those need all of X.
        """
        inner = t.args[0].shape[-1]
        narrow = inner.op == "space" or self.length(inner) <= LARGEST
        if narrow or any(arg.ndim != 2 for arg in t.args):
            return None
        for axis in (1, 0):
            rows, matrix, other = where[axis], t.args[axis], t.args[1 - axis]
            if rows is None or not self.is_plain(matrix):
                continue
            some = self.array(matrix, (None, rows) if axis else (rows, None))
            found = some.selects(-2 if axis else -1) if isinstance(some, Rounded) else None
            if found is None or repeats(found[0]) or not found[1].all():
                continue
            taken = self._compose(matrix, rows, found[0])
            if not torch.equal(taken.places, found[0]):  # composed places are cached by slice
                taken = Rows(found[0])
            x = self.array(other, (where[0], taken) if axis else (taken, where[1]))
            p = self.select(some, (taken, None) if axis else (None, taken))
            if isinstance(x, Rounded) and x.finite:
                left, right = (x, p) if axis else (p, x)
                return left.restricted_product(right, self.length(inner))
        return None

    def is_plain(self, term: Term) -> bool:
        """Whether a term reads only givens, no bound variables, and contains nothing replaced."""
        if term not in self._plain:
            own = self.replaced.keys() - (self.plain.replaced.keys() if self.plain else ())
            self._plain[term] = all(
                v.op == "size" or (v.op == "var" and str(v.data[0]) in self.given)
                for v in free(term)
            ) and not any(t.op == "named" and t.data[0] in own for t in postorder(term))
        return self._plain[term]

    def parts(self, entries: float, rows: int) -> int:
        """Split into more parts than memory needs, so that intermediate results stay in cache."""
        return max(super().parts(entries, rows), min(ceil(entries / CACHED), rows // FEWEST))

    def full(self, shape: Sequence[int], value: float) -> Rounded:
        """An array filled with one number, with its storage error."""
        number = self.arithmetic.number(value, self.arithmetic.profile.store)
        repeated: Rounded = self.arithmetic.broadcast_to(number, shape)
        return repeated

    def numbers(self, integers: Tensor) -> Rounded:
        """Indices, exact."""
        return self.arithmetic.exact(integers.to(torch.float64), self.arithmetic.profile.wide)

    def truth(self, condition: Tensor) -> Rounded:
        """1 and 0, exact."""
        return self.arithmetic.exact(condition.to(torch.float64))

    def integers(self) -> Integers:
        """The exact reading in integers."""
        return Integers(self.sizes, self.values)

    def rounded(self, value: Any) -> Rounded:
        """A result with its radius; truth values and integers are exact.

        Any other plain number was computed in float64 from literals by a few operations.
        """
        if isinstance(value, Rounded):
            return value
        if isinstance(value, Tensor):
            return self.arithmetic.exact(value.to(torch.float64))
        number = torch.tensor(float(value), dtype=torch.float64)
        if isinstance(value, int):
            return self.arithmetic.exact(number)
        return Rounded(self.arithmetic, number, 2.0**-46 * (1 + number.abs()))
