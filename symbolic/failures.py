"""Where a claim certainly fails for one candidate.

This is the part of a refutation that must be right; the search around it may be careless.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
from flint import ctx, fmpq

from .admissible import Assumptions, obeys
from .balls import Balls
from .candidates import NUMBERS, Candidate, draw
from .certified_numbers import NotANumber, Unclear, certified_gap, finite
from .givens import Given
from .no_solution import Contradiction, contradiction, equations
from .statement import Claim

__all__ = ["PRECISIONS", "Failure", "failure_of"]

PRECISIONS = (64, 128, 256, 512)


@dataclass(frozen=True)
class Failure:
    """A claim fails for the candidate at ``place``, by at least ``gap``.

    ``left`` and ``right`` are certified numbers there.  For "exists" they are the equation's
    number with the unknown left out, and 0; ``trials`` are the values of what the unknown must
    not depend on.
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
) -> Failure | None:
    """The failure of the claim at a candidate, or None if it is not certain.

    Raises ``ValueError`` for a relation this page does not know.
    """
    if claim.relation not in ("=", ">", "exists"):
        raise ValueError(
            f"a claim says '=', '>' or 'exists', not {claim.relation!r}; "
            "there is no refutation for it"
        )
    if not obeys(candidate, givens, assume):
        return None
    for bits in precisions:
        with ctx.workprec(bits):
            try:
                if claim.relation == "=":
                    return _unequal(claim, candidate)
                if claim.relation == ">":
                    return _not_positive(claim, candidate)
                return _no_array(claim, givens, assume, candidate)
            except Unclear:
                continue
    return None


def _unequal(claim: Claim, candidate: Candidate) -> Failure | None:
    """The entry with the largest certified gap between the two sides."""
    assert claim.right is not None
    read = Balls(candidate.sizes, candidate.values)
    left, right = np.broadcast_arrays(read(claim.left), read(claim.right))
    best: Failure | None = None
    open_entries = False
    for place in np.ndindex(*left.shape):
        x, y = left[place], right[place]
        gap = certified_gap(x, y)
        if gap > 0 and (best is None or gap > best.gap):
            best = Failure(candidate, place, x, y, gap)
        open_entries = open_entries or (gap == 0 and _wide(x, y))
    if best is None and open_entries:
        raise Unclear("the sides overlap and are not yet known well")
    return best


def _wide(x: Any, y: Any) -> bool:
    """Whether more precision may still separate two overlapping balls."""
    if not (finite(x) and finite(y)):
        return x is not y
    gap = x - y
    return not isinstance(gap, fmpq) and bool(gap.abs_upper() > fmpq(1, 2**30))


def _not_positive(claim: Claim, candidate: Candidate) -> Failure | None:
    """An entry certainly at most 0; the gap is its certified distance from 0, maybe 0."""
    value = np.asarray(Balls(candidate.sizes, candidate.values)(claim.left), dtype=object)
    for place in np.ndindex(*value.shape):
        x = value[place]
        if finite(x) and x <= 0:
            return Failure(candidate, place, x, fmpq(0), certified_gap(x, fmpq(0)))
    if not all(finite(x) and x > 0 for x in value.ravel()):
        raise Unclear("an entry is not yet known to be positive or not")
    return None


def _no_array(
    claim: Claim, givens: Mapping[str, Given], assume: Assumptions, candidate: Candidate
) -> Failure | None:
    """Several values of ``free_of`` that no one array serves."""
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
        if obeys(trial, givens, assume):
            trials.append(trial)
    try:
        found = contradiction(equations(claim, trials))
    except NotANumber:
        return None
    if found is None:
        return None
    row = found.rows[0]
    used = tuple(trials[k] for k in sorted({row.trial for row in found.rows}))
    return Failure(candidate, row.place, row.constant, fmpq(0), found.gap, found, used)


def _trial(name: str, given: Given, candidate: Candidate, k: int, random: Random) -> Any:
    """The k-th value: 0, 1, 2, ... for numbers, anything for the rest."""
    value = candidate.values[name]
    if given.kind == "index":
        assert given.below is not None
        return k % Balls(candidate.sizes, {}).length(given.below)
    if given.kind in NUMBERS:
        filled = np.empty(value.shape, dtype=object)
        filled[...] = Fraction(k + (given.kind == "positive"))
        return filled
    again = draw({name: given}, candidate.sizes, random, 4 + k)
    return value if again is None else again.values[name]
