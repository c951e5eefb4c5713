"""Find lengths at which comparisons in some code have another outcome than in the runs so far.

Code that tests ``if n > 64`` is traced on one side, and torch.export keeps the condition beside the
graph.  On the other side different code runs: it is called and traced there, and a law is reported
separately for each side.

The code is run where an outcome may change (:mod:`.open_comparisons`), and beside its graph, if it
has one; what it compares there is watched as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from random import Random
from time import process_time
from typing import Any, Protocol

import torch
from sympy.core.relational import Relational
from torch import Tensor

from .call_variants import OF_ONE_SHAPE
from .calls import Call
from .comparison import result_of
from .comparison_monitor import HINTS, ComparedSides, ComparisonMonitor
from .guards import compiled, satisfied
from .lengths import LONGEST
from .open_comparisons import (
    LENGTHS_PER_COMPARISON,
    SPARE,
    OpenComparison,
    Polynomial,
    lengths_of_change,
    lengths_of_outcomes,
    open_comparisons,
    parts_of,
    roots,
    search_along_each,
    untested,
)
from .statements import Graph

Lengths = Mapping[str, int]
JOINT_POLYNOMIALS = 4  # polynomials of one comparison that are solved jointly with others
FIRST_RUNS, ROUNDS, RUNS_FOR_FIT = 2, 3, 24  # runs in each way, rounds, and runs for a fit
AT_ONE = 6  # runs with each length set to 1
SECONDS = 1.0  # of processor time for finding where outcomes change


def _conditions(of: Iterable[OpenComparison]) -> list[str]:
    return list(dict.fromkeys(one.condition for one in of))


class Runs(Protocol):
    """Code that can be run alone and beside its graph."""

    def call(self, at: Lengths, way: str) -> None:
        """Run only the code."""

    def agrees(self, at: Lengths, way: str) -> bool:
        """Whether code and graph agree; True if they are not run."""

    def allowed(self, at: Lengths) -> bool:
        """Whether the guards of the graph admit these lengths."""

    def affordable(self, at: Lengths) -> bool:
        """Whether a call is cheap enough to run."""


@dataclass
class Search:
    """The search for lengths at which comparisons in some code have another outcome.

    ``from_one``: letters of lengths for which the claim includes 1.  ``in_all``: lengths are run in
    each way in which the comparison was made, instead of the first of these.
    """

    run: Runs
    watch: ComparisonMonitor
    letters: list[str]
    ways: Sequence[str]
    from_one: Sequence[str] = ()
    in_all: bool = True
    drawn: Random = field(default_factory=lambda: Random(0))
    _begun: float = 0.0
    _earlier_polynomials: list[Polynomial] = field(default_factory=list)
    _tried: set[tuple[Any, ...]] = field(default_factory=set)

    def in_each_way(self) -> tuple[Lengths, str] | None:
        """Return where code and graph differ, and the way of calling, trying each way once."""
        at = self._drawn()
        tried = ((self._drawn_in(way) if way in OF_ONE_SHAPE else at, way) for way in self.ways)
        return next(((own, way) for own, way in tried if not self.run.agrees(own, way)), None)

    def where_outcomes_change(self) -> tuple[Lengths, str] | None:
        """Return lengths and a way of calling at which code and graph were seen to differ."""
        for way in self.ways:
            for _ in range(FIRST_RUNS):
                self._run_watched(self._drawn_in(way), way)
        self._run_at_one()
        self._begun = process_time()
        return next((one for one in self._candidates() if not self._agrees_twice(*one)), None)

    def _candidates(self) -> Iterator[tuple[Lengths, str]]:
        """Yield where comparisons had both outcomes, and where open ones may change theirs."""
        yield from lengths_of_outcomes(self.watch)
        for _ in range(ROUNDS):
            tried = len(self._tried)
            for one in self._open():
                ways = one.ways if self.in_all else one.ways[:1]
                yield from ((at, way) for at in self._lengths_of_change(one) for way in ways)
            yield from lengths_of_outcomes(self.watch)
            if len(self._tried) == tried:
                break

    def _run_at_one(self) -> None:
        """Watch runs with lengths of 1, since code may make some comparisons only there."""
        for letter in self.from_one:
            others = [one for one in self.from_one if one != letter]
            for _ in range(AT_ONE):
                self._run_watched({**self._drawn(), letter: 1}, self.ways[0])
                self._run_watched({**self._drawn(), **dict.fromkeys(others, 1)}, self.ways[0])

    def conditions(self) -> list[str]:
        """Return the conditions on comparisons that held wherever the code was run."""
        return _conditions(untested(self._open(), self._is_closed))

    def length_conditions(self) -> list[str]:
        """Return those of comparisons that involve lengths alone, not values in tensors."""
        return _conditions(self.untested_lengths())

    def untested_lengths(self) -> Iterator[OpenComparison]:
        """Yield comparisons of lengths alone whose outcome in every run may not hold elsewhere."""
        known = [one for one in self._open() if parts_of(one) or self._repeats(one)]
        return untested(known, self._is_closed)

    def _repeats(self, open_: OpenComparison) -> bool:
        """Whether a comparison meets the same numbers again at its last lengths, on other inputs.

        The bits of a length are not a polynomial in it, and depend on nothing else.
        """
        last = open_.sides[-1]
        if not last.left or open_.site.sign in HINTS:
            return False
        for _ in range(SPARE):
            self._run_watched(last.at, last.way)
        met = self.watch.sides.get(open_.place, ())
        same = [one for one in met if (one.at, one.way) == (last.at, last.way)]
        return len(same) > 1 and len({(one.left, one.right) for one in same}) == 1

    def _is_closed(self, at: Lengths) -> bool:
        short = any(n < (1 if letter in self.from_one else 2) for letter, n in at.items())
        return short or not self.run.allowed(at)

    def _open(self) -> list[OpenComparison]:
        """Return the open comparisons, each for the visit of which most is known."""
        found: dict[tuple[int, int], OpenComparison] = {}
        for one in open_comparisons(self.watch):
            known = found.get(one.place[:2])
            if known is None or len(one.sides) > len(known.sides):
                found[one.place[:2]] = one
        return list(found.values())

    def _updated(self, open_: OpenComparison) -> OpenComparison | None:
        """Return the same comparison with what it has met since; None if it is no longer open."""
        return next((one for one in self._open() if one.place[:2] == open_.place[:2]), None)

    def _lengths_of_change(self, open_: OpenComparison) -> list[dict[str, int]]:
        """Return lengths that can be run at which a comparison's outcome changes."""
        now = self._updated(open_)  # runs for other comparisons add to this one
        if now is None or process_time() - self._begun > SECONDS:
            return []
        open_ = now
        at = lengths_of_change(open_, self._earlier_polynomials)
        if at is None and len(open_.sides) < RUNS_FOR_FIT and open_.sides[0].left:
            base, way = open_.sides[-1].at, open_.sides[-1].way
            for k in range(RUNS_FOR_FIT):
                chosen = self.drawn.sample(self.letters, min(len(self.letters), 1 + k % 3))
                more, same = (
                    self.drawn.randint(1, 6),
                    k % 4 > 1,
                )  # all lengths by the same amount, or by the same factor
                moved = {
                    c: base[c] * (1 + more)
                    if k % 4 == 2
                    else base[c] + (more if same else self.drawn.randint(1, 6))
                    for c in chosen
                }
                self._run_watched({**base, **moved}, way)
            now = self._updated(open_)
            open_ = now or open_
            at = lengths_of_change(open_, self._earlier_polynomials) if now else []
        if at is None and open_.sides[0].left:
            found = search_along_each(
                open_, self.letters, lambda at, way: self._sides_at(open_, at, way)
            )
            at = [found] if found else []
        parts = parts_of(open_) or ()
        self._earlier_polynomials += [
            part for part in parts if part not in self._earlier_polynomials
        ][:JOINT_POLYNOMIALS]
        return list(islice((one for one in at or () if self._fits(one)), LENGTHS_PER_COMPARISON))

    def _fits(self, at: Lengths) -> bool:
        return (
            max(at.values(), default=0) <= LONGEST
            and self.run.affordable(at)
            and self.run.allowed(at)
        )

    def _drawn(self) -> Lengths:
        for _ in range(4):
            at = {letter: self.drawn.randint(2, 7) for letter in self.letters}
            if self.run.allowed(at):
                return at
        return dict.fromkeys(self.letters, 3)

    def _drawn_in(self, way: str) -> Lengths:
        """Return lengths at which inputs can be shared as in this way."""
        at = self._drawn()
        if way not in OF_ONE_SHAPE:
            return at
        return dict.fromkeys(at, max(at.values(), default=0))

    def _run_watched(self, at: Lengths, way: str) -> None:
        if self._fits(at):
            with self.watch.run(at, way):
                self.run.call(at, way)

    def _sides_at(self, open_: OpenComparison, at: Lengths, way: str) -> ComparedSides | None:
        """Run the code and return what a comparison meets, or None."""
        known = self.watch.sides.setdefault(open_.place, [])
        count = len(known)
        if process_time() - self._begun < SECONDS:
            self._run_watched(at, way)
        return known[-1] if len(known) > count else None

    def _agrees_twice(self, at: Lengths, way: str) -> bool:
        """Compare code and graph twice, as calls may cache results; then watch the code."""
        key = (*at.values(), way)
        if key in self._tried or not self._fits(at):
            return True
        self._tried.add(key)
        fine = self.run.agrees(at, way) and self.run.agrees(at, way)
        self._run_watched(at, way)
        return fine


