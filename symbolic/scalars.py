"""Numbers and integer arithmetic as terms.

Elementwise operations share one name for numbers and for arrays: ``add`` of two numbers and
``add`` of two equally shaped arrays are the same operation.  Integers (axis lengths, indices)
are kept expanded and sorted by :func:`integer`, so 2·B, B·2 and B + B are one term.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cache
from math import prod

from .terms import Term, make

__all__ = [
    "MINUS_INFINITY",
    "ONE",
    "ZERO",
    "add",
    "always_less",
    "below",
    "boolean",
    "entry",
    "index",
    "index_range",
    "integer",
    "is_integer",
    "length_value",
    "mul",
    "num",
    "number_of",
    "power",
    "size",
    "split_integer",
    "unary",
]


def num(value: int | Fraction) -> Term:
    """The rational number as a term."""
    return make("num", data=Fraction(value))


ZERO, ONE = num(0), num(1)
MINUS_INFINITY = make("minus infinity")


def number_of(term: Term) -> Fraction | None:
    """The value of a literal number, or None."""
    return term.data if isinstance(term.data, Fraction) and term.op == "num" else None


def size(name: str, role: str = "size") -> Term:
    """A symbolic axis length, at least one; the role tells the numeric side what it counts."""
    return make("size", data=(name, role))


def index(name: str, length: Term) -> Term:
    """An index variable that ranges over 0..length-1."""
    return make("index", (length,), name)


def add(*parts: Term) -> Term:
    """The sum, nested sums opened; ``add()`` is 0 and ``add(x)`` is x."""
    flat = [part for p in parts for part in (p.args if p.op == "add" else (p,))]
    if len(flat) == 1:
        return flat[0]
    return make("add", tuple(flat), shape=flat[0].shape) if flat else ZERO


def mul(*parts: Term) -> Term:
    """The product, nested products opened; ``mul()`` is 1 and ``mul(x)`` is x."""
    flat = [part for p in parts for part in (p.args if p.op == "mul" else (p,))]
    if len(flat) == 1:
        return flat[0]
    return make("mul", tuple(flat), shape=flat[0].shape) if flat else ONE


def power(base: Term, exponent: int) -> Term:
    """base to an integer exponent; 1/0 is 0 by convention, as in most proof assistants."""
    return base if exponent == 1 else make("power", (base,), exponent, base.shape)


def unary(op: str, x: Term) -> Term:
    """An elementwise function of one argument."""
    return make(op, (x,), shape=x.shape)


def boolean(op: str, *args: Term) -> Term:
    """A comparison or a connective."""
    return make(op, args, shape=args[0].shape)


def entry(array: Term, *at: Term) -> Term:
    """The number in an array at a full list of indices."""
    if len(at) != array.ndim:
        raise ValueError(f"{array!r} has {array.ndim} axes and was given {len(at)} indices")
    return make("entry", (array, *at)) if at else array


Polynomial = dict[tuple[Term, ...], int]


def _expand(term: Term) -> Polynomial:
    """The term as an integer polynomial; one that may be infinite is an atom as a whole."""
    if not term.finite:
        return {(term,): 1}
    value = number_of(term)
    if value is not None and value.denominator == 1:
        return {(): int(value)} if value else {}
    if term.op == "add":
        return _sum(_expand(arg) for arg in term.args)
    if term.op == "mul":
        result: Polynomial = {(): 1}
        for arg in term.args:
            factor = _expand(arg)
            result = _sum(
                {tuple(sorted((*a, *b), key=lambda t: t.key)): x * y}
                for a, x in result.items()
                for b, y in factor.items()
            )
        return result
    return {(term,): 1}


def _sum(parts: Iterable[Polynomial]) -> Polynomial:
    total: Polynomial = {}
    for part in parts:
        for monomial, coefficient in part.items():
            total[monomial] = total.get(monomial, 0) + coefficient
    return {m: c for m, c in total.items() if c}


def _collect(polynomial: Polynomial) -> Term:
    monomials = sorted(polynomial, key=lambda m: (len(m), [t.key for t in m]))
    return add(
        *(mul(*(() if polynomial[m] == 1 and m else (num(polynomial[m]),)), *m) for m in monomials)
    )


def integer(term: Term) -> Term:
    """An integer term, expanded and sorted.

    >>> b = size("B")
    >>> integer(mul(num(2), b)) is integer(add(b, b))
    True
    """
    return _collect(_expand(term))


def split_integer(term: Term, unit: Term) -> tuple[Term, Term]:
    """(a, b) with ``term = a·unit + b``, where b collects the monomials unit does not divide."""
    divisor = _expand(unit)
    if len(divisor) != 1:
        return ZERO, integer(term)
    ((factors, scale),) = divisor.items()
    quotient: Polynomial = {}
    rest: Polynomial = {}
    for monomial, coefficient in _expand(term).items():
        left = list(monomial)
        for factor in factors:
            if factor in left:
                left.remove(factor)
        times = coefficient // scale if len(left) == len(monomial) - len(factors) else 0
        quotient[tuple(left)] = quotient.get(tuple(left), 0) + times
        rest[monomial] = coefficient - times * scale
    quotient = {m: c for m, c in quotient.items() if c}
    rest = {m: c for m, c in rest.items() if c}
    return _collect(quotient), _collect(rest)


@cache
def below(term: Term, bound: Term) -> bool:
    """True only if 0 <= term < bound for every value of their indices and every size >= 1."""
    return always_less(num(-1), term) and always_less(term, bound)


@cache
def always_less(low: Term, high: Term) -> bool:
    """True only if low < high for every value of the indices in them and every size >= 1.

    Each monomial of ``high - low - 1`` is replaced by its least value: an index with a positive
    coefficient by 0, with a negative one by the end of its range.  The rest is a polynomial in
    sizes, and with size = 1 + s it is >= 0 if no coefficient is negative.
    """
    least: list[Term] = []
    for monomial, coefficient in _expand(add(high, num(-1), mul(num(-1), low))).items():
        indices = {atom: index_range(atom) for atom in monomial if atom.op != "size"}
        if None in indices.values():
            return False
        if not indices or coefficient < 0:
            ends = (add(e, num(-1)) if (e := indices.get(t)) is not None else t for t in monomial)
            least.append(mul(num(coefficient), *ends))
    shifted = _replace_sizes(_expand(add(*least)))
    return all(coefficient >= 0 for coefficient in shifted.values())


def _replace_sizes(polynomial: Polynomial) -> Polynomial:
    """The polynomial with every size written as 1 + size; lengths hold nothing but sizes."""
    return _expand(
        add(*(mul(num(c), *(add(t, ONE) for t in monomial)) for monomial, c in polynomial.items()))
    )


def is_integer(term: Term) -> bool:
    """True only if the term is an integer for every value of its indices and sizes."""
    atoms = (atom for monomial in _expand(term) for atom in monomial)
    return all(atom.op == "size" or index_range(atom) is not None for atom in atoms)


def index_range(atom: Term) -> Term | None:
    """The length an index atom stays below: an index, or an entry of an index array."""
    if atom.op == "index":
        return atom.args[0]
    array = atom.args[0] if atom.op == "entry" else None
    while array is not None and array.op == "inverse":
        array = array.args[0]
    return array.args[0] if array is not None and array.op == "var" and array.args else None


def length_value(length: Term, sizes: dict[str, int]) -> int:
    """The value of an axis length once every size has one.

    Raises ``KeyError`` with the name of the first size that has no value.
    """
    total = 0
    for monomial, coefficient in _expand(length).items():
        total += coefficient * int(prod(sizes[t.data[0]] for t in monomial))
    return total
