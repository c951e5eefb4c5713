"""Arrays of residues modulo a prime, exact in float64, and their functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import prod
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..row_selection import Moves

# Arrays of residues modulo a prime, exact in float64


class NoResidue(Exception):
    """A term has no meaning in a finite field; the message says which part and why."""


class Degree(NamedTuple):
    """Bounds on the degrees of a numerator and a denominator in all drawn numbers.

    The denominator has every divisor as a factor, so the value is defined if it is not 0.
    """

    above: int
    below: int

    def plus(self, other: Degree) -> Degree:
        """The degree of a sum."""
        above = max(self.above + other.below, other.above + self.below)
        return Degree(above, self.below + other.below)

    def times(self, other: Degree) -> Degree:
        """The degree of a product."""
        return Degree(self.above + other.above, self.below + other.below)

    def inverse(self) -> Degree:
        """The degree of 1/(a/b) = b²/(a b), where both a and b must not be 0."""
        return Degree(2 * self.below, self.above + self.below)

    def either(self, other: Degree) -> Degree:
        """The degree of an array whose entries have one degree or the other."""
        return Degree(max(self.above, other.above), max(self.below, other.below))

    def summed(self, count: int) -> Degree:
        """The degree of a sum of ``count`` terms."""
        return Degree(self.above + (count - 1) * self.below, count * self.below)


CONSTANT = Degree(0, 0)


EXACT = 2**53
REDUCED_LIMIT = 2**50
"""The largest numbers that one reduction brings between −p/2 and p/2; see ``arithmetic``."""


def _either(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    return b if a is None else a if b is None else a | b


def common(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape to which all of these broadcast."""
    ndim = max(map(len, shapes))
    columns = zip(*((1,) * (ndim - len(shape)) + shape for shape in shapes), strict=True)
    return tuple(next((n for n in lengths if n != 1), 1) for lengths in columns)


