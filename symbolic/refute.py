"""Refute a claim by small exact inputs for which it certainly fails.

Why an accepted witness refutes the claim.  The claim is quantified over all sizes >= 1 and all
values of its givens that satisfy the assumptions.  A witness is one choice of them: every value
is an exact rational, an index, a truth value or a polynomial function, and that it is what the
given says (a permutation, g·gᵀ = 1, positive, the assumed equations) is checked in exact
arithmetic after everything else is done.  Both sides are evaluated in ball arithmetic: each
result is a ball that certainly holds the true value.  Comparisons are answered only when
certain, and a division by what may be zero gives a result without value, so both sides are
well defined where they are compared.  The witness is accepted only if the balls of the two
sides are finite and disjoint at some entry; ``gap`` is a rational number below their distance.
So the two true values differ, and the claim does not hold for all inputs.  For ">" the ball of
an entry must lie in (-∞, 0].  For "exists", see :mod:`~attnproof.symbolic.no_solution`.  What is
trusted for this: ``evaluate``, ``certified_numbers``, ``balls``, ``admissible.obeys``,
``failures``, ``no_solution``, the traits of ``sample_functions``, and Arb.  The final witness is
computed again with more digits.

The search itself may be careless: a bad guess is refused, and no guess proves a claim true.
``None`` says that nothing was found, and nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from random import Random
from time import monotonic
from typing import Any

import numpy as np

from .admissible import Assumptions, settle
from .candidates import POOL, Candidate, draw, simpler
from .decision import Witness
from .failures import PRECISIONS, Failure, failure_of
from .givens import Given
from .statement import Claim
from .terms import Term, free, postorder
from .witness_text import decimal, plain_value, rounded_down, two_sides, written

__all__ = ["refute"]


def refute(
    claim: Claim,
    givens: Mapping[str, Given],
    assume: Assumptions = (),
    *,
    limit_seconds: float = 5.0,
) -> Witness | None:
    """A certified witness against the claim, made small, or None if none was found in time.

    >>> from attnproof.symbolic.givens import real, sizes
    >>> from attnproof.symbolic.statement import equal
    >>> (n,) = sizes("n")
    >>> given = {"A": real(n, n), "B": real(n, n)}
    >>> A, B = (g.named(name) for name, g in given.items())
    >>> refute(equal(A @ B, B @ A), given).text
    'n = 2, A = ((0, 0), (0, 1)), B = ((0, 0), (1, 0)): left 1, right 0 at [1, 0]'
    """
    search = _Search(claim, givens, assume, monotonic() + limit_seconds)
    found = search.first()
    if found is None:
        return None
    search.deadline = monotonic() + min(1.0, limit_seconds)
    small = search.smaller_values(search.smaller_sizes(found))
    sure = search.check(small.candidate, PRECISIONS[2:])
    return _witness(claim, sure, search.used) if sure else None


class _Search:
    """One search: what is attacked, until when, and one source of guesses."""

    def __init__(
        self, claim: Claim, givens: Mapping[str, Given], assume: Assumptions, deadline: float
    ) -> None:
        self.claim, self.givens, self.assume, self.deadline = claim, givens, assume, deadline
        self.random = Random(0)
        sides = [claim.left, *((claim.right,) if claim.right is not None else ())]
        parts = [t for pair in assume for t in pair] + sides
        parts += [t for g in givens.values() for t in (*g.shape, *(g.out or ()))]
        parts += [g.below for g in givens.values() if g.below is not None]
        found = frozenset[Term]().union(*(free(t) for t in parts))
        calls = {t.data for part in parts for t in postorder(part) if t.op == "call"}
        self.used = {_name(t) for t in found if t.op in ("var", "index")}
        self.used |= {data[0] for data in calls}
        self.names = sorted({t.data[0] for t in found if t.op == "size"})

    def first(self) -> Failure | None:
        """The first failure, over more and more guesses at each choice of sizes."""
        for tries in (3, 6, 12, 24, 48, 96):
            for sizes in _size_vectors(self.names):
                found = self.at(sizes, tries)
                if found or monotonic() > self.deadline:
                    return found
        return None

    def at(self, sizes: Mapping[str, int], tries: int) -> Failure | None:
        """A failure at these sizes, in so many guesses."""
        for k in range(tries):
            guess = draw(self.givens, sizes, self.random, min(4 + k, len(POOL)))
            found = self.check(guess) if guess is not None else None
            if found or guess is None or monotonic() > self.deadline:
                return found
        return None

    def check(
        self, guess: Candidate, precisions: tuple[int, ...] = PRECISIONS
    ) -> Failure | None:
        """The certified failure at a guess, with the assumed equations built in."""
        candidate = settle(guess, self.assume)
        return failure_of(self.claim, self.givens, self.assume, candidate, precisions)

    def smaller_sizes(self, failure: Failure) -> Failure:
        """A failure at smaller sizes: each is lowered as long as a few guesses succeed."""
        lowered = True
        while lowered and monotonic() < self.deadline:
            lowered = False
            for name, n in failure.candidate.sizes.items():
                for low in range(1, n):
                    found = self.at({**failure.candidate.sizes, name: low}, 8)
                    if found:
                        failure, lowered = found, True
                        break
        return failure

    def smaller_values(self, failure: Failure) -> Failure:
        """A failure with simpler values, one replacement at a time while it stays certified."""
        lowered = True
        while lowered:
            lowered = False
            for name, given in self.givens.items():
                step = self._one_smaller(failure, name, given)
                while step is not None:
                    failure, lowered = step, True
                    step = self._one_smaller(failure, name, given)
        return failure

    def _one_smaller(self, failure: Failure, name: str, given: Given) -> Failure | None:
        candidate = failure.candidate
        for value in simpler(name, given, candidate.values[name], candidate.sizes):
            if monotonic() > self.deadline:
                return None
            found = self.check(candidate.with_value(name, value), PRECISIONS[:2])
            if found and _differ(found.candidate.values[name], candidate.values[name]):
                return found
        return None


def _differ(a: Any, b: Any) -> bool:
    return a is not b and not (isinstance(a, np.ndarray) and bool((a == b).all()))


def _size_vectors(names: list[str]) -> Iterator[dict[str, int]]:
    """All sizes 1, all 2, then 1 to 3 for each size, smallest sum first."""
    span = (1, 2, 3) if len(names) <= 7 else (1, 2)
    every = sorted(product(span, repeat=len(names)), key=lambda v: (sum(v), max(v, default=0), v))
    ones, twos = (1,) * len(names), (2,) * len(names)
    for vector in (ones, twos, *every) if names else ((),):
        yield dict(zip(names, vector, strict=True))


def _name(term: Term) -> str:
    return str(term.data if term.op == "index" else term.data[0])


def _witness(claim: Claim, failure: Failure, used: set[str]) -> Witness:
    sizes, values = dict(failure.candidate.sizes), dict(failure.candidate.values)
    if failure.contradiction is not None:
        return _no_array_witness(claim, failure, used)
    left, right = two_sides(failure.left, failure.right)
    place = f" at {list(failure.place)}" if any(failure.place) else ""
    end = f"left {left}, right {right}{place}"
    if claim.relation == ">":
        end = f"the entry{place} is {left}, not positive"
    return Witness(
        sizes, {name: plain_value(v) for name, v in values.items()}, failure.place, left, right,
        rounded_down(failure.gap), f"{written(sizes, _only(values, used))}: {end}",
    )  # fmt: skip


def _only(values: Mapping[str, Any], used: set[str]) -> dict[str, Any]:
    """The values that the claim reads; the others do not matter to a reader."""
    return {name: value for name, value in values.items() if name in used}


def _no_array_witness(claim: Claim, failure: Failure, used: set[str]) -> Witness:
    """Which equations, at which values of what the array must not depend on, contradict."""
    assert claim.variable is not None
    assert failure.contradiction is not None
    unknown = _name(claim.variable)
    rows = failure.contradiction.rows
    varied = [_name(t) for t in claim.free_of if t.op in ("var", "index")]
    sizes = dict(failure.candidate.sizes)
    fixed = {n: v for n, v in failure.candidate.values.items() if n not in varied}
    tried = {n: [trial.values[n] for trial in failure.trials] for n in varied if n not in fixed}
    at = "; ".join(written({}, {n: v[k] for n, v in tried.items()}) for k in range(len(failure.trials)))  # noqa: E501
    left, right = decimal(failure.left), "0"
    place = f" at {list(failure.place)}" if any(failure.place) else ""
    why = f"left - right is {left}{place} whatever {unknown} is"
    if len(rows) > 1:
        k = len(rows) - 1
        left, right = f"rank {k + 1} with the right-hand side", f"rank at most {k} without"
        why = (
            f"{k + 1} linear equations for {k} entries of {unknown} whose determinant is at "
            f"least {decimal(rounded_down(failure.gap))} in size, so no {unknown} solves them"
        )
    values = {n: plain_value(v) for n, v in fixed.items()}
    values |= {n: [plain_value(x) for x in v] for n, v in tried.items()}
    start = written(sizes, _only(fixed, used))
    return Witness(
        sizes, values, failure.place, left, right, rounded_down(failure.gap),
        f"{start}{', at ' + at if at else ''}: {why}",
    )  # fmt: skip
