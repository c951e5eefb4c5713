"""Fractions of polynomials over the rational numbers, with denominators kept factored.

Attention has few denominators, one for each row of a softmax, and each occurs in many entries.
Kept as factors, they need no greatest common divisors and do not grow in sums.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce
from operator import mul
from typing import Any

import sympy as sp
from sympy.polys.domains import QQ
from sympy.polys.orderings import lex
from sympy.polys.rings import PolyElement, PolyRing

from ..budget import check_time


class Undefined(ArithmeticError):
    """Raised if a divisor is 0 at these sizes, whatever the values."""


@dataclass
class Fraction:
    """numerator / Π factor^exponent; a factor is a generator or has no monomial factor."""

    numerator: PolyElement
    factors: dict[PolyElement, int] = field(default_factory=dict)

    @property
    def denominator(self) -> PolyElement:
        """The product of the factors, multiplied out."""
        one = self.numerator.ring.one
        return reduce(mul, (f**k for f, k in self.factors.items()), one)


class Polynomials:
    """The polynomials in some symbols, modulo relations: ``squares`` gives squares of symbols.

    In every result such a symbol has exponent at most 1, so that polynomials equal by these
    relations are identical.

    >>> c, s, x = sp.symbols("c s x")
    >>> trig = Polynomials((c, s, x), {s: 1 - c**2})
    >>> trig.fraction(1 / (c**2 + s**2) - x / x).numerator
    0
    """

    def __init__(self, symbols: Iterable[sp.Symbol], squares: dict[sp.Symbol, Any]) -> None:
        self.symbols = tuple(symbols)
        self.ring = PolyRing(self.symbols, QQ, lex)
        self.known: dict[sp.Expr, Fraction] = dict(
            zip(self.symbols, map(Fraction, self.ring.gens), strict=True)
        )
        self._squares: dict[int, PolyElement] = {}
        # A square may contain symbols with earlier squares, so they are reduced from the last on.
        for place in range(len(self.symbols)):
            if (square := squares.get(self.symbols[place])) is not None:
                self._squares[place] = self.ring.from_expr(square)

    def reduced(self, p: PolyElement) -> PolyElement:
        """Return the polynomial with the given squares of symbols substituted."""
        for place in reversed(self._squares):
            if all(monomial[place] < 2 for monomial in p):
                continue
            square, total = self._squares[place], self.ring.zero
            parts: dict[int, dict[Any, Any]] = {}
            for monomial, coefficient in p.items():
                half, odd = divmod(monomial[place], 2)
                rest = (*monomial[:place], odd, *monomial[place + 1 :])
                parts.setdefault(half, {})[rest] = coefficient
            for half, part in parts.items():
                total += self.ring.from_dict(part) * square**half
            return self.reduced(total)
        return p

    def fraction(self, e: sp.Expr) -> Fraction:
        """Return a rational expression as a fraction; raise :class:`Undefined` for a divisor 0."""
        if e not in self.known:
            check_time()
            self.known[e] = self._fraction(e)
        return self.known[e]

    def _fraction(self, e: sp.Expr) -> Fraction:
        if e.is_Rational:
            return Fraction(self.ring.ground_new(QQ(e.p, e.q)))
        if e.is_Add:
            return self._sum([self.fraction(arg) for arg in e.args])
        if e.is_Mul:
            return self._product([self.fraction(arg) for arg in e.args])
        if e.is_Pow and e.exp.is_Integer:
            base, n = self.fraction(e.base), int(e.exp)
            return self._power(base if n > 0 else self._inverse(base), abs(n))
        raise ValueError(f"{e} is not a rational expression in {', '.join(map(str, self.symbols))}")

    def _sum(self, parts: list[Fraction]) -> Fraction:
        common: dict[PolyElement, int] = {}
        for part in parts:
            for factor, k in part.factors.items():
                common[factor] = max(k, common.get(factor, 0))
        total = self.ring.zero
        for part in parts:
            missing = [f ** (k - part.factors.get(f, 0)) for f, k in common.items()]
            total += self._times(part.numerator, (m for m in missing if m != 1))
        return Fraction(total, common if total else {})

    def _times(self, p: PolyElement, others: Iterable[PolyElement]) -> PolyElement:
        for other in others:
            check_time()
            p = self.reduced(p * other)
        return p

    def _product(self, parts: list[Fraction]) -> Fraction:
        factors: dict[PolyElement, int] = {}
        for part in parts:
            for factor, k in part.factors.items():
                factors[factor] = factors.get(factor, 0) + k
        numerator = self._times(self.ring.one, (part.numerator for part in parts))
        for factor in [f for f in factors if f.is_generator]:
            while factors.get(factor) and all(m[_place(factor)] for m in numerator):
                numerator = numerator.quo(factor)
                factors[factor] -= 1
        return Fraction(numerator, {f: k for f, k in factors.items() if k} if numerator else {})

    def _power(self, base: Fraction, n: int) -> Fraction:
        return self._product([base] * n)

    def _inverse(self, x: Fraction) -> Fraction:
        p = x.numerator
        if not p:
            raise Undefined("a divisor is 0")
        numerator, factors = x.denominator, {}
        lead = p.LC
        for place, generator in enumerate(self.ring.gens):
            if least := min(monomial[place] for monomial in p):
                factors[generator] = least
                p = p.quo(generator**least)
        p = p.quo_ground(lead)
        if p != 1:
            factors[p] = 1
        return Fraction(self.reduced(numerator.quo_ground(lead)), factors)


def _place(generator: PolyElement) -> int:
    (monomial,) = generator
    return int(monomial.index(1))