TRACED_SIDES = 2  # other sides that are traced; the code is run on all of them
MAX_LENGTH = 4096
HALF = 0.5


def lengths_elsewhere(graph: Graph) -> list[dict[str, int]]:
    """For each condition of a graph, return the smallest lengths that violate it, by letter.

    Lengths at which the code raises do not count: it makes no claim there.
    """
    letters = letters_of(graph)
    first = {letters[length]: n for _, length, n in graph.axes if isinstance(length, str)}
    found: list[dict[str, int]] = []
    for condition in graph.exported.conditions:
        if any(not _satisfied(letters, condition, at) for at in found):
            continue
        breaking = (
            at
            for at in (*_tried(condition, first), *_near_equality(letters, condition, first))
            if _ranges(graph, letters, at) and not _satisfied(letters, condition, at)
        )
        at = next(breaking, None)
        call = resized(graph.call, graph, at) if at is not None else None
        if at is not None and call is not None and result_of(call.code, call.inputs) is not None:
            found.append(at)
    return found


def resized(call: Call, graph: Graph, at: Mapping[str, int]) -> Call:
    """Return the call with inputs of these lengths; fixed lengths stay as they are."""
    generator = torch.Generator().manual_seed(7)
    letters = letters_of(graph)
    made = []
    for shape, like in zip(graph.exported.shapes, call.inputs, strict=True):
        own = tuple(n if isinstance(n, int) else at[letters[n]] for n in shape)
        made.append(_like(like, own, generator))
    return replace(call, inputs=tuple(made))


