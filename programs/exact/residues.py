"""The primitives of the table of operations (:mod:`..aten`) for payloads in finite fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partialmethod
from math import prod
from typing import Any

import torch
from torch import Tensor

from ...numeric.residues.residue import CONSTANT, Degree, common
from .guards import as_numbers
from .session import Field, NoMeaning, Number, Pair, Session, TooDeep, either

MAX_TERMS = 6


class OnlyKnownNumbers(Exception):
    """All inputs are known numbers, so the result is what torch computes from them."""


def is_number(x: Any) -> bool:
    """Whether this is known: a Python number, a plain tensor, or a payload of numbers."""
    return not isinstance(x, (Field, Pair)) and isinstance(x, (Number, Tensor, int, float))


def _number(x: Any) -> Number:
    """Return a plain tensor or a Python number as a ``Number``."""
    return x if isinstance(x, Number) else as_numbers(torch.as_tensor(x))


def _spread(terms: Sequence[tuple[Tensor, Tensor]]) -> Number:
    """Return the ``Number`` with these terms, broadcast to their common shape."""
    shape = common(*(tuple(part.shape) for term in terms for part in term))
    return Number(tuple((n.expand(shape), f.expand(shape)) for n, f in terms))


def _is_complex(x: Any) -> bool:
    return isinstance(x, (Pair, complex)) or (isinstance(x, Tensor) and x.is_complex())


class Value:
    """A payload with the operators of an array."""

    def __init__(self, session: Session, carried: Any) -> None:
        self.session, self.carried = session, carried

    def _with(self, found: Any) -> Value:
        return Value(self.session, found)

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        return tuple(shape_of(self.carried))

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def parts(self) -> tuple[Value, Value]:
        """The real and the imaginary part, as residues."""
        pair = self.session.pair(self.carried)
        return self._with(pair.real), self._with(pair.imag)

    @property
    def field(self) -> Field:
        """The payload as residues."""
        return self.session.field(self.carried)

    def moved(self, how: Callable[[Tensor], Tensor]) -> Value:
        """Apply an operation that only moves entries."""
        carried = self.carried
        return self._with((_number(carried) if isinstance(carried, Tensor) else carried).moved(how))

    @property
    def mT(self) -> Value:
        """The array with its last two axes exchanged."""
        return self.moved(lambda v: v.mT)

    def __getitem__(self, key: Any) -> Value:
        return self.moved(lambda v: v[key])

    def _levels(
        self,
        other: Any,
        how: Callable[[int, Tensor, Tensor], Tensor],
        degree: Callable[[Degree, Degree], Degree],
    ) -> Value:
        """Combine the residues of two values at each level, and their degrees."""
        a, b = self.field, self.session.field(unwrapped(other))
        levels = tuple(
            None if x is None or y is None else how(level, x, y)
            for level, (x, y) in enumerate(zip(a.levels, b.levels, strict=True))
        )
        known = None if a.degree is None or b.degree is None else degree(a.degree, b.degree)
        return self._with(Field(levels, known))

    def __add__(self, other: Any) -> Value:
        """Return the sum; a sum of known numbers stays known as long as it has few terms."""
        a, b = self.carried, unwrapped(other)
        if is_number(a) and is_number(b):
            x, y = _number(a), _number(b)
            if len(x.terms) == len(y.terms) == 1:
                (n, f), (m, g) = x.terms[0], y.terms[0]
                if bool((f == g).all()):
                    return self._with(Number(((n + m, f + 0 * g),)))
            if len(x.terms) + len(y.terms) <= MAX_TERMS:
                return self._with(_spread((*x.terms, *y.terms)))
        if isinstance(a, Pair) or isinstance(b, Pair):
            (r, i), (s, j) = self.parts, self._with(b).parts
            return self._paired(r + s, i + j)
        reduced = self.session.reduced
        return self._levels(b, lambda level, x, y: reduced(level, x + y), Degree.plus)

    def _paired(self, real: Value, imaginary: Value) -> Value:
        return self._with(Pair(real.field, imaginary.field))

    def __sub__(self, other: Any) -> Value:
        return self + -self._with(unwrapped(other))

    def __neg__(self) -> Value:
        return self * -1

    def __mul__(self, other: Any) -> Value:
        a, b = self.carried, unwrapped(other)
        if is_number(a) and is_number(b):
            x, y = _number(a), _number(b)
            if len(x.terms) * len(y.terms) <= MAX_TERMS:
                return self._with(_spread([(n * m, f * g) for n, f in x.terms for m, g in y.terms]))
        if _is_complex(a) or _is_complex(b):
            (r, i), (s, j) = self.parts, self._with(b).parts
            return self._paired(r * s - i * j, r * j + i * s)
        fields = self.session.fields
        return self._levels(b, lambda level, x, y: fields[level].reduced(x * y), Degree.times)

    def inverse(self) -> Value:
        """Return 1/x; NaN where x is 0."""
        fields = self.session.fields

        def at(level: int, part: Tensor) -> Tensor:
            fine = (part != 0) & part.isfinite()
            found = fields[level].inverted(torch.where(fine, part, 1.0))
            return torch.where(fine, found, torch.nan)

        return self._with(self.field.at_levels(at, Degree.inverse))

    def __truediv__(self, other: Any) -> Value:
        a, b = self.carried, unwrapped(other)
        if is_number(a) and is_number(b):
            if isinstance(b, Number):
                raise OnlyKnownNumbers
            divisor = torch.as_tensor(b).double()
            return self._with(_spread([(n, f / divisor) for n, f in _number(a).terms]))
        return self * self._with(b).inverse()

    def __rtruediv__(self, other: int) -> Value:
        if is_number(self.carried):
            raise OnlyKnownNumbers
        found = self.inverse()
        return found if other == 1 else found * other

    def __pow__(self, exponent: int) -> Value:
        """Return a whole power, by squaring; above 64 as an uninterpreted function."""
        if is_number(self.carried):
            raise OnlyKnownNumbers
        if abs(exponent) > 64:
            return self._with(self.session.unknown_function(f"pow/{exponent}", self.field))
        if exponent < 0:
            return self.inverse() ** -exponent
        ones = self.field.moved(torch.ones_like)
        result, square = self._with(Field(ones.levels, CONSTANT)), self
        while exponent:
            if exponent & 1:
                result = result * square
            exponent >>= 1
            square = square * square if exponent else square
        return result

    def __matmul__(self, other: Any) -> Value:
        a, b = self.carried, unwrapped(other)
        if is_number(a) and is_number(b):
            x, y = _number(a), _number(b)
            if x.terms[0][0].shape[-1] == 1 and y.terms[0][0].ndim > 1:
                return self * self._with(b)
            raise OnlyKnownNumbers
        if isinstance(a, Pair) or isinstance(b, Pair):
            (r, i), (s, j) = self.parts, self._with(b).parts
            return self._paired(r @ s - i @ j, r @ j + i @ s)
        length, fields = max(1, self.shape[-1]), self.session.fields

        def at(level: int, x: Tensor, y: Tensor) -> Tensor:
            return fields[level].reduced(fields[level].product(x, y)[0])

        return self._levels(b, at, lambda x, y: x.times(y).summed(length))

    def sum(self, axes: Sequence[int], keep: bool) -> Value:
        """Return the sum over some axes; over all axes if none is given."""
        if is_number(self.carried):
            raise OnlyKnownNumbers
        if isinstance(self.carried, Pair):
            return self._paired(*(x.sum(axes, keep) for x in self.parts))
        x = self.field
        over = tuple(axes) or tuple(range(x.top.ndim))
        count = prod(x.top.shape[d] for d in over)
        fields = self.session.fields

        def at(level: int, part: Tensor) -> Tensor:
            return fields[level].reduced(part.sum(over, keepdim=keep) if over else part)

        return self._with(x.at_levels(at, lambda degree: degree.summed(max(1, count))))


def unwrapped(x: Any) -> Any:
    """Return the payload of a value, and anything else unchanged."""
    return x.carried if isinstance(x, Value) else x


def shape_of(x: Any) -> Sequence[int]:
    """The lengths of the axes of a payload or of plain numbers."""
    if isinstance(x, Number):
        return x.terms[0][0].shape
    if isinstance(x, (Field, Pair)):
        return (x.real if isinstance(x, Pair) else x).top.shape
    return torch.as_tensor(x).shape


def axes_of(dims: Any) -> tuple[int, ...]:
    """Return axes as a tuple; the empty tuple stands for all of them."""
    return (dims,) if isinstance(dims, int) else tuple(dims or ())


class Residues:
    """The namespace ``xp`` of the table of operations, for one session."""

    def __init__(self, session: Session) -> None:
        self.session = session

    @staticmethod
    def Refused(told: str) -> NoMeaning:
        """Return the exception for a use of an operation that finite fields do not support."""
        return NoMeaning(f"{told} is not supported in a finite field")

    def number(self, x: Any) -> Value:
        """Return any payload or plain number as a value."""
        return x if isinstance(x, Value) else Value(self.session, x)

    def _field(self, x: Any) -> Field:
        if is_number(unwrapped(x)):
            raise OnlyKnownNumbers
        return self.session.field(unwrapped(x))

    def literal(self, x: Any) -> Any:
        """Return a Python number, also from a tensor without axes; None for a payload."""
        if isinstance(x, Tensor) and not x.ndim:
            x = x.item()
        return x if isinstance(x, (int, float)) else None

    def add(self, a: Any, b: Any) -> Value:
        """a + b."""
        return self.number(a) + self.number(b)

    def multiply(self, a: Any, b: Any) -> Value:
        """a·b."""
        return self.number(a) * self.number(b)

    def whole_quotient(self, a: Any, b: Any, rounding: str) -> Value:
        """Refuse ⌊a/b⌋, as a field has no order; of known numbers torch computes it."""
        del rounding
        if is_number(unwrapped(a)) and is_number(unwrapped(b)):
            raise OnlyKnownNumbers
        raise NoMeaning("torch.floor_divide has no meaning in a finite field")

    def power(self, a: Any, exponent: Any) -> Value:
        """Return a power that is not whole, as an uninterpreted function of the base."""
        a, told = unwrapped(a), self.literal(exponent)
        if is_number(a) and is_number(unwrapped(exponent)):
            raise OnlyKnownNumbers
        if told is None:
            raise NoMeaning(
                "torch.pow with an exponent that is not a number has no meaning in a field"
            )
        named = {0.5: "sqrt", -0.5: "rsqrt"}.get(float(told), f"pow/{told}")
        return self.unknown(named, a)

    def unknown(self, name: str, x: Any) -> Value:
        """Apply an uninterpreted function: all that is known is that equal values agree."""
        return self.number(self.session.unknown_function(name, self.session.field(unwrapped(x))))

    def rotated(self, name: str, place: int, x: Value) -> Value:
        """Return the cosine or sine of known numbers; of residues, an uninterpreted function."""
        if isinstance(x.carried, Number):
            return self.number(self.session.rotated(x.carried)[place])
        return self.unknown(name, x)

    sqrt, log = partialmethod(unknown, "sqrt"), partialmethod(unknown, "log")
    cos, sin = partialmethod(rotated, "cos", 0), partialmethod(rotated, "sin", 1)

    def exp(self, x: Value) -> Value:
        """Return the exponential, one level up the tower: from Z_q to Z_p with q | p − 1."""
        field, session = self._field(x), self.session
        levels: list[Tensor | None] = [None]
        for level, part in enumerate(field.levels[:-1]):
            levels.append(None if part is None else session.power(level, part))
        if levels[-1] is None:
            raise TooDeep
        return self.number(Field(tuple(levels), None))

    def joined(self, values: Sequence[Any], how: Callable[[list[Tensor]], Tensor]) -> Value:
        """Combine several values by an operation on tensors that moves or selects entries."""
        parts = [unwrapped(x) for x in values]
        if any(map(_is_complex, parts)):
            pairs = [self.number(x).parts for x in parts]
            return self.pair(*(self.joined(part, how) for part in zip(*pairs, strict=True)))
        if all(map(is_number, parts)):
            return self.number(_joined_numbers([_number(x) for x in parts], how))
        fields = [self.session.field(x) for x in parts]
        levels: list[Tensor | None] = []
        for level in range(len(self.session.fields)):
            known = [x.levels[level] for x in fields if x.levels[level] is not None]
            levels.append(how(known) if len(known) == len(fields) else None)  # type: ignore[arg-type]
        degree: Degree | None = CONSTANT
        for x in fields:
            degree = either(degree, x.degree)
        return self.number(Field(tuple(levels), degree))

    def where(self, condition: Any, a: Any, b: Any) -> Value:
        """Return a where the known condition holds, b elsewhere."""
        if not isinstance(condition, Tensor):
            raise NoMeaning("a choice by unknown values: a finite field has no order")
        return self.joined([a, b], lambda v: torch.where(condition, v[0], v[1]))

    def alike(self, values: Sequence[Any]) -> Sequence[Any]:
        """Return the values unchanged, as booleans are known numbers here."""
        return values

    def pair(self, real: Any, imaginary: Any) -> Value:
        """Return the complex number real + i·imaginary."""
        shape = common(*(tuple(shape_of(unwrapped(x))) for x in (real, imaginary)))
        fields = [self.session.field(unwrapped(x)) for x in (real, imaginary)]
        return self.number(Pair(*(x.moved(lambda v: v.expand(shape)) for x in fields)))

    def is_complex(self, x: Any) -> bool:
        """Whether the payload is a pair."""
        return isinstance(unwrapped(x), Pair)

    def parts(self, x: Any) -> tuple[Value, Value]:
        """Return the real and the imaginary part."""
        return self.number(x).parts

    def stack(self, values: Sequence[Value], axis: int) -> Value:
        """Stack values along a new axis."""
        return self.joined(values, lambda v: torch.stack(v, axis))

    def moveaxis(self, x: Value, source: int, target: int) -> Value:
        """Move an axis to another place."""
        return x.moved(lambda v: v.movedim(source, target))

    def axes(self, x: Value, dims: Any) -> tuple[int, ...]:
        """Return axes as a tuple; the empty tuple stands for all of them."""
        del x
        return axes_of(dims)

    def count(self, x: Value, over: tuple[int, ...]) -> int:
        """The number of entries summed over these axes."""
        return prod(x.shape[k] for k in over or range(x.ndim))

    def entries(self, x: Value, axis: int) -> list[Value]:
        """Return the parts of an array at each place of an axis."""
        if not x.shape[axis]:
            raise self.Refused("a product of no numbers")
        return [x.moved(lambda v, k=k: v.select(axis, k)) for k in range(x.shape[axis])]  # type: ignore[misc]

    def sum(self, x: Value, axis: tuple[int, ...], keepdims: bool) -> Value:
        """Return the sum over axes."""
        return x.sum(axis, keepdims)

    def mean(self, x: Value, axis: tuple[int, ...], keepdims: bool) -> Value:
        """Return the mean over axes."""
        return self.number(self._field(x)).sum(axis, keepdims) / self.count(x, axis)

    def cumulative_sum(self, x: Value, axis: int) -> Value:
        """Return the cumulative sum along an axis."""
        fields = self.session.fields
        found = self._field(x).at_levels(
            lambda level, v: fields[level].reduced(v.cumsum(axis)),
            lambda degree: degree.summed(x.shape[axis]),
        )
        return self.number(found)

    def softmax(self, x: Any, axis: int, *, every_row_sees: bool = False) -> Value:
        """Return e^x over the sum of e^x; a row with every entry hidden is undefined (NaN)."""
        del every_row_sees
        weights = self.exp(self.number(x))
        return weights / weights.sum((axis,), True)

    def matmul(self, a: Value, b: Value) -> Value:
        """Return the matrix product."""
        return a @ b

    def longer_than_one(self, x: Value, over: Sequence[int]) -> bool:
        """Whether the length of one of these axes is not 1."""
        return any(x.shape[k] != 1 for k in over)

    def of_heads(self, query: Value, x: Value) -> Value:
        """Repeat each head of keys or values for the query heads that it serves."""
        often = query.shape[-3] // x.shape[-3]
        return x if often == 1 else x.moved(lambda v: v.repeat_interleave(often, -3))

    def over_root_of_width(self, scores: Value, query: Value) -> Value:
        """Divide scores by √D, a known number."""
        factor: float = query.shape[-1] ** -0.5
        return scores * factor

    def not_after(self, scores: Value) -> Tensor:
        """Return the causal mask: True where the key does not come after the query."""
        return torch.ones(scores.shape[-2:], dtype=torch.bool).tril()

    def masked(self, scores: Value, mask: Any) -> Value:
        """Apply a mask to scores: a boolean one hides keys by −inf, another is added."""
        if isinstance(mask, Tensor) and mask.dtype == torch.bool:
            return self.where(mask, scores, -torch.inf)
        return scores + self.number(mask)


def _joined_numbers(numbers: Sequence[Number], how: Callable[[list[Tensor]], Tensor]) -> Number:
    """Combine known numbers term by term; a missing term is 0."""
    terms = []
    for k in range(max(len(x.terms) for x in numbers)):
        own = [
            x.terms[k]
            if k < len(x.terms)
            else (torch.zeros_like(x.terms[0][0]), torch.ones_like(x.terms[0][1]))
            for x in numbers
        ]
        terms.append((how([n for n, _ in own]), how([f for _, f in own])))
    return Number(tuple(terms))
