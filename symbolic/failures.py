"""Certified failure of a claim at one candidate, existence claims included.

A failed equation, inequality or difference is read off the certified values of the two sides.  An
existence claims: for all values of the other givens there is an array M, independent of what it is
``free_of``, with left = right for all values of that.  To refute it, the other givens get one
value and what M is free of gets several: p = 0, 1, 2, ...  A single M must then solve all the
equations at once, a linear system A m = b with certified coefficients.  It has no solution if

* a row of A is exactly zero and b certainly is not zero there: the unknown drops out of that
  equation, or of an inequality (left > right, left >= right) that fails without it; or
* all entries of some k + 1 rows that are not exactly zero lie in k columns, and the determinant of
  order k + 1 of these rows with b is certainly not zero: the rank of the system with b then
  exceeds that without.

Linearity is not assumed: the entries of the unknown are :class:`Affine` forms, which can be added
and multiplied by numbers; any other operation on them raises.

This part of a refutation must be correct; the search around it need not be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, islice
from random import Random
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx, fmpq

from .admissible import Assumptions, obeys
from .candidates import Candidate, draw
from .certified_numbers import (
    Balls,
    NotANumber,
    ReadsOutside,
    Unclear,
    ball,
    certified_gap,
    finite,
    number,
)
from .claim import Claim, Law, name_of
from .givens import NUMBERS, Given

# Certificates that an equation, linear in an unknown array, has no solution


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
    """slopes · m + constant = 0: an entry of left - right at one value of what M is free of."""

    slopes: dict[int, Any]
    constant: Any
    trial: int
    place: tuple[int, ...]


@dataclass(frozen=True)
class Contradiction:
    """Equations that no array solves, with a certified gap.

    ``rows`` are the equations used.  With one row, the unknown has dropped out and ``gap`` bounds
    the number that should be zero; with more, ``gap`` bounds the determinant.
    """

    rows: tuple[Equation, ...]
    gap: Fraction


def equations(claim: Claim, candidates: Sequence[Candidate]) -> list[Equation]:
    """Return the equations for the entries of the unknown, over all candidates.

    Raises :class:`~attnproof.symbolic.certified_numbers.NotANumber` if left - right is not
    linear in the unknown.
    """
    assert claim.variable is not None
    name = name_of(claim.variable)
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


TRIES = 200  # of the sets of rows over the same columns


def contradiction(system: list[Equation], relation: str = "=") -> Contradiction | None:
    """Return a certificate that the system has no solution, one of a single row if possible.

    For ``relation`` ">" or ">=" each row is an inequality: left − right > 0, or >= 0.
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
        for chosen in islice(combinations(rows, len(columns) + 1), TRIES):
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


# The failure of a claim at one candidate

PRECISIONS = (64, 128, 256, 512)
_TRUTH = (bool, np.bool_)


@dataclass(frozen=True)
class Failure:
    """The failure of a claim for a candidate at ``place``, by at least ``gap``.

    ``left`` and ``right`` are certified numbers there.  For ">", ">=" and "!=" the gap may be 0.
    For "exists", ``left`` is the constant of the equation without the unknown and ``right`` is 0;
    ``trials`` has the values of what the unknown must not depend on.
    """

    candidate: Candidate
    place: tuple[int, ...]
    left: Any
    right: Any
    gap: Fraction
    contradiction: Contradiction | None = None
    trials: tuple[Candidate, ...] = ()


def failure_of(
    claim: Claim,
    givens: Mapping[str, Given],
    assume: Assumptions,
    candidate: Candidate,
    precisions: tuple[int, ...] = PRECISIONS,
    laws: tuple[Law, ...] = (),
) -> Failure | None:
    """Return the certified failure of the claim at a candidate, or None.

    Raises ``ValueError`` for an unknown relation, and for a claim with variables of its own.
    """
    if claim.relation not in ("=", ">", ">=", "!=", "exists") or claim.variables:
        raise ValueError(
            "a refutation wants a claim with '=', '>', '>=', '!=' or 'exists' whose variables are "
            f"givens; got {claim.relation!r}"
        )
    for bits in precisions:
        with ctx.workprec(bits):
            try:
                if not obeys(candidate, givens, assume, laws):
                    return None
                if claim.relation == "=":
                    return _unequal(claim, candidate)
                if claim.relation == "!=":
                    return _equal(claim, candidate)
                if claim.relation == "exists":
                    return _no_solution(claim, givens, (assume, laws), candidate)
                return _out_of_order(claim, candidate)
            except Unclear:
                continue
            except ReadsOutside:
                return None
    return None


def _sides(claim: Claim, candidate: Candidate) -> tuple[Any, Any]:
    """Return both sides as arrays of certified numbers; a missing right side is 0."""
    read = Balls(candidate.sizes, candidate.values)
    right: Any = fmpq(0) if claim.right is None else read(claim.right)
    left, right = np.broadcast_arrays(read(claim.left), right)
    exact = np.frompyfunc(lambda x: number(int(x) if isinstance(x, _TRUTH) else x), 1, 1)
    return np.asarray(exact(left), dtype=object), np.asarray(exact(right), dtype=object)


