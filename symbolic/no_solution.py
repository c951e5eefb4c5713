"""Certificates that an equation, linear in an unknown array, has no solution.

The claim reads: for all values of the other givens some array M, not depending on what it is
``free_of``, makes left = right for all values of that.  To refute it, the other givens get one
value and the rest several: p = 0, 1, 2, ...  One M must then solve all the equations at once,
a linear system A m = b with certified coefficients.  It has no solution if

* a row of A is exactly zero where b certainly is not: the unknown drops out of that equation, or
  of an inequality (left > right, left >= right) that fails without it; or
* some k columns hold every entry of k + 1 rows that is not exactly zero, and the determinant of
  these rows with b, of order k + 1, is certainly not zero: the rank of the system with b is
  then above that of the system without.

That the equations are linear is not assumed: the unknown's entries are :class:`Affine` forms,
which can be added and multiplied by numbers; whatever else is asked of them raises.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, islice
from typing import Any

import numpy as np
from flint import arb, arb_mat, fmpq

from .balls import Balls
from .candidates import Candidate
from .certified_numbers import NotANumber, certified_gap, finite, number
from .claim import Claim
from .exact_angles import ball

__all__ = ["Affine", "Contradiction", "contradiction", "equations"]


class Affine:
    """c + Σ aᵢ mᵢ: a certified number plus certified multiples of unknown numbers."""

    __slots__ = ("constant", "slopes")

    def __init__(self, constant: Any, slopes: dict[int, Any]) -> None:
        self.constant, self.slopes = constant, slopes

    def __add__(self, other: Any) -> Affine:
        if not isinstance(other, Affine):
            return Affine(self.constant + number(other), self.slopes)
        slopes = dict(self.slopes)
        for k, a in other.slopes.items():
            slopes[k] = slopes[k] + a if k in slopes else a
        return Affine(self.constant + other.constant, slopes)

    __radd__ = __add__

    def __mul__(self, other: Any) -> Affine:
        if isinstance(other, Affine):
            raise NotANumber("a product of two unknown numbers is not linear in them")
        a = number(other)
        return Affine(self.constant * a, {k: s * a for k, s in self.slopes.items()})

    __rmul__ = __mul__

    def __bool__(self) -> bool:
        raise NotANumber("an unknown number has no truth value")


@dataclass(frozen=True)
class Equation:
    """slopes · m + constant = 0, one entry of left - right at one value of the ``free_of``."""

    slopes: dict[int, Any]
    constant: Any
    trial: int
    place: tuple[int, ...]


@dataclass(frozen=True)
class Contradiction:
    """Equations that no array solves, and by how much.

    ``rows`` are the equations used; with one row the unknown has dropped out of it and ``gap``
    bounds what should be zero; with more, ``gap`` bounds the determinant.
    """

    rows: tuple[Equation, ...]
    gap: Fraction


def equations(claim: Claim, candidates: Sequence[Candidate]) -> list[Equation]:
    """The equations for the entries of the unknown, over all the candidates at once.

    Raises :class:`~attnproof.symbolic.certified_numbers.NotANumber` if left - right is not
    linear in the unknown.
    """
    assert claim.variable is not None
    name: str = claim.variable.data[0]
    result = []
    for trial, candidate in enumerate(candidates):
        empty = Balls(candidate.sizes, {})
        shape = empty.lengths(claim.variable)
        unknown = np.empty(shape, dtype=object)
        for k, place in enumerate(np.ndindex(*shape)):
            unknown[place] = Affine(fmpq(0), {k: fmpq(1)})
        read = Balls(candidate.sizes, {**candidate.values, name: unknown[()]})
        zero: Any = fmpq(0)
        sides = read(claim.left), zero if claim.right is None else read(claim.right)
        left, right = np.broadcast_arrays(*sides)
        for place in np.ndindex(*left.shape):
            form = Affine(fmpq(0), {}) + left[place] + right[place] * fmpq(-1)
            slopes = {k: a for k, a in form.slopes.items() if not _exactly_zero(a)}
            if finite(form.constant) and all(finite(a) for a in slopes.values()):
                result.append(Equation(slopes, form.constant, trial, place))
    return result


def _exactly_zero(x: Any) -> bool:
    return (isinstance(x, fmpq) and x == 0) or (isinstance(x, arb) and bool(x.is_zero()))


def contradiction(
    system: list[Equation], relation: str = "=", tries: int = 200
) -> Contradiction | None:
    """A certificate that the system has no solution, the simple one if there is one.

    Of ``relation`` ">" and ">=" each row is an inequality: left − right is above 0, or at least.
    """
    fails = _FAILS.get(relation)
    if fails is None:
        return None
    for row in system:
        if not row.slopes and fails(row.constant):
            return Contradiction((row,), certified_gap(row.constant, fmpq(0)))
    if relation != "=":
        return None
    groups: dict[frozenset[int], list[Equation]] = {}
    for row in system:
        groups.setdefault(frozenset(row.slopes), []).append(row)
    for columns in sorted(groups, key=lambda group: (len(group), sorted(group))):
        rows = [row for held, found in groups.items() if held <= columns for row in found]
        for chosen in islice(combinations(rows, len(columns) + 1), tries):
            gap = _determinant_gap(chosen, sorted(columns))
            if gap > 0:
                return Contradiction(chosen, gap)
    return None


_FAILS: dict[str, Callable[[Any], bool]] = {
    "=": lambda x: certified_gap(x, fmpq(0)) > 0,
    ">": lambda x: bool(ball(x) <= 0),
    ">=": lambda x: bool(ball(x) < 0),
}


def _determinant_gap(rows: Sequence[Equation], columns: list[int]) -> Fraction:
    table = [
        [*(arb(ball(row.slopes.get(k, 0))) for k in columns), arb(ball(row.constant))]
        for row in rows
    ]
    return certified_gap(arb_mat(table).det(), fmpq(0))
