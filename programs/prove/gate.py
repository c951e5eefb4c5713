"""The code itself, run beside its graph: at lengths on both sides of every number in its source.

Tracing takes some branches without a word: on ``isinstance(n, int)``, on a string made of a
length, on whether the code is being compiled, in an ``except``.  A proof is of the graph, so before
anything is said of the code it is run, as it is called, and has to give what the graph gives: in
batches of one, with one token, with fewer queries than keys and with more, for large and for equal
numbers, with gradients wanted and without, call after call.
"""

from __future__ import annotations

import itertools
import math
import random
import resource
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from time import process_time

import torch
from torch import Tensor

from .compared import runs_of
from .guards import met
from .parts import letters_of
from .source_numbers import lengths_of_interest, numbers_in
from .stating import Graph
from .work import work_of

__all__ = ["Gate", "gate"]

Lengths = Mapping[str, int]
Results = tuple[Tensor, ...]
SMALL, LONG, LONGEST = 6, 1100, 1 << 14
CUTS = (65, 257)  # where lengths are no more small, or middling
NAMED, FEW = 48, 12  # numbers of the source that are tried as positions, and two at a time
# Work, as it is counted in work.py: a million takes one to two milliseconds.
WORK = 400_000_000  # for the lengths of which nothing is said in the source
SOURCE_WORK = 200_000_000  # for those that are
MOST_WORK = 100_000_000  # of one call
SECONDS = 2.0  # of the processor, for code that does more than its graph shows
MEMORY = 400_000  # KiB that the code may keep of all these calls
VALUES = (0.0, 1.0, 100.0, 1e4)  # how large the inputs are
STEP = 2.0**-22
POOL, STEPS = 1_048_583, 104_729  # both prime: no axis comes round to the same numbers


@dataclass
class Gate:
    """At which lengths the code does other than its graph, and where it raises and the graph not.

    ``unlike`` has lengths by letter.  ``changes``: what an earlier call gave is given no more.
    """

    unlike: list[dict[str, int]] = field(default_factory=list)
    raises: dict[str, int] | None = None
    changes: bool = False
    tried: int = 0


@dataclass
class _Run:
    """One graph and its code, and how much work a call of either is.

    ``code`` and ``compiled`` give all results of one call, which are compared each.
    """

    graph: Graph
    letters: dict[str, str]  # of a length in the graph, its first letter
    code: Callable[..., Results]
    compiled: Callable[..., Results]
    found: Gate = field(default_factory=Gate)
    done: int = 0  # work

    def __post_init__(self) -> None:
        self.work = work_of(self.graph.exported)
        ranges = self.graph.exported.program.range_constraints
        self.longest = {str(s): int(r.upper) for s, r in ranges.items() if r.upper.is_Integer}
        self.pool = torch.randn(POOL, generator=torch.Generator().manual_seed(0))

    def shape(self, place: int, at: Lengths) -> tuple[int, ...]:
        """The shape of an input at these lengths."""
        return tuple(n if isinstance(n, int) else at[self.letters[n]]
                     for n in self.graph.exported.shapes[place])  # fmt: skip

    def inputs(self, at: Lengths, count: int, scale: float | None = None) -> tuple[Tensor, ...]:
        """Inputs of these lengths; positions count on from anywhere, or stand in any order."""
        generator = torch.Generator().manual_seed(count)
        made = []
        for place, like in enumerate(self.graph.call.inputs):
            shape = self.shape(place, at)
            if like.is_floating_point():
                x = self.numbers(shape, count + place)
                size = VALUES[1 + count % 3 % 2] if scale is None else scale
                made.append((x * size).to(like.dtype))
            elif count % 2 and len(shape) == 2:
                first = torch.randint(0, 9, (shape[0], 1), generator=generator)
                made.append((torch.arange(shape[1]) + first).to(like.dtype))
            else:
                most = max(2, *shape)
                made.append(torch.randint(0, most, shape, generator=generator, dtype=like.dtype))
        return tuple(made)

    def numbers(self, shape: tuple[int, ...], salt: int) -> Tensor:
        """Random numbers that were drawn once, from another one on each time."""
        first, count = salt * STEPS % POOL, math.prod(shape)
        if first + count <= POOL:
            return self.pool[first : first + count].view(shape)
        return self.pool[(torch.arange(count) + first) % POOL].view(shape)

    def allowed(self, at: Lengths) -> bool:
        """Whether the graph is the code's at these lengths, 1 for what it takes for 2 or more."""
        known = self.known(at)
        if any(known[s] > most for s, most in self.longest.items() if s in known):
            return False
        return met(self.graph.exported.conditions, known)

    def known(self, at: Lengths) -> dict[str, int]:
        """Lengths by their names in the graph."""
        return {s: at[letter] for s, letter in self.letters.items()}

    def look(self, at: Lengths, count: int, inputs: tuple[Tensor, ...] | None = None) -> bool:
        """Whether the code gives what the graph gives; counts and keeps where not."""
        work = self.work(self.known(at))
        if work > MOST_WORK or not self.allowed(at):
            return True
        given = self.inputs(at, count) if inputs is None else inputs
        self.done += work
        want = self._graph(given)
        if want is None:
            return True
        got = self.of_code(given, count)
        self.found.tried += 1
        if got is None:
            if self.found.raises is None and min(at.values(), default=2) > 1:
                self.found.raises = dict(at)
            return True
        return _alike(got, want, self.graph.exported.operations)

    def _graph(self, inputs: tuple[Tensor, ...]) -> Results | None:
        try:
            with torch.no_grad():
                return self.compiled(*inputs)
        except Exception:  # noqa: BLE001 (a graph may not take a length of 1)
            return None

    def of_code(self, inputs: tuple[Tensor, ...], count: int) -> Results | None:
        """What the code gives; every third time where gradients are wanted, or never will be."""
        try:
            if count % 3 == 1:
                with torch.enable_grad():
                    given = (x.clone().requires_grad_() if x.is_floating_point() else x.clone()
                             for x in inputs)  # fmt: skip
                    return tuple(x.detach() for x in self.code(*given))
            with torch.inference_mode() if count % 7 == 2 else torch.no_grad():
                return tuple(x.clone() for x in self.code(*(x.clone() for x in inputs)))
        except Exception:  # noqa: BLE001 (code may raise anything)
            return None


