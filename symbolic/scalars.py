"""Numbers and integer arithmetic as terms.

Elementwise operations have the same name for numbers and for arrays: ``add`` of two numbers and
``add`` of two arrays of equal shape are the same operation.  Integers (axis lengths, indices) are
expanded and sorted by :func:`integer`, so that 2·B, B·2 and B + B are the same term.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, TypeVar

from .terms import Term, make, postorder


def num(value: int | Fraction) -> Term:
    """Return a rational number as a term."""
    return make("num", data=Fraction(value))


ZERO, ONE = num(0), num(1)
MINUS_INFINITY = make("minus infinity")


def number_of(term: Term) -> Fraction | None:
    """Return the value of a literal number, or None for any other term."""
    return term.data if isinstance(term.data, Fraction) and term.op == "num" else None


def size(name: str, role: str = "size") -> Term:
    """Return a symbolic axis length >= 1; ``role`` tells the numeric layer what it counts."""
    return make("size", data=(name, role))


def index(name: str, length: Term) -> Term:
    """Return an index variable that ranges over 0..length-1."""
    return make("index", (length,), name)


def add(*parts: Term) -> Term:
    """Return the sum, with nested sums flattened; ``add()`` is 0 and ``add(x)`` is x."""
    flat = [part for p in parts for part in (p.args if p.op == "add" else (p,))]
    if len(flat) == 1:
        return flat[0]
    return make("add", tuple(flat), shape=flat[0].shape) if flat else ZERO


def mul(*parts: Term) -> Term:
    """Return the product, with nested products flattened; ``mul()`` is 1 and ``mul(x)`` is x."""
    flat = [part for p in parts for part in (p.args if p.op == "mul" else (p,))]
    if len(flat) == 1:
        return flat[0]
    return make("mul", tuple(flat), shape=flat[0].shape) if flat else ONE


def subtract(x: Term, y: Term) -> Term:
    """Return x − y, as x + (−1)·y."""
    return add(x, mul(num(-1), y))


def power(base: Term, exponent: int) -> Term:
    """Return base^exponent for an integer exponent; 1/0 is 0, as in most proof assistants."""
    return base if exponent == 1 else make("power", (base,), exponent, base.shape)


def unary(op: str, x: Term) -> Term:
    """Return an elementwise function of one argument."""
    return make(op, (x,), shape=x.shape)


def boolean(op: str, *args: Term) -> Term:
    """Return a comparison or a logical connective."""
    return make(op, args, shape=args[0].shape)


def indicator(op: str, a: Term, b: Term) -> Term:
    """Return the indicator [a = b], [a < b] or [a <= b] of two numbers."""
    return make("indicator", (make(op, (a, b)),))


def entry(array: Term, *at: Term) -> Term:
    """Return the entry of an array at one index for each axis."""
    if len(at) != array.ndim:
        raise ValueError(
            f"wanted one index for each of the {array.ndim} axes of {array!r}; got {len(at)}"
        )
    return make("entry", (array, *at)) if at else array


Polynomial = dict[tuple[Term, ...], int]
Monomial = TypeVar("Monomial")


def _expand(term: Term) -> Polynomial:
    """Return the term as an integer polynomial; a term that may be infinite is a single atom."""
    if not term.finite:
        return {(term,): 1}
    value = number_of(term)
    if value is not None and value.denominator == 1:
        return {(): int(value)} if value else {}
    if term.op == "add":
        return summed(_expand(arg) for arg in term.args)
    if term.op == "mul":
        result: Polynomial = {(): 1}
        for arg in term.args:
            factor = _expand(arg)
            result = summed(
                {tuple(sorted((*a, *b), key=lambda t: t.key)): x * y}
                for a, x in result.items()
                for b, y in factor.items()
            )
        return result
    return {(term,): 1}


def summed(parts: Iterable[dict[Monomial, Any]]) -> dict[Monomial, Any]:
    """Return the sum of polynomials, each a map from monomials to coefficients."""
    total: dict[Monomial, Any] = {}
    for part in parts:
        for monomial, coefficient in part.items():
            total[monomial] = total.get(monomial, 0) + coefficient
    return {m: c for m, c in total.items() if c}


def _collect(polynomial: Polynomial) -> Term:
    monomials = sorted(polynomial, key=lambda m: (len(m), [t.key for t in m]))
    return add(
        *(mul(*(() if polynomial[m] == 1 else (num(polynomial[m]),)), *m) for m in monomials)
    )


@lru_cache(maxsize=1 << 17)
def integer(term: Term) -> Term:
    """Return an integer term in its normal form: expanded, with sorted monomials.

    >>> b = size("B")
    >>> integer(mul(num(2), b)) is integer(add(b, b))
    True
    """
    return _collect(_expand(term))


def split_integer(term: Term, unit: Term) -> tuple[Term, Term]:
    """Return (a, b) with ``term = a·unit + b``, where a collects the monomials that unit divides.

    If ``unit`` is a sum, such as A + B, divisibility is by one of its monomials of highest degree:
    the first with which 0 <= b < unit, if there is one.
    """
    divisor = _expand(unit)
    ordered = sorted(divisor, key=lambda m: (len(m), [t.key for t in m]), reverse=True)
    leads = [m for m in ordered if len(m) == len(ordered[0])]
    splits = (_split_by(term, unit, divisor, lead) for lead in leads or [()])
    first = next(splits)
    if len(leads) < 2 or below(first[1], unit):
        return first
    return next((split for split in splits if below(split[1], unit)), first)


def _split_by(
    term: Term, unit: Term, divisor: Polynomial, lead: tuple[Term, ...]
) -> tuple[Term, Term]:
    quotient = Polynomial()
    for monomial, coefficient in _expand(term).items() if divisor else ():
        left = list(monomial)
        for factor in lead:
            if factor in left:
                left.remove(factor)
        if len(left) == len(monomial) - len(lead):
            quotient[tuple(left)] = coefficient // divisor[lead]
    whole = _collect({m: c for m, c in quotient.items() if c})
    return whole, integer(subtract(term, mul(whole, unit)))


@cache
def below(term: Term, bound: Term) -> bool:
    """Whether 0 <= term < bound is shown for all values of the indices and all sizes >= 1."""
    if term.op == "index" and term.args[0] is bound:
        return True
    return always_less(num(-1), term) and always_less(term, bound)


@cache
def always_less(low: Term, high: Term) -> bool:
    """Whether low < high is shown for all indices and natural numbers and all sizes >= 1.

    ``high - low - 1`` is bounded below by a polynomial: a monomial with a positive coefficient
    that contains an index counts as 0, and in one with a negative coefficient each index takes the
    end of its range, starting with the indices on which no other range depends.  With
    size = 1 + s, the result is >= 0 if no coefficient is negative; natural numbers are kept.
    """
    gap = _expand(subtract(add(high, num(-1)), low))
    while ranged := {a: r for m in gap for a in m if (r := index_range(a)) is not None}:
        if not all(_is_natural(atom) for monomial in gap for atom in monomial):
            return False
        within = {part for r in ranged.values() for part in postorder(r)}
        ends = {a: add(r, num(-1)) for a, r in ranged.items() if a not in within}
        gap = _valued({m: c for m, c in gap.items() if c < 0 or ends.keys().isdisjoint(m)}, ends)
    if not all(_is_natural(atom) for monomial in gap for atom in monomial):
        return False
    sizes = {t: add(t, ONE) for monomial in gap for t in monomial if t.op == "size"}
    return all(coefficient >= 0 for coefficient in _valued(gap, sizes).values())


def _valued(polynomial: Polynomial, values: dict[Term, Term]) -> Polynomial:
    """Return the polynomial with some atoms replaced by values."""
    return _expand(
        add(*(mul(num(c), *(values.get(t, t) for t in m)) for m, c in polynomial.items()))
    )


def _is_natural(atom: Term) -> bool:
    """Whether an atom is a natural number by its form."""
    natural = atom.op == "var" and atom.data[1] == "natural" and not atom.shape
    return atom.op == "size" or natural or index_range(atom) is not None


def is_count(term: Term) -> bool:
    """Whether a term is a polynomial in sizes with integer coefficients, and nothing else."""
    if term.op in ("add", "mul"):
        return not term.shape and all(map(is_count, term.args))
    value = number_of(term)
    return term.op == "size" or (value is not None and value.denominator == 1)


def is_integer(term: Term) -> bool:
    """Whether the term is a polynomial with integer coefficients in naturals, indices and sizes."""
    return all(_is_natural(atom) for monomial in _expand(term) for atom in monomial)


def index_range(atom: Term) -> Term | None:
    """Return the exclusive upper bound of an index, an entry of an index array, or a digit.

    None for other atoms, for an outcome of a probability space, which is not a number, and for an
    entry of an index array at a place that may lie outside of its axis.
    """
    if atom.op == "index":
        return None if atom.args[0].op == "space" else atom.args[0]
    if atom.op in ("floor_divide", "remainder") and not atom.shape:
        return _digit_range(atom)
    array = index_array(atom)
    if array is None or not below(atom.args[1], atom.args[0].shape[0]):
        return None
    return array.args[0]


def _digit_range(atom: Term) -> Term | None:
    """Return the exclusive upper bound of ⌊j/k⌋ or j mod k, for a natural j and a length k >= 1.

    j mod k < k, and ⌊j/k⌋ < m if j < m·k.
    """
    number, width = atom.args
    if not (is_count(width) and always_less(ZERO, width)):
        return None
    if not always_less(num(-1), number):
        return None
    if atom.op == "remainder":
        return width
    length = index_range(number)
    blocks, rest = split_integer(length, width) if length is not None else (ZERO, ONE)
    return blocks if rest is ZERO else None


def index_array(t: Term) -> Term | None:
    """Return the index array of which a term is an entry, or of whose inverse; None otherwise."""
    array = t.args[0] if t.op in ("entry", "pick") and len(t.args) == 2 else None
    while array is not None and array.op == "inverse":
        array = array.args[0]
    return array if array is not None and array.op == "var" and array.args else None


TRUTHS = frozenset(["equal", "less", "less_equal", "and", "or", "not", "isin", "is in"])
CARRIES = frozenset([
    "named", "broadcast", "permute", "new axis", "reshape", "pick", "slice", "gather", "concat",
    "stack", "entry", "row",
])  # fmt: skip


@cache
def is_truth(t: Term) -> bool:
    """Whether a term is a truth value or an array of them, on which no arithmetic is defined."""
    if t.op in TRUTHS or (t.op == "var" and t.data[1] == "boolean"):
        return True
    if t.op in CARRIES:
        return is_truth(t.args[0])
    return t.op in ("tabulate", "where") and is_truth(t.args[1])


ALWAYS_WHOLE = frozenset(["size", "arange", "eye", "indicator", "inverse", "floor_divide"])
KEEPS_WHOLE = frozenset(["add", "mul", "abs", "maximum", "remainder"])


@cache
def is_whole(t: Term) -> bool:
    """Whether every entry of an array is an integer by its form.

    Bound indices do not count as integers, so callers open binders first.
    """
    if is_integer(t) or t.op in ALWAYS_WHOLE or (t.op == "var" and t.args):
        return True
    if t.op == "concat" or t.op == "stack" or t.op in KEEPS_WHOLE:
        return all(map(is_whole, t.args))
    if t.op == "where":
        return all(map(is_whole, t.args[1:]))
    if t.op == "power":
        return int(t.data) >= 0 and is_whole(t.args[0])
    if t.op == "reduce":
        return t.args[0].shape[t.data].op != "space" and is_whole(t.args[0])
    if t.op in ("entry", "row"):
        inside = zip(t.args[1:], t.args[0].shape, strict=False)
        return is_whole(t.args[0]) and all(below(i, length) for i, length in inside)
    return t.op in CARRIES and is_whole(t.args[0])