class Residue:
    """Entries between −p/2 and p/2, stored as integers in float64.

    ``undefined`` marks entries spoiled by a division by 0, ``hidden`` those that are −inf.
    ``degree`` is that of every entry as a function of the numbers drawn at this level.

    Work is deferred until ``value`` is read, if it may become cheaper: numbers are drawn then,
    since many are never read; a sum is reduced and a matrix product computed, so that a scalar
    factor can be applied to its left factor; and a factor that is constant along the last axis (1
    over the denominators of a softmax) is moved past a sum or a product over that axis.  All of
    this is exact, so nothing else changes.
    """

    __slots__ = (
        "_bound",
        "_drawn",
        "_factors",
        "_raw",
        "_rows",
        "_undefined",
        "arithmetic",
        "degree",
        "hidden",
        "shape",
    )
    __array_priority__ = 1000
    __hash__ = object.__hash__

    def __init__(
        self,
        arithmetic: FieldArithmetic,
        value: Tensor | None,
        undefined: Tensor | None = None,
        hidden: Tensor | None = None,
        degree: Degree = CONSTANT,
        *,
        bound: int | None = None,
        rows: Residue | None = None,
        factors: tuple[Tensor, Tensor] | None = None,
        drawn: Callable[[], Tensor] | None = None,
        shape: tuple[int, ...] = (),
    ) -> None:
        """``bound``: a bound on the entries of ``value`` if they are not reduced yet.

        The entries are those of ``value`` or of the product of the ``factors``, times ``rows``, or
        the result of ``drawn``.
        """
        self.arithmetic, self.degree, self._drawn = arithmetic, degree, drawn
        self._raw, self._rows, self._factors = value, rows, factors
        self._bound = arithmetic.prime // 2 if bound is None else bound
        self.shape: tuple[int, ...] = shape if value is None else tuple(value.shape)
        self._undefined, self.hidden = (
            None if mark is None else mark.expand(self.shape) for mark in (undefined, hidden)
        )

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def undefined(self) -> Tensor | None:
        """The entries spoiled by a division by 0."""
        lost = None if self._rows is None else self._rows.undefined
        return _either(self._undefined, None if lost is None else lost.expand(self.shape))

    @property
    def value(self) -> Tensor:
        """The entries, reduced."""
        raw, _ = self._entries()
        if self._rows is not None:
            self._undefined = self.undefined
            raw = self.arithmetic.reduced(raw * self._rows.value)
            self._raw, self._rows = raw, None
        return raw

    def _entries(self) -> tuple[Tensor, Residue | None]:
        """The entries, reduced, without the factor of every row."""
        raw, bound = self.unreduced()
        half = self.arithmetic.prime // 2
        if bound > half:
            self._raw, self._bound = self.arithmetic.reduced(raw, bound), half
        assert self._raw is not None
        return self._raw, self._rows

    def unreduced(self) -> tuple[Tensor, int]:
        """Entries that are equal modulo p, without the factor of every row, and their bound."""
        if self._drawn is not None:
            self._raw, self._drawn = self._drawn(), None
        if self._raw is None:
            assert self._factors is not None
            self._raw, self._bound = self.arithmetic.product(*self._factors)
            self._factors = None
        return self._raw, self._bound

    def moved(self, how: Callable[[Tensor], Tensor]) -> Residue:
        """The same entries in other places."""
        value = self.value
        undefined, hidden = (None if m is None else how(m) for m in (self.undefined, self.hidden))
        return Residue(self.arithmetic, how(value), undefined, hidden, self.degree)

    def __getitem__(self, key: Any) -> Residue:
        return self.moved(lambda x: x[key])

    def __add__(self, other: Any) -> Residue:
        b = self.arithmetic.of(other)
        undefined, hidden = self._spread(b, "undefined"), self._spread(b, "hidden")
        (x, most), (y, more) = (part.total() for part in (self, b))
        if most + more > REDUCED_LIMIT:
            x, y, most = self.value, b.value, self.arithmetic.prime
            more = 0
        degree = self.degree.plus(b.degree)
        return Residue(self.arithmetic, x + y, undefined, hidden, degree, bound=most + more)

    def total(self) -> tuple[Tensor, int]:
        """Entries that are equal modulo p, and their bound."""
        return self.unreduced() if self._rows is None else (self.value, self._bound)

    def total_once(self) -> tuple[Tensor, int]:
        """As :meth:`total`, for a single use: a matrix product is computed in scratch memory."""
        if self._factors is None or self._rows is not None:
            return self.total()
        assert self._factors is not None
        room = self.arithmetic.scratch(torch.float64, self.shape)
        return self.arithmetic.product(*self._factors, out=room)

    def __mul__(self, other: Any) -> Residue:
        b = self.arithmetic.of(other)
        if self.hidden is not None or b.hidden is not None:
            raise NoResidue("a multiple of −inf has no meaning in a field")
        degree = self.degree.times(b.degree)
        for x, y in ((self, b), (b, self)):
            if (late := x._deferred_product(y, degree)) is not None:
                return late
        product = self.arithmetic.reduced(self.value * b.value)
        return Residue(self.arithmetic, product, self._spread(b, "undefined"), None, degree)

    __radd__, __rmul__ = __add__, __mul__

    def _deferred_product(self, b: Residue, degree: Degree) -> Residue | None:
        """The product with one number, or with one per row, if it can be deferred."""
        if not b.ndim and self._factors is not None and b.undefined is None:
            left = self.arithmetic.reduced(self._factors[0] * b.value)
            return Residue(
                self.arithmetic,
                None,
                self._undefined,
                None,
                degree,
                rows=self._rows,
                factors=(left, self._factors[1]),
                shape=self.shape,
            )
        if self.ndim < 2 or b.shape != self.shape or self.shape[-1] < 2 or b._raw is None:
            return None
        if b._raw.stride(-1) or b._rows is not None or self._factors is not None:
            return None
        self._raw, _ = self.unreduced()
        if self._raw.stride(-1) == 0:
            return None
        rows = b[..., :1] if self._rows is None else b[..., :1] * self._rows
        return Residue(
            self.arithmetic, self._raw, self._undefined, None, degree, bound=self._bound, rows=rows
        )

    def _spread(self, other: Residue, name: str) -> Tensor | None:
        a, b = getattr(self, name), getattr(other, name)
        if a is None and b is None:
            return None
        shape = common(self.shape, other.shape)
        parts = [None if m is None else m.expand(shape) for m in (a, b)]
        return _either(*parts)

    def __pow__(self, exponent: int) -> Residue:
        if exponent < 0:
            return self.inverse() ** -exponent
        result: Residue = self.arithmetic.of(1)
        square = self
        while exponent:
            if exponent & 1:
                result = square * result
            square, exponent = square * square if exponent > 1 else square, exponent >> 1
        return result

    def __rtruediv__(self, other: Any) -> Residue:
        found: Residue = self.inverse() * other
        return found

    def inverse(self) -> Residue:
        """1/x; undefined at 0."""
        if self.hidden is not None:
            raise NoResidue("1 over −inf has no meaning in a field")
        zero = self.value == 0
        found = self.arithmetic.inverted(torch.where(zero, 1.0, self.value))
        found = torch.where(zero, 0.0, found)
        undefined = _either(self.undefined, zero) if bool(zero.any()) else self.undefined
        return Residue(self.arithmetic, found, undefined, None, self.degree.inverse())

    def sum(self, axis: int) -> Residue:
        """The sum over an axis."""
        if self.hidden is not None:
            raise NoResidue("a sum with −inf has no meaning in a field")
        if axis % self.ndim != self.ndim - 1:
            raw, rows, bound = self.value, None, self._bound
        else:
            (raw, rows), bound = self._entries(), self._bound
        undefined = None if self._undefined is None else self._undefined.any(axis)
        degree = self.degree.summed(self.shape[axis])
        total = Residue(  # fewer than 2^31 terms
            self.arithmetic, raw.sum(axis), undefined, None, degree, bound=bound * self.shape[axis]
        )
        if rows is None:
            return total
        found = total * rows[..., 0]
        found.degree = degree
        return found

    def __matmul__(self, other: Residue) -> Residue:
        if self.hidden is not None or other.hidden is not None:
            raise NoResidue("a product of matrices with −inf has no meaning in a field")
        (left, rows), right = self._entries(), other.value
        shape = _shape_of(left, right)
        degree = self.degree.times(other.degree).summed(left.shape[-1])
        undefined = self._undefined_product(other, shape)
        found = Residue(
            self.arithmetic, None, undefined, None, degree, factors=(left, right), shape=shape
        )
        if rows is None:
            return found
        found = found * (rows[..., 0] if right.ndim == 1 else rows)
        found.degree = degree
        return found

    def _undefined_product(self, other: Residue, shape: tuple[int, ...]) -> Tensor | None:
        found = None
        if self._undefined is not None:
            rows = self._undefined.any(-1)
            found = (rows if other.ndim == 1 else rows[..., None]).expand(shape)
        if other.undefined is not None:
            columns = other.undefined.any(0 if other.ndim == 1 else -2)
            wide = columns if other.ndim == 1 or self.ndim == 1 else columns[..., None, :]
            found = _either(found, wide.expand(shape))
        return found


