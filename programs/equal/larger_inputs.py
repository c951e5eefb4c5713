"""Compare two programs beyond the numbers that they meet: at more tokens, and at larger values.

A proof covers all lengths that its line admits.  Without one, a table that ends at 4096, a window
or a block of 1024 keys, or a branch on a length is met only at more tokens.  Such lengths are run
as far as their work, counted in entries and not in seconds, is affordable; the line states below
which number they were not.  ``B * n == 602`` names no length: comparisons are watched, and the
lengths at which an outcome changes are solved for (:mod:`..prove.branches`), those of channels and
heads as well.  A number that may stand for −∞ in a mask is beyond the inputs of the
other runs; if the two differ there, that is a condition too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count

import torch
from torch import Tensor

from attnproof.documents.verdict_line import Condition

from ..execution.draw import Draw
from ..execution.response import Entries
from ..prove.branches import Search
from ..prove.call_variants import ALL_WAYS, inputs_for
from ..prove.executed_code import counts_calls
from .inputs import (
    LARGE_INPUTS,
    LONG_LENGTHS,
    MAX_SOURCE_LENGTHS,
    TOKENS,
    Meeting,
    fills_of,
    lengths_met,
    meetings,
    scaled,
    untried_numbers,
)
from .measure import NumericComparison, arranged_as, batch_axes, compare_at, drawn_or_none, run_in
from .pair import ProgramPair

Lengths = Mapping[str, int]
HEADS, FEATURES = "HG", "DEFCPVd"  # letters of lengths that code often fixes


def compare_where_asked(
    both: ProgramPair,
    programs: Sequence[Meeting],
    draw: Draw,
    found: NumericComparison,
    work: Callable[[Lengths], int],
    most: int,
) -> tuple[Condition, ...]:
    """Compare both at these lengths; return the outcomes that no run could change.

    The first difference is kept in ``found``.  ``work``: what a call at some lengths computes;
    ``most``: what the calls of one search may compute.
    """
    asks: dict[str, None] = {}
    for one in programs:
        call = partial(_Watched(both, one, draw, found, work, most).call, {}, "plain")
        asks |= dict.fromkeys(counts_calls(one.met.ran.codes, one.met.roots, call))
        for own in _groups(both.letters):
            run = _Watched(both, one, draw, found, work, most, in_groups={*HEADS} <= {*own})
            free = [c for c in own if run.is_free(c)]
            if not free:
                continue
            one.met.watch.sides.clear()  # of runs along other axes
            # code may compare only in inference mode, or where gradients are wanted
            search = Search(run, one.met.watch, free, ALL_WAYS, free, in_all=False)
            search.where_outcomes_change()
            if found.counterexample is not None:
                return ()
            asks |= dict.fromkeys(search.length_conditions())
        asks |= dict.fromkeys(one.met.conditions())
    return tuple(Condition(told, "where") for told in asks)


def _groups(letters: Sequence[str]) -> list[list[str]]:
    """Return the letters of channels, of heads, of tokens and rows, and all of them.

    >>> _groups(["B", "n", "E"])
    [['E'], ['B', 'n'], ['B', 'n', 'E']]
    """
    groups = [[c for c in letters if c in some] for some in (FEATURES, HEADS)]
    groups.append([c for c in letters if c not in FEATURES + HEADS])
    found = [own for own in groups if own]
    return found if len(found) < 2 else [*found, list(letters)]


@dataclass
class _Watched:
    """One program of a pair in the form that the search over its comparisons expects.

    ``in_groups``: H stands for the heads of each group, since H heads are a multiple of G.
    """

    both: ProgramPair
    program: Meeting
    draw: Draw
    found: NumericComparison
    work: Callable[[Lengths], int]
    left: int
    in_groups: bool = False
    _seeds: Iterator[int] = field(default_factory=count)

    def is_free(self, letter: str) -> bool:
        """Whether both programs accept another length of this letter."""
        base = self.program.at[letter]
        for n in (base + 1, 2 * base):
            values = drawn_or_none(self.both, self._whole({letter: n}), self.draw)
            with suppress(Exception), torch.no_grad():  # code may raise anything
                for side in ("first", "second") if values else ():
                    self.both.results_of_copies(side, values)
                return bool(values)
        return False

    def call(self, at: Lengths, way: str) -> None:
        """Run this program only, on other numbers each time."""
        draw = Draw(next(self._seeds), self.draw.dtype)
        values = drawn_or_none(self.both, self._whole(at), draw)
        run = partial(run_in, way, self.both, self.program.side)
        with suppress(Exception), torch.no_grad():  # code may raise anything
            self.program.met.watched(run)(values)

    def agrees(self, at: Lengths, way: str) -> bool:
        """Whether both programs agree there; a difference is kept."""
        whole = self._whole(at)
        self.left -= self.work(whole)
        values = drawn_or_none(self.both, whole, self.draw)
        if values and way != "plain":
            values = inputs_for(way, values, batch_axes(self.both))
        return not compare_at(self.both, whole, values, self.draw, self.found, way=way)

    def allowed(self, at: Lengths) -> bool:
        """Whether these are lengths."""
        return min(at.values(), default=1) > 0

    def affordable(self, at: Lengths) -> bool:
        """Whether a call is cheap enough."""
        return self.work(self._whole(at)) <= self.left

    def _whole(self, at: Lengths) -> dict[str, int]:
        base = dict(self.program.at)
        if self.in_groups:
            each, groups = at.get("H", base["H"] // base["G"] or 1), at.get("G", base["G"])
            return {**base, **at, "G": groups, "H": each * groups}
        return {**base, **at}


LONGEST = 1 << 17  # number of the source that is tried as a length
WORK, TOTAL = 110_000_000, 150_000_000  # entries that one call, and all calls, may compute
WIDER = 30_000_000  # entries that all calls with more channels or heads may compute
EXTREME = 0.75  # power of the largest number of a format: its square overflows
LOST, KEPT = 1e-3, 0.1  # of the size of the inputs
MEASURED = (32, 64)  # lengths from which work is extrapolated


def compare_at_longer(
    both: ProgramPair, seed: int, found: NumericComparison
) -> tuple[Condition, ...]:
    """Compare both beyond each number that they meet; return below which numbers they were not.

    The smallest inputs at which they differ are kept in ``found``.
    """
    dtype = getattr(torch, found.formats[0])
    programs = meetings(both, _letters(both))
    numbers = [n for n in map(abs, lengths_met(both, programs)) if n > 3]
    some = [n for n in numbers if n < LONGEST][:MAX_SOURCE_LENGTHS]
    with arranged_as(both, dtype):
        draw = Draw(seed, dtype)
        wide = _wide(both, draw)
        for groups, most in ((_long(both), TOTAL), (wide, WIDER)):
            left = most
            costs = sorted(_affordable(both, some, groups, draw), key=lambda one: one[0])
            for work, at in costs:
                if work > left:
                    break
                left -= work
                for own in (draw, Draw(seed, torch.float32)):
                    before = found.tried
                    compare_at(both, at, drawn_or_none(both, at, own), own, found)
                    if found.tried > before:
                        break
                if found.counterexample is not None:
                    return ()
        works = _Work(both, draw)
        asks = compare_where_asked(both, programs, draw, found, works.of, WORK)
    if found.counterexample is not None:
        return ()
    letters = dict.fromkeys((*_letters(both), *(c for group in wide for c in group)))
    return (*_below(numbers, {c: found.reached.get(c, 0) for c in letters}), *asks)


def _below(numbers: Sequence[int], reached: Mapping[str, int]) -> Iterator[Condition]:
    """Yield below which of these numbers the lengths are that were run.

    >>> [one.text for one in _below([600, 9], {"B": 8, "n": 700, "E": 5, "H": 10})]
    ['B, E ≤ 8', 'H ≤ 599']
    """
    least = {c: min((n for n in numbers if n >= upto), default=0) for c, upto in reached.items()}
    for n in dict.fromkeys(filter(None, least.values())):
        yield Condition(f"{', '.join(c for c in least if least[c] == n)} ≤ {n - 1}", "for")


def input_conditions(
    both: ProgramPair, seed: int, found: NumericComparison
) -> tuple[Condition, ...]:
    """Return which inputs were not tried, or make a difference that no other inputs do."""
    draw = Draw(seed, getattr(torch, found.formats[0]))
    given = drawn_or_none(both, dict(both.lengths), draw)
    untried = untried_numbers(both, given) if given else []
    told = [found.jumps] if found.jumps else []
    if untried:
        more = f" and {len(untried) - 1} more numbers" if len(untried) > 1 else ""
        told.append(f"inputs stay away from {untried[0]:g}{more} of the source that were not tried")
    told += _extremes(both, seed, found)
    return (*(Condition(one) for one in told), *larger_inputs_condition(both, seed, found))


def _extremes(both: ProgramPair, seed: int, found: NumericComparison) -> Iterator[str]:
    """Yield that inputs are not so large or small that only one of both loses them in between.

    ``hypot(a, b)`` is a number where the squares in ``sqrt(a * a + b * b)`` overflow, or are 0.
    """
    dtype = getattr(torch, found.formats[-1])
    given = drawn_or_none(both, dict(both.lengths), Draw(seed, dtype))
    size = torch.finfo(dtype).max ** EXTREME
    with arranged_as(both, dtype):
        lost = _losing(both, scaled(given, size), lambda x: x.isfinite().double())
        if lost:
            yield f"inputs stay far below {size:.0e}, where {lost} alone overflows"
        lost = _losing(both, scaled(given, 1 / size), lambda x: x.double().abs() * size)
        if lost:
            yield f"inputs stay far above {1 / size:.0e}, where {lost} alone underflows"


def _losing(both: ProgramPair, values: Sequence[Tensor], size: Callable[[Tensor], Tensor]) -> str:
    """Return which program alone loses the size of an entry; "" if none or both do."""
    if not any(x.is_floating_point() for x in values):
        return ""
    try:
        with torch.no_grad():
            results = [both.results_of_copies(side, values) for side in ("first", "second")]
    except Exception:  # noqa: BLE001 (the code may raise anything)
        return ""
    for here, there in zip(*results, strict=True):
        if here.shape == there.shape and here.is_floating_point() and there.is_floating_point():
            for one, other, side in ((here, there, both.first), (there, here, both.second)):
                if bool((~(size(one) >= LOST) & (size(other) > KEPT)).any()):  # NaN is lost
                    return side.program.name
    return ""


def larger_inputs_condition(
    both: ProgramPair, seed: int, found: NumericComparison
) -> tuple[Condition, ...]:
    """Return the condition that inputs are smaller than a fill, if larger ones make a difference.

    A fill of −10⁴ hides a key from scores near 0, and not from scores of that size.
    """
    dtype = getattr(torch, found.formats[0])
    draw, at = Draw(seed, dtype), dict(both.lengths)
    given = drawn_or_none(both, at, draw)
    with arranged_as(both, dtype):
        for fill in dict.fromkeys(map(abs, fills_of(both, given) if given else ())):
            probe = NumericComparison()
            larger = scaled(given, 16 * fill)
            if compare_at(both, at, larger, draw, probe, description=LARGE_INPUTS):
                told = f"inputs stay far below {fill:g}, which may stand for −∞"
                return (Condition(f"{told}: for larger ones the two differ"),)
    return ()


def _letters(both: ProgramPair) -> list[str]:
    """Return the letters that stand for many tokens, rows, or lengths of no known kind."""
    return [c for c in both.letters if c not in FEATURES and c not in HEADS]


def _long(both: ProgramPair) -> list[tuple[str, ...]]:
    """Return the letters of all tokens, then each letter of tokens or rows."""
    letters = _letters(both)
    tokens = tuple(c for c in letters if c in TOKENS)
    return [*dict.fromkeys(filter(None, (tokens, *((c,) for c in letters))))]


def _wide(both: ProgramPair, draw: Draw) -> list[tuple[str, ...]]:
    """Return each letter of channels, and those of heads, that may have other lengths."""
    heads = tuple(c for c in both.letters if c in HEADS)
    groups = [*((c,) for c in both.letters if c in FEATURES), *([heads] if heads else [])]
    base = {c: n if c in FEATURES + HEADS else 1 for c, n in both.lengths.items()}
    return [own for own in groups if all(_works(both, base, own, draw))]


def _works(both: ProgramPair, base: dict[str, int], own: Sequence[str], draw: Draw) -> list[int]:
    return [_work(both, base | dict.fromkeys(own, n), draw) for n in MEASURED]


def _affordable(
    both: ProgramPair, numbers: Sequence[int], groups: Sequence[tuple[str, ...]], draw: Draw
) -> Iterator[tuple[int, dict[str, int]]]:
    """Yield lengths of each group of letters beyond these numbers with their work.

    A block is forgotten only if there are three, and may be only if the third is full.
    """
    asked = sorted({m for n in numbers for m in (n, n + 1, 2 * n + 1, 3 * n)})
    features = {c: n for c, n in both.lengths.items() if c in FEATURES}
    heads = {c: n for c, n in both.lengths.items() if c in HEADS}
    for own in groups:
        several = own[0] in TOKENS and own == groups[0]
        run = LONG_LENGTHS[-1] if several else both.lengths[own[0]]  # so far
        beyond = [n for n in asked if n > run]
        for few, fixed in ((2, features), (1, features), (1, features | heads)):
            base = dict.fromkeys(both.lengths, few) | fixed
            work = _works(both, base, own, draw)
            costs = [(_extrapolated(work, n), n) for n in beyond] if all(work) else []
            fits = [(cost, base | dict.fromkeys(own, n)) for cost, n in costs if cost <= WORK]
            yield from fits
            if len(fits) == len(beyond):
                break


@dataclass
class _Work:
    """What a call at some lengths computes, in entries, extrapolated from shorter ones."""

    both: ProgramPair
    draw: Draw
    _known: dict[tuple[int, ...], int] = field(default_factory=dict)

    def of(self, at: Mapping[str, int]) -> int:
        """Return it; more than is affordable if the call fails at shorter lengths."""
        key, most = tuple(at.values()), max(at.values(), default=0)
        if most <= MEASURED[-1]:
            return sum(key)
        if key not in self._known:
            short = [{c: min(n, few) for c, n in at.items()} for few in MEASURED]
            work = [_work(self.both, one, self.draw) for one in short]
            self._known[key] = _extrapolated(work, most) if all(work) else WORK + 1
        return self._known[key]


def _extrapolated(work: Sequence[int], n: int) -> int:
    """Return the work at a length as a n² + b n, from that at two lengths.

    >>> _extrapolated([MEASURED[0] ** 2, MEASURED[1] ** 2], 1000)
    1000000
    """
    (less, few), (more, many) = zip(MEASURED, work, strict=True)
    square = max(0.0, (many / more - few / less) / (more - less))
    return math.ceil(round(square * n * n + (many / more - square * more) * n, 6))


def _work(both: ProgramPair, at: Lengths, draw: Draw) -> int:
    """Return how many entries one call of the more expensive program computes; 0 if both fail."""
    values, found = drawn_or_none(both, at, draw), 0
    for side in ("first", "second") if values else ():
        counted = Entries()
        try:
            with torch.no_grad(), counted:
                both.results_of_copies(side, values)
        except Exception:  # noqa: BLE001 (the code may raise anything)
            continue
        found = max(found, counted.count)
    return found