def _unequal(claim: Claim, candidate: Candidate) -> Failure | None:
    """Return the failure at the entry with the largest certified gap between the sides."""
    left, right = _sides(claim, candidate)
    best: Failure | None = None
    open_entries = False
    for place in np.ndindex(*left.shape):
        x, y = left[place], right[place]
        gap = certified_gap(x, y)
        if gap > 0 and (best is None or gap > best.gap):
            best = Failure(candidate, place, x, y, gap)
        open_entries = open_entries or (gap == 0 and _separable(x, y))
    if best is None and open_entries:
        raise Unclear("the sides overlap at this precision")
    return best


def _separable(x: Any, y: Any) -> bool:
    """Whether a higher precision may still separate two overlapping balls."""
    if not (finite(x) and finite(y)):
        return x is not y
    gap = ball(x - y)
    return not isinstance(gap, fmpq) and bool(gap.abs_upper() > fmpq(1, 2**30))


def _out_of_order(claim: Claim, candidate: Candidate) -> Failure | None:
    """Return the failure at an entry where left − right is certainly <= 0 (for ">") or < 0.

    The gap is a certified lower bound of the distance; for ">" it may be 0.
    """
    left, right = _sides(claim, candidate)
    best: Failure | None = None
    decided = True
    for place in np.ndindex(*left.shape):
        x, y = left[place], right[place]
        if not (finite(x) and finite(y)):
            decided = False
            continue
        gap = ball(x - y)
        fails, kept = (gap <= 0, gap > 0) if claim.relation == ">" else (gap < 0, gap >= 0)
        decided = decided and bool(fails or kept)
        if fails and (best is None or certified_gap(x, y) > best.gap):
            best = Failure(candidate, place, x, y, certified_gap(x, y))
    if best is None and not decided:
        raise Unclear("an entry is not known precisely enough to compare it")
    return best


def _equal(claim: Claim, candidate: Candidate) -> Failure | None:
    """Return a failure at the first entry if all entries of both sides are rational and equal.

    Arrays without entries are equal as well, but there is no entry to show.
    """
    left, right = (np.frompyfunc(_rational, 1, 1)(side) for side in _sides(claim, candidate))
    left, right = np.asarray(left, dtype=object), np.asarray(right, dtype=object)
    pairs = zip(left.ravel(), right.ravel(), strict=True)
    exact = all(isinstance(x, fmpq) and isinstance(y, fmpq) and x == y for x, y in pairs)
    if not (left.size and exact):
        return None
    place = next(np.ndindex(*left.shape))
    return Failure(candidate, place, left[place], right[place], Fraction(0))


def _rational(x: Any) -> Any:
    """Return the number in a ball of radius 0, such as 0·π; other numbers unchanged."""
    return x.fmpq() if isinstance(x, arb) and x.is_finite() and x.is_exact() else x


def _no_solution(
    claim: Claim,
    givens: Mapping[str, Given],
    hypotheses: tuple[Assumptions, tuple[Law, ...]],
    candidate: Candidate,
) -> Failure | None:
    """Return a failure at several values of ``free_of`` for which no common array exists."""
    assert claim.variable is not None
    names = [
        str(t.data if t.op == "index" else t.data[0])
        for t in claim.free_of
        if t.op in ("var", "index")
    ]
    unknowns = int(np.prod(Balls(candidate.sizes, {}).lengths(claim.variable), dtype=int))
    random = Random(0)
    trials = []
    for k in range(min(unknowns + 3, 20) if names else 1):
        values = dict(candidate.values)
        for name in names:
            values[name] = _trial(name, givens[name], candidate, k, random)
        trial = replace(candidate, values=values)
        if obeys(trial, givens, *hypotheses):
            trials.append(trial)
    try:
        found = contradiction(equations(claim, trials), claim.inner)
    except NotANumber:
        return None
    if found is None:
        return None
    row = found.rows[0]
    used = tuple(trials[k] for k in sorted({row.trial for row in found.rows}))
    return Failure(candidate, row.place, row.constant, fmpq(0), found.gap, found, used)


def _trial(name: str, given: Given, candidate: Candidate, k: int, random: Random) -> Any:
    """Return the k-th value of a given: 0, 1, 2, ... for numbers, random for other kinds."""
    value = candidate.values[name]
    if given.kind == "natural":
        return k
    if given.kind == "index":
        assert given.below is not None
        return k % Balls(candidate.sizes, {}).length(given.below)
    if given.kind in NUMBERS:
        filled = np.empty(value.shape, dtype=object)
        filled[...] = Fraction(k + (given.kind == "positive"))
        return filled
    again = draw({name: given}, candidate.sizes, random, 4 + k)
    return value if again is None else again.values[name]