def _shape_of(left: Tensor, right: Tensor) -> tuple[int, ...]:
    """The shape of a matrix product."""
    lead = common(tuple(left.shape[:-2]), tuple(right.shape[:-2]))
    rows = left.shape[-2:-1]
    columns = right.shape[-1:] if right.ndim > 1 else ()
    return (*lead, *rows, *columns)


# The array API functions on residues

INVERTED_SINGLY = 64  # numbers that are inverted individually


class FieldArithmetic(Moves):
    """Z_p for one prime p, on one device."""

    __name__ = "attnproof.numeric.residues.residue"

    def __init__(self, prime: int, device: torch.device | None = None) -> None:
        self.prime, self.device = prime, device or torch.device("cpu")
        self._scratch: dict[tuple[torch.dtype, int], Tensor] = {}

    def scratch(self, dtype: torch.dtype, shape: Sequence[int]) -> Tensor:
        """Memory for a temporary array; allocating costs more than a pass over it."""
        key = (dtype, prod(shape))
        if key not in self._scratch:
            self._scratch = {k: v for k, v in self._scratch.items() if k[0] != dtype}
            self._scratch[key] = torch.empty(key[1], dtype=dtype, device=self.device)
        return self._scratch[key].view(tuple(shape))

    def reduced(self, x: Tensor, bound: int = REDUCED_LIMIT) -> Tensor:
        """Reduce integers to residues between −p/2 and p/2: x − p·round(x/p).

        x/p is computed with a relative error below 2^−52 (of 1/p, and of the product).  Its
        distance from the midpoint between two integers is at least 1/(2p), so that it is rounded
        correctly if |x| · 2^−52 < 1/2, as up to 2^50.  Up to 2^53 it may be rounded to the other
        neighbor, which leaves a number below p in size; a second reduction corrects that.
        """
        quotient = torch.mul(x, 1 / self.prime).round_()
        found = torch.sub(x, quotient, alpha=self.prime, out=quotient)
        return found if bound <= REDUCED_LIMIT else self.reduced(found)

    def product(self, left: Tensor, right: Tensor, out: Tensor | None = None) -> tuple[Tensor, int]:
        """A matrix product of residues, not reduced, and a bound on its entries.

        The number of products added at once is so small that every partial sum, in any order, is an
        integer below 2^53.
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
        """1/x for nonzero residues: first 1/(x y), then y/(x y) and x/(x y)."""
        flat = x.reshape(-1)
        if len(flat) <= INVERTED_SINGLY:
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
        """Convert a residue, an integer, a fraction, or an array of integers to the field."""
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

    def joined(self, parts: Sequence[Any], how: Callable[[list[Tensor]], Tensor]) -> Any:
        """Combine several arrays into one."""
        if not any(isinstance(part, Residue) for part in parts):
            return how(list(parts))
        residues = [self.of(part) for part in parts]
        masks: list[Tensor | None] = []
        for name in ("undefined", "hidden"):
            marks = [getattr(part, name) for part in residues]
            some = any(mark is not None for mark in marks)
            filled = [
                torch.zeros_like(part.value, dtype=torch.bool) if mark is None else mark
                for mark, part in zip(marks, residues, strict=True)
            ]
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
        """−inf, which only an exponential can remove."""
        hidden = torch.ones((), dtype=torch.bool, device=self.device)
        return Residue(self, self.tensor(0), None, hidden)
