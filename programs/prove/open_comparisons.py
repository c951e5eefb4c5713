"""Comparisons that had one outcome whenever they were made, and lengths at which it changes.

The difference of the sides of a comparison is known at some lengths.  A polynomial in the lengths
that matches all these values tells where the difference is 0; if there is none, zeros are searched
for between lengths at which the sign differs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .comparison_monitor import HINTS, OUTCOMES, ComparedSides, ComparisonMonitor, Numbers, Site

Lengths = Mapping[str, int]
UNSOLVED_LENGTHS = (2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17)  # values of lengths not solved for
LARGEST = 1 << 40
ENOUGH_TO_CHANGE = 3  # lengths
SPARE = 2  # runs beyond the number of coefficients of a polynomial
TOLERANCE = 1e-6
LENGTHS_PER_COMPARISON = 5  # lengths at which one comparison is tried
# Lengths between which a change of sign is searched for.
SEARCH_LENGTHS = (16, 64, 129, 257, 513, 1100, 2100, 4200, 8400)


@dataclass(frozen=True)
class OpenComparison:
    """A comparison that had the same outcome whenever it was made.

    ``sides``: its sides in each run, for one visit; ``answer``: its outcome.
    """

    place: tuple[int, int, int]
    site: Site
    sides: tuple[ComparedSides, ...]
    answer: bool

    @property
    def ways(self) -> tuple[str, ...]:
        """The ways of calling the code in which the comparison was made."""
        return tuple(dict.fromkeys(one.way for one in self.sides))

    @property
    def condition(self) -> str:
        """The condition that held wherever the code was run."""
        return self.site.condition(answer=self.answer)


def open_comparisons(watch: ComparisonMonitor) -> list[OpenComparison]:
    """Return the comparisons that had one outcome although their sides changed from run to run.

    Comparisons made at few lengths are included, as are those decided by values of tensors.
    """
    answers: dict[tuple[int, int], set[bool]] = {}
    for (number, entry, _), met in watch.sides.items():
        answers.setdefault((number, entry), set()).update(one.answer for one in met)
    found = []
    for place, met in watch.sides.items():
        site = watch.sites[place[0]]
        if len(answers[place[:2]]) > 1:
            continue
        tensor = not met[0].left
        ran = {tuple(one.at.values()) for one in met} if met[0].at else met  # or no length is free
        seldom = len(ran) < ENOUGH_TO_CHANGE
        if tensor or seldom or len({(one.left, one.right) for one in met}) > 1:
            found.append(OpenComparison(place, site, tuple(met), met[0].answer))
    return found


def lengths_of_outcomes(watch: ComparisonMonitor) -> Iterator[tuple[Lengths, str]]:
    """Yield where each comparison with both outcomes first had each of them."""
    first: dict[tuple[int, int], dict[bool, ComparedSides]] = {}
    for (number, entry, _), met in watch.sides.items():
        for one in met:
            first.setdefault((number, entry), {}).setdefault(one.answer, one)
    for each in first.values():
        if len(each) > 1:
            yield from ((one.at, one.way) for one in each.values())


@dataclass(frozen=True)
class Polynomial:
    """A number as a polynomial in lengths."""

    monomials: tuple[tuple[str, ...], ...]
    coefficients: tuple[float, ...]

    def __call__(self, at: Lengths) -> float:
        return float(
            sum(
                c * np.prod([float(at[letter]) for letter in one])
                for one, c in zip(self.monomials, self.coefficients, strict=True)
            )
        )

    def letters(self) -> list[str]:
        """Return the lengths that it depends on."""
        return list(
            dict.fromkeys(
                letter
                for one, c in zip(self.monomials, self.coefficients, strict=True)
                if abs(c) > TOLERANCE
                for letter in one
            )
        )


def fitted(at: Sequence[Lengths], values: Sequence[float]) -> Polynomial | None:
    """Return a polynomial (linear, with products or squares) with these values at these lengths.

    >>> sizes = [{"B": b, "n": n} for b in (2, 3) for n in (2, 5, 9)]
    >>> fitted(sizes, [one["B"] * one["n"] - 21 for one in sizes]).letters()
    ['B', 'n']
    >>> squares = [{"n": n} for n in (2, 3, 4, 5, 6, 7)]
    >>> fitted(squares, [one["n"] ** 2 - 90_000_000 for one in squares])({"n": 10_000})
    10000000.0
    """
    letters = [c for c in at[0] if len({one[c] for one in at}) > 1]
    alone = [[(), (c,), *[(c, c)] * square] for square in (0, 1) for c in letters]
    single = [(), *((c,) for c in letters)]
    double = [*single, *itertools.combinations(letters, 2)]
    kinds = (
        *alone,
        single,
        double,
        [*double, *((c, c) for c in letters)],
        [*double, *itertools.combinations(letters, 3)],
    )
    wanted = np.asarray(values) - values[0]  # so that a large constant hides no square
    for monomials in kinds:
        used = sorted({c for one in monomials for c in one})
        if len({tuple(one[c] for c in used) for one in at}) < len(monomials) + SPARE:
            continue
        rows = np.asarray([[np.prod([one[c] for c in m]) for m in monomials] for one in at])
        solved, _, rank, _ = np.linalg.lstsq(rows, wanted, rcond=None)
        off = np.abs(rows @ solved - wanted).max()
        if rank == len(monomials) and off <= TOLERANCE * np.abs(wanted).max():
            solved[0] += values[0]
            exact = np.where(np.abs(solved - solved.round()) < TOLERANCE, solved.round(), solved)
            return Polynomial(tuple(monomials), tuple(map(float, exact)))
    return None


def difference(one: ComparedSides) -> Numbers:
    """Return the left side minus the right side."""
    return tuple(a - b for a, b in zip(one.left, one.right, strict=True))


def parts_of(open_: OpenComparison) -> list[Polynomial] | None:
    """Return the differences between the sides as polynomials; None if some cannot be fitted."""
    at = [one.at for one in open_.sides]
    gaps = [difference(one) for one in open_.sides]
    if not gaps[0] or any(len(gap) != len(gaps[0]) for gap in gaps):
        return None
    parts = [fitted(at, values) for values in zip(*gaps, strict=True)]
    return None if None in parts else [part for part in parts if part is not None]


def lengths_of_change(
    open_: OpenComparison, met: Sequence[Polynomial] = ()
) -> list[dict[str, int]] | None:
    """Return a few lengths at which the outcome of a comparison changes; None if unknown.

    ``met``: polynomials that vanished for earlier comparisons; common zeros with them come first.
    """
    at, parts = [one.at for one in open_.sides], parts_of(open_)
    if parts is None:
        return None
    if any(not part.letters() and abs(part(at[0])) > TOLERANCE for part in parts):
        return []  # one part is nonzero at all lengths
    moving = [part for part in parts if part.letters()]
    both = [one for part in met for one in _common_zeros([*moving, part], at[-1])]
    if len(moving) > 1:
        return [*both, *_common_zeros(moving, at[0])]
    equal = open_.site.sign in ("==", "!=", "in", "not in", "get", "item", "case", "if")
    zeros = _zeros(moving[0], at, equal=equal) if moving else ()
    return list({tuple(one.values()): one for one in (*both, *zeros)}.values())


def _zeros(part: Polynomial, at: Sequence[Lengths], *, equal: bool) -> Iterator[dict[str, int]]:
    """Yield small lengths at, or just beside, the zeros of a polynomial, solved for each letter."""
    letters = sorted(part.letters(), key=lambda letter: letter not in "nr")
    last = dict(at[-1])
    for pivot in letters:
        count = 0
        rest = [c for c in letters if c != pivot]
        beside = [
            *dict.fromkeys(tuple(one[c] for c in rest) for one in reversed(at)),
            *((n,) * len(rest) for n in UNSOLVED_LENGTHS),
            *(
                tuple(n if c == other else 2 for c in rest)
                for other in rest
                for n in (*range(2, 65), 97, 128, 256)
            ),
        ]
        for values in dict.fromkeys(beside):
            base = {**last, **dict(zip(rest, values, strict=True))}
            near = [
                {**base, pivot: n + d}
                for n in roots(part, base, pivot)
                for d in (0, 1, -1)
                if 1 <= n + d < LARGEST
            ]
            good = [one for one in near if not equal or abs(part(one)) < TOLERANCE]
            yield from good
            count += bool(good)
            if count >= LENGTHS_PER_COMPARISON or (good and not rest):
                break


def roots(part: Callable[[Lengths], float], base: Lengths, pivot: str) -> list[int]:
    """Return the integers nearest to the zeros of a polynomial of degree at most 2 in one length.

    >>> roots(lambda at: at["r"] - 3 * at["n"] - 40, {"n": 7, "r": 5}, "r")
    [61]
    """
    zero, one, two = (part({**base, pivot: n}) for n in (0, 1, 2))
    square = (two - 2 * one + zero) / 2
    line = one - zero - square
    found = np.roots([square, line, zero]) if square else [-zero / line] if line else []
    return [round(float(r.real)) for r in map(complex, found) if abs(r.imag) < TOLERANCE]


def _common_zeros(parts: Sequence[Polynomial], base: Lengths) -> list[dict[str, int]]:
    """Return lengths at which several polynomials are 0, each solved for a different length."""
    for order in itertools.islice(itertools.permutations(parts), 24):
        at, known = dict(base), set[str]()
        for part in order:
            own = [letter for letter in part.letters() if letter not in known]
            if not own:
                continue
            zeros = [n for n in roots(part, at, own[0]) if 1 <= n < LARGEST]
            at[own[0]] = zeros[0] if zeros else at[own[0]]
            known |= set(part.letters())
        if all(abs(part(at)) < TOLERANCE for part in parts):
            return [at]
    return []


def search_along_each(
    open_: OpenComparison,
    letters: Sequence[str],
    see: Callable[[Lengths, str], ComparedSides | None],
) -> dict[str, int] | None:
    """Search along one length at a time for lengths at which a comparison's outcome changes.

    ``see`` runs the code at given lengths in a given way, and returns what the comparison met
    there.
    """
    base, way = dict(open_.sides[-1].at), open_.sides[-1].way
    for letter in sorted(letters, key=lambda one: one not in "nr"):
        low: tuple[int, float] | None = None
        for n in SEARCH_LENGTHS:
            one = see({**base, letter: n}, way)
            if one is None or len(one.left) != 1:
                break
            if one.answer != open_.answer:
                return {**base, letter: n}
            (gap,) = difference(one)
            if low is not None and low[1] * gap < 0:
                found = _between(open_, base, letter, low, (n, gap), see)
                if found is not None:
                    return found
            low = n, gap
    return None


def _between(
    open_: OpenComparison,
    base: Lengths,
    letter: str,
    low: tuple[int, float],
    high: tuple[int, float],
    see: Callable[[Lengths, str], ComparedSides | None],
) -> dict[str, int] | None:
    way = open_.sides[-1].way
    while high[0] - low[0] > 1:
        middle = (low[0] + high[0]) // 2
        one = see({**base, letter: middle}, way)
        if one is None or len(one.left) != 1:
            return None
        if one.answer != open_.answer:
            return {**base, letter: middle}
        (gap,) = difference(one)
        low, high = ((middle, gap), high) if gap * low[1] > 0 else (low, (middle, gap))
    return None


def untested(
    open_: Sequence[OpenComparison], closed: Callable[[Lengths], bool]
) -> Iterator[OpenComparison]:
    """Yield the comparisons whose outcome in every run may not hold elsewhere.

    ``closed`` tells whether lengths are outside the claim anyway.
    """
    for one in open_:
        if one.site.sign in HINTS:
            continue
        at = lengths_of_change(one)
        if at is None or any(
            not closed(lengths) and not _keeps_outcome(one, lengths) for lengths in at
        ):
            yield one


def _keeps_outcome(open_: OpenComparison, at: Lengths) -> bool:
    """Whether the sides of a comparison at these lengths imply its usual outcome."""
    parts, holds = parts_of(open_), OUTCOMES.get(open_.site.sign)
    if holds is None or parts is None or len(parts) != 1:
        return False
    gap = parts[0](at)
    return bool(holds(0.0 if abs(gap) < TOLERANCE else gap, 0)) == open_.answer
