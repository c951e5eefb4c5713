"""Whether a candidate may count: every given is what it is said to be, every assumption holds.

:func:`obeys` is trusted by a refutation and exact.  :func:`settle` is not: it builds the assumed
equations into a guess, so that :func:`obeys` does not have to wait for luck.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from flint import fmpq, fmpq_mat

from .balls import Balls
from .candidates import NUMBERS, Candidate, array_of
from .certified_numbers import Unclear, fraction, same
from .claim import Law
from .designs import is_design, reflection
from .facts import Contraction, contraction
from .givens import Given
from .laws import holds
from .scalars import length_value
from .terms import Term

__all__ = ["Assumptions", "obeys", "settle"]

Assumptions = tuple[tuple[Term, Term], ...]


def obeys(
    candidate: Candidate, givens: Mapping[str, Given], assume: Assumptions = (),
    laws: tuple[Law, ...] = (),
) -> bool:  # fmt: skip
    """Whether every given is what it is said to be and every hypothesis holds, exactly.

    False too where a hypothesis cannot be decided.
    """
    sizes = dict(candidate.sizes)
    if any(n < 1 for n in sizes.values()):
        return False
    for name, given in givens.items():
        below = length_value(given.below, sizes) if given.below is not None else None
        shape = tuple(length_value(n, sizes) for n in given.shape)
        if not _fits(given, candidate.values[name], shape, below):
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


def _fits(given: Given, value: Any, shape: tuple[int, ...], below: int | None) -> bool:
    if given.kind == "function":
        return callable(value) and not set(given.traits) - {"equivariant"}
    if given.kind == "index":
        return type(value) is int and below is not None and 0 <= value < below
    if given.kind == "natural":
        return type(value) is int and value >= 0
    if value.shape != shape:
        return False
    if given.kind in ("permutation", "injection", "index map"):
        chosen = [int(i) for i in value]
        distinct = given.kind == "index map" or len(set(chosen)) == len(chosen)
        return below is not None and distinct and all(0 <= i < below for i in chosen)
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
    """One entry of one array, as a label: it can be moved, not computed with."""

    name: str
    place: tuple[int, ...]

    def __bool__(self) -> bool:
        raise TypeError("a label has no truth value")


def settle(candidate: Candidate, assume: Assumptions) -> Candidate:
    """The candidate with the assumed equations built in.

    Entries that an equation identifies are copied, and an array that it gives by a formula is
    computed; whatever else is assumed is left for :func:`obeys` to refuse.
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
                _settle_one(copied, labels, pair)
            else:
                _settle_product(copied.values, product)
    return copied


def _settle_product(values: Any, product: Contraction) -> None:
    """Make the second factor the inverse of the first, or the columns (rows) orthonormal."""
    first, second = (str(factor.data[0]) for factor in (product.first, product.second))
    matrix = values[first]
    if product.kind == "inverse":
        table = [[fmpq(x.numerator, x.denominator) for x in row] for row in matrix]
        if matrix.shape[0] == matrix.shape[1] and fmpq_mat(table).det() != 0:
            entries = [fraction(x) for row in fmpq_mat(table).inv().tolist() for x in row]
            values[second] = array_of(matrix.shape, entries)
        return
    columns = matrix if product.kind == "columns" else matrix.T
    if len(columns) < columns.shape[1]:
        return
    turned = array_of((len(columns),) * 2, [Fraction(int(x)) for x in np.eye(len(columns)).ravel()])
    if not (columns.T @ columns == np.eye(columns.shape[1], dtype=int)).all():
        for column in columns.T:
            turned = turned @ reflection(list(column)) if any(column) else turned
        columns = turned[:, : columns.shape[1]]
    values[first] = columns if product.kind == "columns" else columns.T


def _settle_one(copied: Candidate, labels: dict[str, Any], pair: tuple[Term, Term]) -> None:
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
