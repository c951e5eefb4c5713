"""Sums, products and quotients of what a tensor carries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ...numeric.residues.residue import CONSTANT, Degree, common
from .payload import Field, Number, Pair, Payload, either
from .session import Session

__all__ = ["added", "constant_like", "inverse", "is_number", "joined", "multiplied", "negated",
           "number", "power", "product", "spread", "summed", "where"]  # fmt: skip

MOST_TERMS = 6


def is_number(x: Any) -> bool:
    """Whether this is known: a number of Python, a plain tensor, or a payload of numbers."""
    return not isinstance(x, (Field, Pair)) and isinstance(x, (Number, Tensor, int, float))


def number(x: Any) -> Number:
    """A plain tensor, or a number of Python, as whole multiples."""
    if isinstance(x, Number):
        return x
    t = torch.as_tensor(x)
    if t.is_floating_point():
        value = t.double()
        return Number(((torch.ones_like(value, dtype=torch.int64), value),))
    return Number(((t.long(), torch.ones(t.shape, dtype=torch.float64)),))


def _degree(a: Field, b: Field, how: Callable[[Degree, Degree], Degree]) -> Degree | None:
    return None if a.degree is None or b.degree is None else how(a.degree, b.degree)


def _levels(a: Field, b: Field, how: Callable[[int, Tensor, Tensor], Tensor]
            ) -> tuple[Tensor | None, ...]:  # fmt: skip
    return tuple(
        None if x is None or y is None else how(level, x, y)
        for level, (x, y) in enumerate(zip(a.levels, b.levels, strict=True))
    )


def added(session: Session, a: Any, b: Any) -> Payload:
    """The sum; that of numbers stays one as long as it has few terms."""
    if is_number(a) and is_number(b):
        x, y = number(a), number(b)
        if len(x.terms) == len(y.terms) == 1:
            (n, f), (m, g) = x.terms[0], y.terms[0]
            if bool((f == g).all()):
                return Number(((n + m, f + 0 * g),))
        if len(x.terms) + len(y.terms) <= MOST_TERMS:
            return Number(spread((*x.terms, *y.terms)))
    if isinstance(a, Pair) or isinstance(b, Pair):
        x2, y2 = session.pair(a), session.pair(b)
        return Pair(_sum(session, x2.real, y2.real), _sum(session, x2.imag, y2.imag))
    return _sum(session, session.field(a), session.field(b))


def spread(terms: Sequence[tuple[Tensor, Tensor]]) -> tuple[tuple[Tensor, Tensor], ...]:
    """All terms in their common shape."""
    shape = common(*(tuple(part.shape) for term in terms for part in term))
    return tuple((n.expand(shape), f.expand(shape)) for n, f in terms)


def _sum(session: Session, a: Field, b: Field) -> Field:
    found = _levels(a, b, lambda level, x, y: session.kept(level, x + y))
    return Field(found, _degree(a, b, Degree.plus))


def negated(session: Session, a: Any) -> Payload:
    """−a."""
    return multiplied(session, a, -1)


def multiplied(session: Session, a: Any, b: Any) -> Payload:
    """The product, entry by entry."""
    if is_number(a) and is_number(b):
        x, y = number(a), number(b)
        if len(x.terms) * len(y.terms) <= MOST_TERMS:
            pairs = [(n * m, f * g) for n, f in x.terms for m, g in y.terms]
            return Number(spread(pairs))
    if isinstance(a, (Pair, complex)) or isinstance(b, (Pair, complex)) or _complex(a, b):
        x2, y2 = session.pair(a), session.pair(b)
        minus = _times(session, _times(session, x2.imag, y2.imag), session.field(-1))
        real = _sum(session, _times(session, x2.real, y2.real), minus)
        imag = _sum(
            session, _times(session, x2.real, y2.imag), _times(session, x2.imag, y2.real)
        )
        return Pair(real, imag)
    return _times(session, session.field(a), session.field(b))


def _complex(*parts: Any) -> bool:
    return any(isinstance(x, Tensor) and x.is_complex() for x in parts)


def _times(session: Session, a: Field, b: Field) -> Field:
    found = _levels(a, b, lambda level, x, y: session.fields[level].reduced(x * y))
    return Field(found, _degree(a, b, Degree.times))


def inverse(session: Session, a: Any) -> Field:
    """1/a; NaN where a is 0."""
    x = session.field(a)
    levels: list[Tensor | None] = []
    for arithmetic, part in zip(session.fields, x.levels, strict=True):
        if part is None:
            levels.append(None)
            continue
        fine = (part != 0) & part.isfinite()
        found = arithmetic.inverted(torch.where(fine, part, 1.0))
        levels.append(torch.where(fine, found, torch.nan))
    return Field(tuple(levels), None if x.degree is None else x.degree.inverse())


def power(session: Session, a: Any, exponent: int) -> Payload:
    """A whole power, by squaring."""
    if exponent < 0:
        return power(session, inverse(session, a), -exponent)
    result: Any = constant_like(session.field(a), 1)
    square: Any = a
    while exponent:
        if exponent & 1:
            result = multiplied(session, result, square)
        exponent >>= 1
        square = multiplied(session, square, square) if exponent else square
    found: Payload = result
    return found


def constant_like(x: Field, value: float) -> Field:
    """One whole number everywhere."""
    return Field(x.moved(lambda t: torch.full_like(t, value)).levels, CONSTANT)


def summed(session: Session, a: Payload, dims: Sequence[int], keep: bool) -> Payload:
    """The sum over some axes (all, if none is named)."""
    if isinstance(a, Pair):
        real, imag = (summed(session, x, dims, keep) for x in (a.real, a.imag))
        return Pair(session.field(real), session.field(imag))
    x = session.field(a)
    over = tuple(dims) or tuple(range(x.top.ndim))
    count = 1
    for d in over:
        count *= x.top.shape[d]
    levels = tuple(
        None if part is None
        else session.fields[level].reduced(part.sum(over, keepdim=keep) if over else part)
        for level, part in enumerate(x.levels)
    )  # fmt: skip
    return Field(levels, None if x.degree is None else x.degree.summed(max(1, count)))


def product(session: Session, a: Any, b: Any) -> Payload | None:
    """The product of matrices; None where it is one of known numbers."""
    if is_number(a) and is_number(b):
        x, y = number(a), number(b)
        if x.terms[0][0].shape[-1] == 1 and y.terms[0][0].ndim > 1:
            return multiplied(session, x, y)
        return None
    if isinstance(a, Pair) or isinstance(b, Pair):
        x2, y2 = session.pair(a), session.pair(b)
        cross = _product(session, x2.imag, y2.imag)
        real = _sum(session, _product(session, x2.real, y2.real),
                    _times(session, cross, session.field(-1)))  # fmt: skip
        imag = _sum(session, _product(session, x2.real, y2.imag),
                    _product(session, x2.imag, y2.real))  # fmt: skip
        return Pair(real, imag)
    return _product(session, session.field(a), session.field(b))


def _product(session: Session, a: Field, b: Field) -> Field:
    def at(level: int, x: Tensor, y: Tensor) -> Tensor:
        arithmetic = session.fields[level]
        raw, _ = arithmetic.product(x, y)
        return arithmetic.reduced(raw)

    length = a.top.shape[-1]
    degree = _degree(a, b, lambda x, y: x.times(y).summed(max(1, length)))
    return Field(_levels(a, b, at), degree)


def joined(session: Session, parts: Sequence[Any], how: Callable[[list[Tensor]], Tensor]
           ) -> Payload:  # fmt: skip
    """Several together, one after the other or along a new axis."""
    if any(isinstance(x, Pair) for x in parts) or _complex(*parts):
        pairs = [session.pair(x) for x in parts]
        real = joined(session, [x.real for x in pairs], how)
        imag = joined(session, [x.imag for x in pairs], how)
        return Pair(session.field(real), session.field(imag))
    if all(is_number(x) for x in parts):
        numbers = [number(x) for x in parts]
        most = max(len(x.terms) for x in numbers)
        terms = []
        for k in range(most):
            n = [x.terms[k][0] if k < len(x.terms) else torch.zeros_like(x.terms[0][0])
                 for x in numbers]  # fmt: skip
            f = [x.terms[k][1] if k < len(x.terms) else torch.ones_like(x.terms[0][1])
                 for x in numbers]  # fmt: skip
            terms.append((how(n), how(f)))
        return Number(tuple(terms))
    fields = [session.field(x) for x in parts]
    levels: list[Tensor | None] = []
    for level in range(len(session.fields)):
        column = [x.levels[level] for x in fields]
        known = [x for x in column if x is not None]
        levels.append(how(known) if len(known) == len(column) else None)
    degree: Degree | None = CONSTANT
    for x in fields:
        degree = either(degree, x.degree)
    return Field(tuple(levels), degree)


def where(session: Session, condition: Tensor, a: Any, b: Any) -> Payload:
    """a or b, entry by entry."""
    def how(parts: list[Tensor]) -> Tensor:
        return torch.where(condition, parts[0], parts[1])

    return joined(session, [a, b], how)
