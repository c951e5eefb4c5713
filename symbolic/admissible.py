"""Whether a candidate is admissible: its givens are of their kinds, and all hypotheses hold.

A law is about all values of its variables.  It is certified if there are finitely many and it
holds for each, or if both sides of an equation are the same polynomial in the variables.  It is
never certified by trying some values.

:func:`obeys` is exact, and refutations trust it.  :func:`settle` is not trusted: it changes a guess
so that it satisfies the assumed equations, which a random guess rarely does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice, permutations, product
from math import prod
from typing import Any

import numpy as np
from flint import fmpq, fmpq_mat, fmpq_mpoly, fmpq_mpoly_ctx

from .candidates import Candidate, array_of, is_design, reflection
from .certified_numbers import (
    Balls,
    NotANumber,
    Unclear,
    certified_gap,
    fraction,
    less,
    number,
    same,
)
from .claim import Claim, Law
from .derive import Contraction, contraction
from .givens import NUMBERS, Given
from .terms import Term, free, substitute

# Hypotheses that certainly hold for given values

MAX_ASSIGNMENTS = 2000
"""The largest number of assignments to a law's variables that are tried exhaustively."""
POLYNOMIAL = (*NUMBERS, "natural")

Values = Mapping[str, Any]


def with_bound_variables(
    claim: Claim, givens: Mapping[str, Given], hypotheses: Iterable[Term] = ()
) -> tuple[Claim, dict[str, Given]]:
    """Return the claim with its variables as further givens, and all givens.

    A variable with the name of a given is a different one and gets a prime, unless it is of the
    same kind and none of the ``hypotheses`` mentions that given, so that they are interchangeable.
    """
    every = dict(givens)
    spoken = frozenset[Term]().union(*(free(t) for t in hypotheses))
    for name, given in claim.variables:
        if (
            name in givens
            and given.kind != "function"
            and (given != givens[name] or givens[name].named(name).term in spoken)
        ):
            prime = next(p for k in range(1, 99) if (p := name + "′" * k) not in every)
            old, new = given.named(name).term, given.named(prime).term
            claim = claim.moved(lambda t, old=old, new=new: substitute(t, old, new))  # type: ignore[misc]
            every[prime] = given
        else:
            every[name] = given
    return replace(claim, variables=()), every


def holds(law: Law, sizes: Mapping[str, int], values: Values) -> bool:
    """Whether a law certainly holds for these values of the givens."""
    claim = law.claim
    if _ambiguous(claim):
        return False
    every = _assignments(claim, sizes)
    if every is not None:
        return all(certain(claim, Balls(sizes, {**values, **chosen})) for chosen in every)
    return claim.relation == "=" and _equal_polynomials(claim, sizes, values)


def _ambiguous(claim: Claim) -> bool:
    """Whether a variable of a law shares its name with something else in it."""
    names = {name for name, _ in claim.variables}
    own = {given.named(name).term for name, given in claim.variables if given.kind != "function"}
    within = free(claim.left) | (free(claim.right) if claim.right is not None else frozenset())
    others = {t for t in within - own if t.op in ("var", "index")}
    return any(str(t.data if t.op == "index" else t.data[0]) in names for t in others)


def certain(claim: Claim, read: Balls) -> bool:
    """Whether a claim certainly holds at the values of ``read``; False if it cannot be decided."""
    try:
        left = read(claim.left)
        right: Any = fmpq(0) if claim.right is None else read(claim.right)
        pairs = list(zip(*(x.ravel() for x in np.broadcast_arrays(left, right)), strict=True))
        if claim.relation == "!=":
            return any(_certainly_differ(x, y) for x, y in pairs)
        return all(_relation_holds(claim.relation, x, y) for x, y in pairs)
    except Unclear:
        return False


def _certainly_differ(x: Any, y: Any) -> bool:
    if isinstance(x, bool | np.bool_):
        return bool(x != y)
    return certified_gap(number(x), number(y)) > 0


def _relation_holds(relation: str, x: Any, y: Any) -> bool:
    if relation == "=":
        return same(x, y)
    if relation == ">":
        return less(y, x)
    return relation == ">=" and not less(x, y)


def _assignments(claim: Claim, sizes: Mapping[str, int]) -> Iterator[dict[str, Any]] | None:
    """Return all values of the variables, or None if there are too many."""
    options = [_options(given, dict(sizes)) for _, given in claim.variables]
    if any(found is None for found in options):
        return None
    listed = [list(islice(found, MAX_ASSIGNMENTS + 1)) for found in options if found is not None]
    if prod(map(len, listed)) > MAX_ASSIGNMENTS:
        return None
    names = [name for name, _ in claim.variables]
    return (dict(zip(names, chosen, strict=True)) for chosen in product(*listed))