def gate(graph: Graph, *, whole: bool = False, seed: int = 0) -> Gate:
    """Run the code of a graph beside it: where they differ, and where the code alone raises.

    ``whole``: of a call with two results, each of which is a graph, both are compared.
    """
    run = _Run(graph, letters_of(graph), *_results(graph, whole=whole))
    letters = list(dict.fromkeys(run.letters.values()))
    first = dict.fromkeys(letters, 3)
    if not letters:
        return run.found
    fresh = run.inputs(first, 0)
    before = run.of_code(fresh, 0)
    numbers = numbers_in([graph.call.code, *graph.call.modules])
    if _first_unlike(run, letters, numbers, seed):
        now = run.of_code(fresh, 0)
        if before is not None and (now is None or not _alike(now, before, 1)):
            run.found.changes = True
    return run.found


def _results(
    graph: Graph, *, whole: bool
) -> tuple[Callable[..., Results], Callable[..., Results]]:
    """The results of a call as its code gives them, and as its graph does."""
    code, pair, graphs = graph.call.code, graph.call.pair, runs_of(graph, graph.exported.values)
    if whole and pair is not None:
        return pair, graphs
    taken, place = graph.exported.taken, graph.exported.place or 0
    return lambda *given: (code(*given),), lambda *given: (graphs(*taken(given))[place],)


def _first_unlike(run: _Run, letters: list[str], numbers: Sequence[int], seed: int) -> bool:
    count = itertools.count()
    for inputs, at in _values(run, letters, numbers):
        if not run.look(at, next(count), inputs):
            run.found.unlike.append(dict(at))
            return True
    memory = _memory()
    for planned, work in ((_small(letters), SOURCE_WORK),
                          (_of_source(letters, numbers), SOURCE_WORK),
                          (_all(letters, seed), WORK)):  # fmt: skip
        most, start = run.done + work, process_time()
        for at in planned:
            late = process_time() - start > SECONDS
            if late or run.done > most or _memory() - memory > MEMORY:
                break
            if not run.look(at, next(count)):
                run.found.unlike.append(_smaller(run, at, count))
                return True
    return False


def _memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _values(
    run: _Run, letters: list[str], numbers: Sequence[int]
) -> Iterator[tuple[tuple[Tensor, ...], Lengths]]:  # fmt: skip
    """Inputs that are zero, equal, large, and numbers of the source; positions far along."""
    at = dict.fromkeys(letters, 3)
    places = dict.fromkeys(n for k in numbers for n in (k - 1, k, k + 1) if 0 <= n < 1 << 40)
    for k, scale in enumerate(VALUES):
        yield run.inputs(at, k, scale), at
        yield tuple(x.abs() for x in run.inputs(at, k, scale)), at
        yield tuple(-x.abs() if x.is_floating_point() else x for x in run.inputs(at, k, scale)), at
    for n in islice(places, NAMED):
        yield tuple(torch.full_like(x, n) if x.dtype != torch.bool else x
                    for x in run.inputs(at, 0)), at  # fmt: skip
        yield tuple(x if x.is_floating_point() else x + n for x in run.inputs(at, 1)), at


