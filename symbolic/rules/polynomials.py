"""Equality of polynomials in atoms, decided by SymPy's sparse rings."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

from sympy import QQ
from sympy.polys.rings import ring as sympy_ring

from ..budget import spend
from ..scalars import number_of, power
from ..terms import Term, make


def _atoms(t: Term, found: dict[Term, int]) -> None:
    if t.op in ("add", "mul", "power"):
        for arg in t.args:
            _atoms(arg, found)
    elif t.op != "num":
        found.setdefault(t, len(found))


@lru_cache(maxsize=64)
def _polynomials(count: int) -> Any:
    return sympy_ring([f"x{i}" for i in range(2 * count)], QQ)


def _polynomial(t: Term, atoms: dict[Term, int], gens: Any, one: Any) -> Any:
    """t over the generators x_a and 1/x_a of its atoms; 1/(ab) = 1/a · 1/b also when a = 0."""
    if t.op == "num":
        return one * QQ(t.data.numerator, t.data.denominator)
    if t in atoms:
        return gens[2 * atoms[t]]
    if t.op == "power":
        exponent: Any = t.data
        if exponent >= 0:
            return _power(_polynomial(t.args[0], atoms, gens, one), exponent)
        return _power(_inverse(t.args[0], atoms, gens, one), -exponent)
    if t.op == "add":
        return _sum([_polynomial(arg, atoms, gens, one) for arg in t.args], one.ring)
    exponents, rest = [0] * len(gens), []  # of atoms; one generator after the other takes long
    for arg in t.args:
        base, exponent = (arg.args[0], arg.data) if arg.op == "power" else (arg, 1)
        if base in atoms and isinstance(exponent, int):
            exponents[2 * atoms[base] + (exponent < 0)] += abs(exponent)
        else:
            rest.append(_polynomial(arg, atoms, gens, one))
    found = one.ring.from_dict({tuple(exponents): QQ(1)})
    for factor in rest:
        found = _product(found, factor)
    return found


def _product(a: Any, b: Any) -> Any:
    """Their product, which may be large: it is looked whether the time is over."""
    total: dict[tuple[int, ...], Any] = {}
    joined = a.ring.monomial_mul
    for m, c in a.items():
        spend()
        for k, e in b.items():
            at = joined(m, k)
            total[at] = total.get(at, 0) + c * e
    return a.ring.from_dict(total)


def _power(base: Any, exponent: int) -> Any:
    """base to a natural exponent."""
    if len(base) < 2:
        return base**exponent if exponent else base.ring.one
    found = base.ring.one
    for _ in range(exponent):
        found = _product(found, base)
    return found


def _sum(parts: list[Any], ring: Any) -> Any:
    """Their sum, made once: one after the other would copy what was added so far each time."""
    total: dict[tuple[int, ...], Any] = {}
    for part in parts:
        for monomial, coefficient in part.items():
            total[monomial] = total.get(monomial, 0) + coefficient
    return ring.from_dict(total)


def _inverse(t: Term, atoms: dict[Term, int], gens: Any, one: Any) -> Any:
    """1/t of a literal or an atom; :func:`_inverses_as_atoms` leaves no other."""
    value = number_of(t)
    if value is not None:
        return one * (QQ(value.denominator, value.numerator) if value else 0)
    return gens[2 * atoms[t] + 1]


@lru_cache(maxsize=200_000)
def same_polynomial(t: Term, target: Term, nonzero: tuple[Term, ...] = ()) -> bool:
    """Whether two terms are one polynomial in their atoms, with a·(1/a) = 1 for ``nonzero``.

    Such an a is an atom, or a sum: then the difference is multiplied by a power of it.
    """
    if not (t.finite and target.finite) or t.shape or target.shape:
        return False
    atoms: dict[Term, int] = {}
    for side in (t, target, *nonzero):
        _atoms(_inverses_as_atoms(side), atoms)
    ring, *gens = _polynomials(len(atoms))

    def read(side: Term) -> Any:
        return _polynomial(_inverses_as_atoms(side), atoms, gens, ring.one)

    difference = read(t) - read(target)
    for divisor in nonzero:
        inverse = atoms.get(make("inverse of", (divisor,)))
        if inverse is not None and difference:
            difference = _cleared(difference, 2 * inverse, read(divisor))
    places = [2 * atoms[a] for a in nonzero if a in atoms]
    return not difference.rem([gens[at] * gens[at + 1] - ring.one for at in places])


def _cleared(polynomial: Any, place: int, divisor: Any) -> Any:
    """divisor^k · polynomial, where the generator at ``place`` stands for 1/divisor."""
    degree = max(monomial[place] for monomial in polynomial)
    total = polynomial.ring.zero
    for monomial, coefficient in polynomial.terms():
        rest = (*monomial[:place], 0, *monomial[place + 1 :])
        alone = polynomial.ring.from_dict({rest: coefficient})
        total += _product(alone, _power(divisor, degree - monomial[place]))
    return total


@cache
def _inverses_as_atoms(t: Term) -> Term:
    """Inverses moved inward to the factors; that of a sum is an atom of its own."""
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