def _options(given: Given, sizes: dict[str, int]) -> Iterator[Any] | None:
    if given.below is not None and given.below.op == "space":
        return None
    shape, many = given.shape_and_range(sizes)
    below = range(many)
    if given.kind == "index":
        return iter(below)
    if given.kind in ("permutation", "injection"):
        return (np.array(chosen, dtype=np.int64) for chosen in permutations(below, shape[0]))
    if given.kind == "index map":
        return (np.array(c, dtype=np.int64) for c in product(below, repeat=shape[0]))
    if given.kind == "boolean":
        every = product((False, True), repeat=prod(shape))
        return (np.array(chosen, dtype=bool).reshape(shape) for chosen in every)
    return None


class _Polynomial:
    """A polynomial with rational coefficients, with sums, products and powers >= 0 only."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __add__(self, other: Any) -> _Polynomial:
        return _Polynomial(self.value + _rational(other))

    def __mul__(self, other: Any) -> _Polynomial:
        return _Polynomial(self.value * _rational(other))

    __radd__, __rmul__ = __add__, __mul__

    def __sub__(self, other: Any) -> _Polynomial:
        return _Polynomial(self.value - _rational(other))

    def __rsub__(self, other: Any) -> _Polynomial:
        return _Polynomial(_rational(other) - self.value)

    def __pow__(self, exponent: int) -> _Polynomial:
        return _Polynomial(self.value**exponent)

    def __bool__(self) -> bool:
        raise NotANumber("a polynomial has no truth value")


def _rational(x: Any) -> Any:
    if isinstance(x, _Polynomial):
        return x.value
    exact = number(x)
    if not isinstance(exact, fmpq):
        raise NotANumber(f"a polynomial has rational coefficients, not {x!r}")
    return exact


class _PolynomialEvaluator(Balls):
    """An evaluator in which the entries of some variables are unknowns of polynomials."""

    def elementwise(self, op: str, data: Any, *args: Any) -> Any:
        if op == "power" and data >= 0:
            base = np.asarray(args[0], dtype=object)
            if any(isinstance(x, _Polynomial) for x in base.ravel()):
                return (base**data)[()]
        return super().elementwise(op, data, *args)


def _equal_polynomials(claim: Claim, sizes: Mapping[str, int], values: Values) -> bool:
    """Whether both sides are the same polynomial in the entries of the variables."""
    assert claim.right is not None
    shapes: dict[str, tuple[int, ...]] = {}
    for name, given in claim.variables:
        if given.kind not in POLYNOMIAL:
            return False
        shapes[name], _ = given.shape_and_range(sizes)
    labels = [f"{name}_{k}" for name, shape in shapes.items() for k in range(prod(shape))]
    letters = [_Polynomial(letter) for letter in fmpq_mpoly_ctx.get(labels).gens()]
    unknown: dict[str, Any] = {}
    for name, shape in shapes.items():
        entries = np.empty(shape, dtype=object)
        entries.reshape(-1)[:] = letters[: prod(shape)]
        letters, unknown[name] = letters[prod(shape) :], entries[()]
    read = _PolynomialEvaluator(sizes, {**values, **unknown})
    try:
        sides = np.broadcast_arrays(read(claim.left), read(claim.right))
        return all(_zero(x - y) for x, y in zip(*(s.ravel() for s in sides), strict=True))
    except (Unclear, TypeError):  # not a polynomial: undecided
        return False


def _zero(x: Any) -> bool:
    value = x.value if isinstance(x, _Polynomial) else x
    return isinstance(value, fmpq | fmpq_mpoly | int) and bool(value == 0)


# Admissibility of a candidate

Assumptions = tuple[tuple[Term, Term], ...]


def obeys(
    candidate: Candidate,
    givens: Mapping[str, Given],
    assume: Assumptions = (),
    laws: tuple[Law, ...] = (),
) -> bool:
    """Whether every given is of its kind and every hypothesis holds, in exact arithmetic.

    Also False if a hypothesis cannot be decided.
    """
    sizes = dict(candidate.sizes)
    if any(n < 1 for n in sizes.values()):
        return False
    for name, given in givens.items():
        if not _fits(given, candidate.values[name], *given.shape_and_range(sizes)):
            return False
    read = Balls(sizes, candidate.values)
    try:
        equations = all(_all_same(read(left), read(right)) for left, right in assume)
    except Unclear:
        return False
    return equations and all(holds(law, sizes, candidate.values) for law in laws)


def _all_same(left: Any, right: Any) -> bool:
    a, b = np.broadcast_arrays(left, right)
    if a.dtype == bool or b.dtype == bool:
        return bool((a == b).all())
    return all(same(x, y) for x, y in zip(a.ravel(), b.ravel(), strict=True))


def _fits(given: Given, value: Any, shape: tuple[int, ...], below: int) -> bool:
    if given.kind == "function":
        return callable(value)
    if given.kind == "index":
        return type(value) is int and 0 <= value < below
    if given.kind == "natural":
        return type(value) is int and value >= 0
    if value.shape != shape:
        return False
    if given.kind in ("permutation", "injection", "index map"):
        chosen = [int(i) for i in value]
        distinct = given.kind == "index map" or len(set(chosen)) == len(chosen)
        return distinct and all(0 <= i < below for i in chosen)
    if given.kind == "boolean":
        return bool(value.dtype == bool)
    if not all(isinstance(x, Fraction | int) for x in value.ravel()):
        return False
    if given.kind == "orthogonal":
        return bool((value.T @ value == np.eye(len(value), dtype=int)).all())
    if given.kind == "standard":
        return is_design(value)
    least = min(value.ravel(), default=1)
    signs = {"positive": least > 0, "nonnegative": least >= 0}
    return signs.get(given.kind, given.kind in NUMBERS)


@dataclass(frozen=True)
class _Cell:
    """A label for one entry of an array; it can be moved, but not computed with."""

    name: str
    place: tuple[int, ...]

    def __bool__(self) -> bool:
        raise TypeError("a label has no truth value")


def settle(candidate: Candidate, assume: Assumptions) -> Candidate:
    """Return the candidate changed to satisfy the assumed equations, as far as possible.

    Entries that an equation identifies are copied, and an array that it defines by a formula is
    computed; any other assumption is left for :func:`obeys` to check.
    """
    if not assume:
        return candidate
    labels = dict(candidate.values)
    for name, value in candidate.values.items():
        if isinstance(value, np.ndarray) and value.dtype != np.int64:
            cells = [_Cell(name, place) for place in np.ndindex(*value.shape)]
            labels[name] = array_of(value.shape, cells)
    values = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in candidate.values.items()}
    copied = replace(candidate, values=values)
    for _ in range(3):
        for pair in assume:
            product = contraction(*pair)
            if product is None:
                _settle_entries(copied, labels, pair)
            else:
                _settle_product(copied.values, product)
    return copied


def _settle_product(values: Any, product: Contraction) -> None:
    """Make the second factor the inverse of the first, or the columns (rows) orthonormal."""
    first, second = (str(factor.data[0]) for factor in (product.first, product.second))
    matrix = values[first]
    if product.kind == "inverse":
        table = _exact(matrix)
        if matrix.shape[0] == matrix.shape[1] and table.det() != 0:
            values[second] = array_of(matrix.shape, _fractions(table.inv()))
        return
    columns = matrix if product.kind == "columns" else matrix.T
    n, many = columns.shape
    if n < many:
        return
    table = _exact(columns)
    if table.transpose() * table != _exact(np.eye(many, dtype=object)):
        turned = _exact(np.eye(n, dtype=object))
        for column in columns.T:
            turned = turned * _exact(reflection(list(column))) if any(column) else turned
        columns = array_of((n, n), _fractions(turned))[:, :many]
    values[first] = columns if product.kind == "columns" else columns.T


def _exact(matrix: Any) -> fmpq_mat:
    """The matrix in the arithmetic of FLINT, in which products of long fractions are quick."""
    return fmpq_mat([[fmpq(x.numerator, x.denominator) for x in row] for row in matrix])


def _fractions(matrix: fmpq_mat) -> list[Any]:
    return [fraction(x) for row in matrix.tolist() for x in row]


def _settle_entries(copied: Candidate, labels: dict[str, Any], pair: tuple[Term, Term]) -> None:
    sides = []
    for side in pair:
        try:
            moved = np.asarray(Balls(copied.sizes, labels)(side), dtype=object)
            sides.append(moved if all(isinstance(c, _Cell) for c in moved.ravel()) else None)
        except (TypeError, Unclear):
            sides.append(None)
    left, right = sides
    if left is not None and right is not None:
        for a, b in zip(*(side.ravel() for side in np.broadcast_arrays(left, right)), strict=True):
            first, other = sorted((a, b), key=lambda cell: (cell.name, cell.place))
            copied.values[other.name][other.place] = copied.values[first.name][first.place]
        return
    for cells, formula in ((left, pair[1]), (right, pair[0])):
        if cells is None:
            continue
        try:
            computed = np.asarray(Balls(copied.sizes, copied.values)(formula), dtype=object)
        except Unclear:
            return
        for cell, x in zip(*(s.ravel() for s in np.broadcast_arrays(cells, computed)), strict=True):
            value = bool(x) if isinstance(x, bool | np.bool_) else fraction(x)
            if value is not None:
                copied.values[cell.name][cell.place] = value
