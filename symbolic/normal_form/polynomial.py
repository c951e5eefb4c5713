"""Terms as polynomials in atoms, with rational coefficients.

An atom is any number that is not itself a sum, a product or a literal.  Exponents are negative
only for atoms that are known to be positive; the inverse of any other atom is an atom itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction
from functools import lru_cache
from math import gcd, lcm

from ..budget import check_time
from ..rules.base import Facts
from ..scalars import ONE, add, mul, num, number_of, power
from ..signs import find_nonzero, find_sign
from ..terms import Term

Monomial = tuple[tuple[Term, int], ...]
Polynomial = Mapping[Monomial, Fraction]
UNIT = Fraction(1)
_SIGN_FACTS: ContextVar[Facts] = ContextVar("signs at hand", default=frozenset())


def sign_facts() -> Facts:
    """Return the facts about signs that the current statement assumes."""
    return _SIGN_FACTS.get()


@contextmanager
def with_sign_facts(facts: Facts) -> Iterator[None]:
    """Compute normal forms inside the block under assumed facts about signs, such as x > 0."""
    before = _SIGN_FACTS.set(facts)
    try:
        yield
    finally:
        _SIGN_FACTS.reset(before)


def _sorted(powers: dict[Term, int]) -> Monomial:
    return tuple(sorted(((a, k) for a, k in powers.items() if k), key=lambda p: (p[0].key, p[1])))


def _times(a: Monomial, b: Monomial) -> Monomial:
    if not a or not b:
        return a or b
    powers = dict(a)
    for atom, k in b:
        powers[atom] = powers.get(atom, 0) + k
    return _sorted(powers)


def positive(atom: Term) -> bool:
    """Whether the atom is positive by its form or by assumption."""
    return find_sign(atom, sign_facts())[0] == 2


def known_nonzero(atom: Term) -> bool:
    """Whether the atom is not 0, by its form or by assumption."""
    return find_nonzero(atom, sign_facts())[0]


def invert(monomial: Monomial) -> Monomial:
    """Return 1/monomial; the inverse of an atom not known to be positive is a separate atom."""
    powers: dict[Term, int] = {}
    for atom, k in monomial:
        if positive(atom):
            powers[atom] = -k
        elif atom.op == "power" and atom.data == -1:
            powers[atom.args[0]] = k
        else:
            powers[power(atom, -1)] = k
    return _sorted(powers)


def expand(term: Term) -> Polynomial:
    """Return a term as a polynomial in its atoms; the inverse of a sum is an atom."""
    return _expand(term, sign_facts())


@lru_cache(maxsize=1 << 16)
def _expand(term: Term, _: Facts) -> Polynomial:
    value = number_of(term)
    if value is not None:
        return {(): value} if value else {}
    if term.op == "add":
        total: dict[Monomial, Fraction] = {}
        for arg in term.args:
            for monomial, c in expand(arg).items():
                _count(total, monomial, c)
        return {m: c for m, c in total.items() if c}
    if term.op == "mul":
        result, *others = map(expand, term.args)
        for other in others:
            result = _product(result, other)
        return result
    if term.op == "power":
        base = term.args[0]
        if term.data < 0 and base.op == "mul":  # 1/(ab) = 1/a · 1/b
            return expand(mul(*(power(factor, term.data) for factor in base.args)))
        return _to_the(expand(base), term.data, base)
    return {((term, 1),): UNIT}


def _to_the(base: Polynomial, exponent: int, term: Term) -> Polynomial:
    if exponent < 0:
        if len(base) > 1:
            return {((power(term, -1), -exponent),): UNIT}
        base = {invert(m): 1 / c for m, c in base.items()}
    if len(base) == 1:
        ((monomial, c),) = base.items()
        if abs(c) == 1:  # directly, as the exponent may be huge, as for exp(−10⁹·x)
            sign = UNIT if c == 1 or exponent % 2 == 0 else -UNIT
            return {_sorted({atom: k * abs(exponent) for atom, k in monomial}): sign}
    result: Polynomial = {(): UNIT}
    for _ in range(abs(exponent)):
        result = _product(result, base)
    return result


def _product(a: Polynomial, b: Polynomial) -> Polynomial:
    total: dict[Monomial, Fraction] = {}
    for m, c in a.items():
        check_time()
        for k, e in b.items():
            _count(total, _times(m, k), e if c is UNIT else c if e is UNIT else c * e)
    return {m: c for m, c in total.items() if c}


def _count(total: dict[Monomial, Fraction], monomial: Monomial, c: Fraction) -> None:
    known = total.get(monomial)
    total[monomial] = c if known is None else known + c


def monomial_term(monomial: Monomial, coefficient: Fraction = Fraction(1)) -> Term:
    """Return coefficient · Π atom^k, in the order of the monomial."""
    factors = [power(atom, k) for atom, k in monomial]
    return mul(*([num(coefficient)] if coefficient != 1 or not factors else []), *factors)


def to_term(polynomial: Polynomial) -> Term:
    """Return the polynomial as a term, its monomials in a fixed order."""
    order = sorted(polynomial, key=lambda m: (len(m), [(a.key, k) for a, k in m]))
    return add(*(monomial_term(m, polynomial[m]) for m in order))


def content(polynomial: Polynomial) -> tuple[Fraction, Monomial]:
    """Return the greatest rational and monomial that divide every term of a sum."""
    coefficients = list(polynomial.values())
    scale = Fraction(
        gcd(*(c.numerator for c in coefficients)), lcm(*(c.denominator for c in coefficients))
    )
    if all(c < 0 for c in coefficients):
        scale = -scale
    shared: dict[Term, int] = {}
    powers = [dict(m) for m in polynomial]
    for atom in {a for p in powers for a in p}:
        least = min(p.get(atom, 0) for p in powers)
        if least and (least > 0 or positive(atom)):
            shared[atom] = least
    return scale, _sorted(shared)


def divided(t: Term, inverse: Term) -> Term | None:
    """Return one step of the division m/P, or None if the leading monomial of P is not in m.

    With P = c·L + R and m = L·q it is q/c·(1 − R/P), in which only smaller monomials are divided
    by P.
    """
    divisor = expand(inverse.args[0])
    names = sorted({atom for monomial in divisor for atom, _ in monomial}, key=lambda a: a.key)

    def exponents(monomial: Monomial) -> list[int]:
        powers = dict(monomial)
        return [powers.get(atom, 0) for atom in names]

    leading = max(divisor, key=lambda m: (sum(exponents(m)), exponents(m)))
    ((whole, coefficient),) = expand(t).items()
    powers = dict(whole)
    if any(powers.get(atom, 0) < k for atom, k in leading) or powers.get(inverse, 0) < 1:
        return None
    for atom, k in (*leading, (inverse, 1)):
        powers[atom] -= k
    quotient = monomial_term(_sorted(powers), coefficient / divisor[leading])
    rest = {m: -c for m, c in divisor.items() if m != leading}
    return mul(quotient, add(ONE, mul(to_term(rest), inverse)))