def _small(letters: list[str]) -> Iterator[Lengths]:
    """All lengths up to 3, and all pairs of lengths up to a few."""
    for sizes in itertools.product((1, 2, 3), repeat=len(letters)):
        yield dict(zip(letters, sizes, strict=True))
    for one, other in itertools.combinations(letters, 2):
        for a, b in itertools.product(range(1, SMALL + 1), repeat=2):
            yield {**dict.fromkeys(letters, 2), one: a, other: b}


OTHERS = (1, 2, 3, 5)


def _of_source(letters: list[str], numbers: Sequence[int]) -> Iterator[Lengths]:
    """Lengths that the source names, with few and with one of the others; then two at a time."""
    beside = dict.fromkeys(k + d for k in numbers for d in (0, 1, -1) if 1 < k + d <= LONGEST)
    tokens = [letter for letter in letters if letter in "rn"]
    for n in beside:
        for others in (1, 2):
            yield from ({**dict.fromkeys(letters, others), letter: n} for letter in tokens)
            if len(tokens) > 1:
                yield {**dict.fromkeys(letters, others), **dict.fromkeys(tokens, n)}
    for n in beside:
        for letter in letters:
            if letter not in tokens:
                yield {**dict.fromkeys(letters, 2), letter: n}
    named = [n for n in numbers if 1 < n <= LONG][:FEW]
    for one, other in itertools.combinations(letters, 2):
        for a, b in itertools.product(named, repeat=2):
            for more in (0, 1):
                yield {**dict.fromkeys(letters, 2), one: a + more, other: b + more}
    for n in lengths_of_interest(numbers, LONGEST):
        yield {letter: n if letter in tokens else 2 for letter in letters}


def _tokens_first(letters: list[str]) -> list[str]:
    return sorted(letters, key=lambda letter: letter not in "nr")


def _all(letters: list[str], seed: int) -> Iterator[Lengths]:
    """All lengths up to a bound, in any order, beside few of the others; then ever longer ones.

    Of three, one is small, one middling and one large, as long as there are such.
    """
    drawn = random.Random(seed)
    orders = {letter: _mixed(drawn) for letter in letters}
    for k in range(LONG):
        for letter in _tokens_first(letters):
            if letter in "nr" or k % 4 == 0:
                yield {**{c: OTHERS[(k + place) % 4] for place, c in enumerate(letters)},
                       letter: orders[letter][k]}  # fmt: skip
    for power in range(11, 15):
        for letter in _tokens_first(letters):
            yield {**dict.fromkeys(letters, 1), letter: (1 << power) + 1}


def _mixed(drawn: random.Random) -> list[int]:
    """Each number up to LONG once, from three ranges in turn, of each in any order."""
    parts = [drawn.sample(part, len(part)) for part in map(range, (1, *CUTS), (*CUTS, LONG + 1))]
    turns = itertools.zip_longest(*parts)
    return [n for turn in turns for n in turn if n is not None]


def _smaller(run: _Run, at: Lengths, count: Iterator[int]) -> dict[str, int]:
    """Each length as small as halving shows it to differ still."""
    found = dict(at)
    for letter, given in at.items():
        low, high = 0, given
        while high - low > 1:
            middle = (low + high) // 2
            alike = run.look({**found, letter: middle}, next(count))
            low, high = (middle, high) if alike else (low, middle)
        found[letter] = high
    return found


def _alike(got: Results, want: Results, operations: int) -> bool:
    """Whether each of some results is another one up to rounding."""
    return all(_near(a, b, operations) for a, b in zip(got, want, strict=True))


def _near(got: Tensor, want: Tensor, operations: int) -> bool:
    """Whether two results are one up to rounding."""
    if got.shape != want.shape:
        return False
    if torch.equal(got, want):
        return True
    a, b = (t.double() for t in (got, want))
    if bool((a.isfinite() != b.isfinite()).any()):
        return False
    both = a.isfinite()
    if not bool(both.any()):
        return bool(torch.equal(a.nan_to_num(), b.nan_to_num()))
    largest = max(1.0, float(b[both].abs().max()))
    return float((a - b).abs()[both].max()) <= STEP * (16 + operations) * largest