def _like(x: Tensor, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    if x.is_floating_point():
        return torch.randn(shape, generator=generator).to(x.dtype)
    if x.dtype == torch.bool:
        return torch.rand(shape, generator=generator) < HALF
    counted = torch.arange(shape[1] if len(shape) > 1 else shape[0], dtype=x.dtype)
    return counted.reshape(-1, *(1,) * (len(shape) - 2)).expand(shape).clone()


def letters_of(graph: Graph) -> dict[str, str]:
    """Map the name of each symbolic length of a graph to its first letter.

    Letters that share a length have one, and so do all lengths of one letter.
    """
    found: dict[str, str] = {}
    first: dict[str, str] = {}  # of each letter
    for letter, length, _ in graph.axes:
        if isinstance(length, str):
            other = first.setdefault(letter, letter)
            one = found.setdefault(length, other)
            for known in (found, first):
                known |= {name: one for name, told in known.items() if told == other}
    return found


def is_valid_at(graph: Graph, at: Mapping[str, int]) -> bool:
    """Whether a graph is valid at these lengths, given by the letters of its call."""
    letters, ranges = letters_of(graph), graph.exported.ranges
    fixed = {letter: n for letter, n, _ in graph.axes if isinstance(n, int)}
    if not all(letter in at for letter in letters.values()):
        return False
    if any(at[letter] != n for letter, n in fixed.items() if letter in at):
        return False
    return all(_satisfied(letters, c, at) for c in graph.exported.conditions) and all(
        r.lower <= at[letters[s]] <= r.upper for s, r in ranges.items() if s in letters
    )


def _satisfied(letters: Mapping[str, str], condition: Any, at: Mapping[str, int]) -> bool:
    return satisfied([condition], {symbol: at[letter] for symbol, letter in letters.items()})


def _ranges(graph: Graph, letters: Mapping[str, str], at: Mapping[str, int]) -> bool:
    """Whether lengths are at least those the graph was traced for; 1 is treated separately."""
    ranges = graph.exported.ranges.items()
    return all(max(2, int(r.lower)) <= at[letters[s]] for s, r in ranges if s in letters)


def _tried(condition: Any, first: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Yield lengths, tokens first, at the numbers in a condition and near them."""
    named = {abs(int(n)) for n in condition.atoms() if n.is_Integer}
    around = {n + more for n in named for more in (-1, 0, 1)}
    around |= {n // k + more for n in named for k in first.values() if k for more in (0, 1)}
    around |= {abs(n + k * sign) for n in named for k in first.values() for sign in (1, -1)}
    sizes = sorted({*range(2, 18), *(n for n in around if 2 <= n <= MAX_LENGTH)})
    tokens = [letter for letter in first if letter in "nr"]
    for n in sizes:
        if tokens:
            yield {**first, **dict.fromkeys(tokens, n)}
    for n in sizes:
        for letter in sorted(first, key=lambda one: one not in "nr"):
            yield {**first, letter: n}


def _near_equality(
    letters: Mapping[str, str], condition: Any, first: Mapping[str, int]
) -> Iterator[dict[str, int]]:
    """Yield lengths near those at which both sides of a condition agree, solved for one length."""
    if not isinstance(condition, Relational):
        return
    names, gap = compiled(condition.lhs - condition.rhs)

    def off(at: Mapping[str, int]) -> float:
        return float(gap(*(at[letters[name]] for name in names)))

    for letter in sorted(first, key=lambda one: one not in "nr"):
        with suppress(KeyError, NameError, TypeError, ArithmeticError):
            yield from (
                {**first, letter: n + more}
                for n in roots(off, first, letter)
                for more in (0, 1, -1)
                if 2 <= n + more <= MAX_LENGTH
            )
