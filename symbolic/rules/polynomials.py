"""The ring rule: equality of polynomials in atoms, by comparing coefficients.

An atom is a number other than a sum, product, power or literal, or the inverse of a sum.  Each
atom has two exponents, its own and that of its inverse.  1/(ab) = 1/a · 1/b also when a = 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache
from operator import add as plus
from typing import Any

from ..budget import check_time
from ..scalars import power, summed
from ..terms import Term, make
from .base import NOTHING, Result, need
from .signs import BY_FORM, Signs

Polynomial = dict[tuple[int, ...], Any]


def ring(t: Term, target: Term, *nonzero: Term, signs: Signs = BY_FORM) -> Result:
    """t = target as polynomials in their atoms, with a·(1/a) = 1 for each a in ``nonzero``."""
    assumed = NOTHING
    for atom in nonzero:
        certain, used = signs.nonzero(atom)
        need(certain, "this is not known to be nonzero", atom)
        assumed |= used
    need(same_polynomial(t, target, nonzero), "not one polynomial", t, target)
    return target, assumed


def _atoms(t: Term, found: dict[Term, int]) -> None:
    if t.op in ("add", "mul", "power"):
        for arg in t.args:
            _atoms(arg, found)
    elif t.op != "num":
        found.setdefault(t, 2 * len(found))


class _Reading:
    """Reads terms as polynomials over common atoms."""

    def __init__(self, terms: Iterable[Term]) -> None:
        self.at: dict[Term, int] = {}
        for t in terms:
            _atoms(t, self.at)
        self.unit = (0,) * (2 * len(self.at))

    def __call__(self, t: Term) -> Polynomial:
        if t.op == "num":
            whole = t.data.denominator == 1  # integer arithmetic is faster
            return {self.unit: t.data.numerator if whole else t.data}
        if t.op == "add":
            return summed(map(self, t.args))
        exponents, rest = list(self.unit), list[Polynomial]()
        for arg in t.args if t.op == "mul" else (t,):
            base, exponent = (arg.args[0], arg.data) if arg.op == "power" else (arg, 1)
            if base in self.at:
                exponents[self.at[base] + (exponent < 0)] += abs(exponent)
            elif exponent < 0:  # of a literal: no other inverse is left
                rest.append({self.unit: 1 / base.data**-exponent} if base.data else {})
            else:
                rest.append(_power(self(base), exponent, self.unit))
        found: Polynomial = {tuple(exponents): 1}
        for factor in rest:
            found = _product(found, factor)
        return found


def _product(a: Polynomial, b: Polynomial) -> Polynomial:
    """Return the product, checking the time limit, as it may be large."""
    total: Polynomial = {}
    for m, c in a.items():
        check_time()
        for k, e in b.items():
            at = tuple(map(plus, m, k))
            total[at] = total.get(at, 0) + c * e
    return {monomial: c for monomial, c in total.items() if c}


def _power(base: Polynomial, exponent: int, unit: tuple[int, ...]) -> Polynomial:
    found: Polynomial = {unit: 1}
    for _ in range(exponent):
        found = _product(found, base)
    return found


@lru_cache(maxsize=200_000)
def same_polynomial(t: Term, target: Term, nonzero: tuple[Term, ...] = ()) -> bool:
    """Whether two terms are equal polynomials in their atoms, with a·(1/a) = 1 for ``nonzero``.

    Such an a is an atom or a sum; for a sum, the difference is multiplied by a power of it.
    """
    if not (t.finite and target.finite) or t.shape or target.shape:
        return False
    left, right, *divisors = map(_inverses_as_atoms, (t, target, *nonzero))
    read = _Reading((left, right, *divisors))
    less = {monomial: -c for monomial, c in read(right).items()}
    difference = summed((read(left), less))
    for divisor, form in zip(nonzero, divisors, strict=True):
        inverse = read.at.get(make("inverse of", (divisor,)))
        if inverse is not None and difference:
            difference = _cleared(difference, inverse, read(form), read.unit)
    places = [read.at[a] for a in nonzero if a in read.at]
    return not summed({_cancelled(m, places): c} for m, c in difference.items())


def _cleared(p: Polynomial, place: int, divisor: Polynomial, unit: tuple[int, ...]) -> Polynomial:
    """Return divisor^k · p, where the generator at ``place`` stands for 1/divisor."""
    degree = max(m[place] for m in p)
    return summed(
        _product({(*m[:place], 0, *m[place + 1 :]): c}, _power(divisor, degree - m[place], unit))
        for m, c in p.items()
    )


def _cancelled(monomial: tuple[int, ...], places: list[int]) -> tuple[int, ...]:
    """Return a monomial with a^p·(1/a)^q made a^(p − q), for the atoms at these places."""
    left = list(monomial)
    for at in places:
        left[at], left[at + 1] = left[at] - left[at + 1], 0
    return tuple(left)


@cache
def _inverses_as_atoms(t: Term) -> Term:
    """Return the term with inverses moved inward to the factors; that of a sum is an atom."""
    if t.op in ("add", "mul"):
        return make(t.op, tuple(_inverses_as_atoms(arg) for arg in t.args))
    if t.op != "power":
        return t
    base = t.args[0]
    if t.data >= 0:
        return make("power", (_inverses_as_atoms(base),), t.data)
    if base.op == "add":
        return power(make("inverse of", (base,)), -t.data)
    if base.op == "mul":
        return make("mul", tuple(_inverses_as_atoms(power(arg, t.data)) for arg in base.args))
    if base.op == "power":
        return _inverses_as_atoms(power(base.args[0], t.data * base.data))
    return t
