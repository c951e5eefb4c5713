"""Refute a claim by small exact inputs at which it certainly fails.

Why an accepted witness refutes the claim.  The claim is quantified over all sizes >= 1 and all
values of its givens that satisfy the assumptions.  A witness is one choice of these: every value
is an exact rational, an index, a truth value or a polynomial function.  That the values are
admissible (a permutation, g·gᵀ = 1, positive, the assumed equations) is checked in exact
arithmetic.  Both sides are evaluated in ball arithmetic: each result is a ball that certainly
contains the true value.  Comparisons are answered only when certain, and a division by a number
that may be zero gives a result without value, so both sides are well defined where they are
compared.  The witness is accepted only if the balls of the two sides are finite and disjoint at
some entry; ``gap`` is a rational number below their distance.  So the two true values differ, and
the claim does not hold for all inputs.  For ">" the ball of left − right at some entry must lie in
(-∞, 0], for ">=" in (-∞, 0); for "!=" every entry of both sides must be an exact rational and the
two sides equal.  For "exists", see :mod:`~attnproof.symbolic.failures`.  Trusted for this are
``evaluate``, ``certified_numbers``, ``admissible``, ``failures``, the functions drawn by
``candidates``, and Arb.  The final witness is computed again with more digits.

The search itself need not be sound: a bad guess is rejected, and no guess proves a claim true.
``None`` means only that nothing was found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import product
from math import inf
from random import Random
from typing import Any

import numpy as np

from .admissible import Assumptions, certain, settle, with_bound_variables
from .budget import SHRINKING, Budget, OutOfTime, current_budget, within
from .candidates import POOL, Candidate, array_of, draw, outcomes, places_near, simpler
from .certified_numbers import Balls
from .claim import Claim, Law, equal, name_of
from .concrete import length_value
from .decision import Witness
from .failures import PRECISIONS, Failure, failure_of
from .givens import NUMBERS, Given
from .scalars import number_of
from .terms import Term, free, postorder
from .witness_text import witness_of

FARTHEST = 256  # the largest size that is tried if smaller ones are excluded
NEAR_CONSTANTS = 4  # turns before values near the constants of the claim are tried
GUESSES_NEAR = 100
LONGEST = 10.0  # seconds for making a witness small, which takes a hundredth of that


def refute(
    claim: Claim,
    givens: Mapping[str, Given],
    assume: Assumptions = (),
    laws: tuple[Law, ...] = (),
    *,
    limit_seconds: float = 5.0,
    shrinking: int = SHRINKING,
    guesses: int | None = None,
) -> Witness | None:
    """Return a certified witness against the claim, made small, or None if none was found in time.

    ``assume`` and ``laws`` are the hypotheses of the statement; a witness satisfies all of them.
    At most ``shrinking`` guesses are spent on making it small, a number and not a time so that the
    witness is the same on a busy machine.  With ``guesses`` the search is brief: that
    many guesses at the first sizes at which the givens have values (usually all 1), and a third as
    many at the next.

    >>> from attnproof.symbolic.givens import real, sizes
    >>> from attnproof.symbolic.claim import equal
    >>> (n,) = sizes("n")
    >>> given = {"A": real(n, n), "B": real(n, n)}
    >>> A, B = (g.named(name) for name, g in given.items())
    >>> refute(equal(A @ B, B @ A), given).text
    'n = 2, A = ((0, 0), (0, 1)), B = ((0, 0), (1, 0)): left 1, right 0 at [1, 0]'
    """
    every = [t for pair in assume for t in pair] + [t for law in laws for t in law.claim.sides]
    claim, givens = with_bound_variables(claim, givens, every)
    search = _Search(claim, givens, assume, laws, limit_seconds)
    found = search.first() if guesses is None else search.glance(guesses)
    if found is None:
        return None
    search.time, search.left = Budget(LONGEST, current_budget()), shrinking
    small = search.smaller_values(search.smaller_sizes(found))
    for failure in (small, found):
        recomputed = search.recomputed(failure, limit_seconds)
        if recomputed is not None:
            return witness_of(claim, recomputed, search.used)
    return None


def find_example(
    givens: Mapping[str, Given],
    assume: Assumptions = (),
    laws: tuple[Law, ...] = (),
    limit_seconds: float = 5.0,
) -> Candidate | None:
    """Return exact sizes and values that satisfy all hypotheses, or None if none were found.

    >>> from attnproof.symbolic.claim import greater
    >>> from attnproof.symbolic.givens import real
    >>> given = {"x": real()}
    >>> find_example(given, laws=(Law(greater(given["x"].named("x"), 1)),)).values["x"] > 1
    np.True_
    """
    try:
        failure = _Search(equal(0, 1), givens, assume, laws, limit_seconds).first()
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return None  # a hypothesis that this search cannot evaluate
    return failure.candidate if failure is not None else None


class _Search:
    """One search for a witness: the claim, its time limit and its source of guesses."""

    def __init__(
        self,
        claim: Claim,
        givens: Mapping[str, Given],
        assume: Assumptions,
        laws: tuple[Law, ...],
        seconds: float,
    ) -> None:
        self.claim, self.givens, self.time = claim, givens, Budget(seconds, current_budget())
        self.assume, self.laws = assume, laws
        self.random, self.left = Random(0), inf  # guesses that may still be made
        parts = [t for pair in assume for t in pair] + list(claim.sides)
        for law in laws:
            bound = {
                given.named(name).term
                for name, given in law.claim.variables
                if given.kind != "function"
            }
            parts += [t for side in law.claim.sides for t in free(side) - bound]
        parts += [t for g in givens.values() for t in (*g.shape, *(g.out or ()))]
        parts += [g.below for g in givens.values() if g.below is not None]
        found = frozenset[Term]().union(*(free(t) for t in parts))
        parts += [t for law in laws for t in law.claim.sides]
        within = {t for part in parts for t in postorder(part)}
        numbers = (number_of(t) for t in within if t.op == "num")
        self.near = places_near(Fraction(n) for n in numbers if n is not None)
        self.used = {name_of(t) for t in found if t.op in ("var", "index")}
        self.used |= {t.data[0] for t in within if t.op == "call"}
        self.least = _least_sizes(sorted({t.data[0] for t in found if t.op == "size"}), laws)
        axes = {n for t in (*within, *parts) for n in (t, *t.shape)}
        self.spaces = sorted({str(n.data[0]) for n in axes if n.op == "space"})

    @property
    def over(self) -> bool:
        """Whether the time is over, or all guesses are made."""
        return self.left <= 0 or self.time.over

    def first(self) -> Failure | None:
        """Return the first failure, with more and more guesses at each choice of sizes."""
        for turn, tries in enumerate((3, 6, 12, 24, 48, 96, 192, 384)):
            if turn == NEAR_CONSTANTS and (found := self.near_constants()):
                return found
            for sizes in _size_vectors(self.least):
                found = self.at({**sizes, **self.outcomes(sizes, turn)}, tries)
                if found or self.over:
                    return found
        return None

    def near_constants(self) -> Failure | None:
        """Return the first failure among guesses near the constants of the claim, if it has any."""
        sizes = next(iter(_size_vectors(self.least)))
        sizes, random = {**sizes, **self.outcomes(sizes, 0)}, Random(1)
        for _ in range(GUESSES_NEAR if self.near else 0):
            guess = draw(self.givens, sizes, random, 4, self.near)
            found = self.check(guess) if guess is not None else None
            if found or guess is None or self.over:
                return found
        return None

    def glance(self, guesses: int) -> Failure | None:
        """Return the first failure among a few guesses, most of them not special numbers."""
        tries = [(guesses + 2) // 3, guesses]
        for lengths in _size_vectors(self.least):
            sizes = {**lengths, **self.outcomes(lengths, 0)}
            if draw(self.givens, sizes, self.random, 1) is None:
                continue
            found = self.at(sizes, tries.pop(), spread=len(POOL) // 2)
            if found or not tries or self.over:
                return found
        return None

    def outcomes(self, sizes: Mapping[str, int], turn: int) -> dict[str, int]:
        """Return for each probability space a number of outcomes that its givens admit."""
        widest = dict.fromkeys(self.spaces, 1)
        for given in self.givens.values():
            if given.kind == "standard":
                space = str(given.shape[0].data[0])
                widest[space] = max(widest[space], length_value(given.shape[1], dict(sizes)))
        options = {space: outcomes(n) for space, n in widest.items()}
        return {space: few[turn % len(few)] for space, few in options.items()}

    def at(self, sizes: Mapping[str, int], tries: int, spread: int = 4) -> Failure | None:
        """Return a failure at these sizes among ``tries`` guesses, or None."""
        for k in range(tries):
            if self.over:
                return None
            guess = draw(self.givens, sizes, self.random, min(spread + k, len(POOL)))
            found = self.check(guess) if guess is not None else None
            if found or guess is None or self.over:
                return found
        return None

    def check(self, guess: Candidate, precisions: tuple[int, ...] = PRECISIONS) -> Failure | None:
        """Return the certified failure at a guess changed to satisfy the assumed equations."""
        self.left -= 1
        try:
            with within(self.time):
                candidate = settle(guess, self.assume)
                return failure_of(
                    self.claim, self.givens, self.assume, candidate, precisions, self.laws
                )
        except OutOfTime:
            return None  # this guess takes too long; the caller sees that its time is over

    def recomputed(self, failure: Failure, seconds: float) -> Failure | None:
        """Return the failure recomputed with more digits, within ``seconds``, or None."""
        self.time, self.left = Budget(seconds, current_budget()), inf
        return self.check(failure.candidate, PRECISIONS[2:])

    def smaller_sizes(self, failure: Failure) -> Failure:
        """Return a failure at smaller sizes; each is lowered as long as a few guesses succeed."""
        lowered = True
        while lowered and not self.over:
            lowered = False
            for name, n in failure.candidate.sizes.items():
                for low in range(1, n):
                    found = self.at({**failure.candidate.sizes, name: low}, 8)
                    if found:
                        failure, lowered = found, True
                        break
        return failure

    def smaller_values(self, failure: Failure) -> Failure:
        """Return a failure with simpler values, replaced one at a time while it stays certified."""
        failure, lowered = self._with_equal_scalars(failure), True
        while lowered and not self.over:
            lowered = False
            for name, given in self.givens.items():
                step = self._with_simpler_value(failure, name, given)
                while step is not None:
                    failure, lowered = step, True
                    step = self._with_simpler_value(failure, name, given)
        return failure

    def _with_equal_scalars(self, failure: Failure) -> Failure:
        """Return a failure with all scalar givens 0, 1 or 2 if there is one, else the same."""
        kinds = (*NUMBERS, "natural")
        alone = {k: g for k, g in self.givens.items() if g.kind in kinds and not g.shape}
        for number in range(3) if len(alone) > 1 else ():
            values = dict(failure.candidate.values)
            for name, given in alone.items():
                natural = given.kind == "natural"
                values[name] = number if natural else array_of((), [Fraction(number)])
            found = self.check(Candidate(failure.candidate.sizes, values), PRECISIONS[:2])
            if found:
                return found
        return failure

    def _with_simpler_value(self, failure: Failure, name: str, given: Given) -> Failure | None:
        candidate = failure.candidate
        for value in simpler(name, given, candidate.values[name], candidate.sizes):
            if self.over:
                return None
            found = self.check(candidate.with_value(name, value), PRECISIONS[:2])
            if found and _differ(found.candidate.values[name], candidate.values[name]):
                return found
        return None


def _differ(a: Any, b: Any) -> bool:
    return a is not b and not (isinstance(a, np.ndarray) and bool((a == b).all()))


def _least_sizes(names: list[str], laws: tuple[Law, ...]) -> dict[str, int]:
    """Return the sizes to start from: the smallest that satisfy the hypotheses on single sizes."""
    least = dict.fromkeys(names, 1)
    for claim in (law.claim for law in laws if not law.claim.variables):
        spoken = list(frozenset[Term]().union(*map(free, claim.sides)))
        if len(spoken) != 1 or spoken[0].op != "size":
            continue
        name = str(spoken[0].data[0])
        tried = range(least[name], FARTHEST + 1)
        least[name] = next((n for n in tried if certain(claim, Balls({name: n}, {}))), 1)
    return least


def _size_vectors(least: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Yield sizes: all least, all one more, then each up to two more, by increasing sum."""
    names = list(least)
    span = (1, 2, 3) if len(names) <= 7 else (1, 2)
    every = sorted(product(span, repeat=len(names)), key=lambda v: (sum(v), max(v, default=0), v))
    ones, twos = (1,) * len(names), (2,) * len(names)
    for vector in (ones, twos, *every) if names else ((),):
        yield {name: least[name] + more - 1 for name, more in zip(names, vector, strict=True)}
