"""Run the code beside its graph, at lengths on both sides of every number in its source.

Tracing takes some branches without recording a guard: on ``isinstance(n, int)``, on a string made
from a length, on whether the code is being compiled, in an ``except``.  A proof is about the graph,
so before anything is claimed about the code, the code is run as users call it and must return what
the graph returns: in batches of one, with one token, with fewer queries than keys and with more,
for large and for equal numbers, with and without gradients, for any memory layout of the inputs,
call after call.
"""

from __future__ import annotations

import resource
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import islice, product
from pathlib import Path
from time import process_time
from typing import Any

import torch
from torch import Tensor

from attnproof.documents.verdict_line import Condition

from ..loading.source_numbers import cached_functions, constants_in, is_own, numbers_of
from .blocks import PLACE_PARTS, Place, TracedBlocks, not_traced
from .branches import Search, letters_of
from .call_variants import (
    ALL_WAYS,
    WAY_TEXTS,
    random_contents,
    random_flat_weights,
)
from .comparison import CHANGES
from .comparison_monitor import ComparisonMonitor
from .environment import environment_conditions, torchscript_conditions
from .executed_code import Executed, counts_calls
from .guards import satisfied
from .instrumentation import instrument, instrument_unwatched
from .lengths import Lengths, derived, every, named, pairs, small
from .paired_runs import WAYS, Gate, PairedRun, both_calls, modules_of, size_of
from .reached_arrays import numbers_of_one
from .settings_read import SettingsRead
from .statements import Graph
from .tensors_read import TensorsRead
from .token_blocks import block_of

SOURCE_NUMBERS = 48  # numbers of the source that are tried as positions and values
POSITION_LIMIT = 1 << 30  # positions below this fit every dtype that positions have
# Work in the units of work.py: a million takes about a millisecond.
WORK = {
    "small": 60_000_000,
    "named": 600_000_000,
    "derived": 200_000_000,
    "pairs": 60_000_000,
    "all": 110_000_000,
}
CHEAP_WORK = 5_000_000  # of a call that is cheap enough to be made in every way
SECONDS = 2.0  # of processor time, for code that does more than its graph shows
MEMORY = 400_000  # KiB by which memory may grow over all these calls
INPUT_SCALES = (0.0, 1.0, 100.0, 1e4)  # how large the inputs are
READ_LENGTHS = (3, 1, 7)  # at which it is seen of which tensors code reads numbers
OVERWRITES = "a later call of the code overwrites the result of an earlier one"


def gate(graph: Graph, *, whole: bool = False) -> Gate:
    """Run the code beside its graph; return where they differ, and where only the code raises.

    ``whole``: compare both results of a call of which each result is a graph.
    """
    own = letters_of(graph)
    run = PairedRun(graph, own, *both_calls(graph, whole=whole), Gate(letters=own))
    letters = list(dict.fromkeys(run.letters.values()))
    with random_flat_weights(modules_of(graph)), random_contents(graph.exported.written):
        _run_beside(run, letters)
    return run.gate


def _run_beside(run: PairedRun, letters: list[str]) -> None:
    first = dict.fromkeys(letters, 3)
    fresh = run.inputs(first, 0)
    before, want = run.code_results(fresh), run.graph_results(fresh)
    if want:
        run.size = size_of(want)
    if run.is_overwritten(first):
        run.gate.changes = OVERWRITES
        return
    ran = _ExecutedCode(run)
    with ran.recorded():
        run.code_results(fresh)
    ran.settings.begin()
    differs = (_differs if letters else _differs_at_branches)(run, letters, ran)
    if differs and before is not None:
        now = run.code_results(fresh)
        if now is None or not run.agree(now, before):
            run.gate.changes = CHANGES


def _differs(run: PairedRun, letters: list[str], ran: _ExecutedCode) -> bool:
    """Whether the code was seen to differ from its graph; where it did is recorded."""
    constants = ran.constants()
    numbers = numbers_of(constants)
    for inputs, at in _inputs_tried(run, letters, constants, numbers):
        way = WAYS[run.count % 3]
        if not run.agrees(at, way, inputs):
            return _records(run, dict(at), way)
    run.far = tuple(islice((n for n in numbers if 0 < n < POSITION_LIMIT), SOURCE_NUMBERS))
    plans: dict[str, Iterable[tuple[Lengths, str]]] = {
        "small": ((at, "") for at in small(letters)),
        "named": _named(run, letters, ran),
        "derived": _derived(run, letters, ran),
        "pairs": _pairs(run, letters, ran),
        "all": ((at, "") for at in every(letters)),
    }
    memory = _memory()
    if _differs_at_branches(run, letters, ran):
        return True
    for name, planned in plans.items():
        most, start = run.done + WORK[name], process_time()
        for at, way in planned:
            late = process_time() - start > SECONDS
            full = run.count % 8 == 0 and _memory() - memory > MEMORY  # slow to ask
            if late or full or run.done > most:
                break
            told = way or WAYS[run.count % len(WAYS)]
            # for each length, check once whether other code runs there
            with ran.recorded() if (name, told) == ("named", "plain") else nullcontext():
                agree = run.agrees(at, told)
            if not agree:
                return _records(run, _shrunk(run, at, told), told)
    return False


@dataclass
class _ExecutedCode:
    """The code objects executed by runs beside a graph, and the numbers in their source."""

    run: PairedRun
    executed: Executed = field(default_factory=lambda: Executed(is_own))

    def __post_init__(self) -> None:
        self.settings = SettingsRead(self.run.graph.call.roots, self.executed)

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Record which code objects the code executes, and what they read."""
        code = self.run.code
        self.run.code = self.executed.recording(code)
        try:
            with self.settings.observed():
                yield
        finally:
            self.run.code = code

    def conditions(self, at: Lengths) -> Iterator[str]:
        """Yield that what other code may set keeps its value, unless a run set it."""
        with self.recorded():  # what all the code that was found reads
            self.run.code_results(self.run.inputs(at, 0))
        yield from self.settings.conditions()

    def lengths(self) -> list[int]:
        """Return the lengths that the code may treat apart, as the call counts them."""
        numbers, block = numbers_of(self.constants()), block_of(self.run.graph.call)
        return list(dict.fromkeys((*numbers, *(n // block for n in numbers))))

    def constants(self) -> list[float]:
        """Return the numbers in the code that ran and in the values it names."""
        roots = (*self.run.graph.call.roots, *self.settings.functions)
        return constants_in(roots, ran=self.executed.codes)


def _named(run: PairedRun, letters: list[str], ran: _ExecutedCode) -> Iterator[tuple[Lengths, str]]:
    """Yield lengths that the source names, and those named by any further code they lead to.

    Calls with little work come first, so that a long call does not crowd them out.
    """
    tried: set[int] = set()
    known = -1
    while len(ran.executed.codes) > known:
        known = len(ran.executed.codes)
        numbers = [n for n in ran.lengths() if n not in tried]
        tried.update(numbers)
        yield from _cheap_first(run, named(letters, numbers, several=run.several))


def _derived(
    run: PairedRun, letters: list[str], ran: _ExecutedCode
) -> Iterator[tuple[Lengths, str]]:
    """Yield lengths that are related to those that the source names."""
    yield from _cheap_first(run, derived(letters, ran.lengths(), several=run.several))


def _cheap_first(
    run: PairedRun, planned: Iterable[tuple[Lengths, str]]
) -> list[tuple[Lengths, str]]:
    return sorted(planned, key=lambda one: run.work(run.known(one[0])).bit_length())


def _pairs(run: PairedRun, letters: list[str], ran: _ExecutedCode) -> Iterator[tuple[Lengths, str]]:
    """Yield pairs of lengths that the source names."""
    yield from pairs(letters, ran.lengths(), several=run.several)


def _differs_at_branches(run: PairedRun, letters: list[str], ran: _ExecutedCode) -> bool:
    """Whether code and graph differ where the outcome of one of the comparisons changes."""
    at = dict.fromkeys(letters, 3)
    ways = ALL_WAYS if run.work(run.known(at)) < CHEAP_WORK else ALL_WAYS[:3]
    watch, codes = ComparisonMonitor(), ran.executed.codes
    search = Search(run, watch, letters, ways, run.from_one())
    with ran.recorded():
        found = search.in_each_way()
    if found is None:
        ran.executed.add_cached(cached_functions(run.graph.call.roots))
        instrument(ran.settings.functions, watch)
        found = search.where_outcomes_change()
        if found is None and instrument_unwatched(watch):
            found = search.where_outcomes_change()
    if found is not None:
        lengths, way = found
        return _records(run, _shrunk(run, lengths, way), way)
    held = ran.settings.held()
    told = (
        *search.conditions(),
        *watch.conditions(),
        *ran.executed.conditions(),
        *ran.conditions(at),
        *_numbers_read(run, held, at),
        *_untraced(run, watch),
        *watch.unseen(codes),
        *environment_conditions(codes, held),
        *torchscript_conditions(held),
        *counts_calls(codes, run.graph.call.roots, lambda: run.code_results(run.inputs(at, 0))),
    )
    run.gate.where = [Condition(one, "where") for one in told]
    return False


def _numbers_read(run: PairedRun, held: Sequence[Any], at: Lengths) -> Iterator[str]:
    """Yield that tensors of which the code reads numbers keep them; all of one, if it raises."""
    reads = TensorsRead()
    modules, stored = modules_of(run.graph), [*run.graph.exported.stored.values()]
    watched = replace(run, code=reads.of(run.code))
    ran = [
        watched.code_results(run.inputs(dict.fromkeys(at, n), 0)) is not None for n in READ_LENGTHS
    ]
    if not any(ran):
        yield from numbers_of_one(held, modules, stored)
    yield from reads.conditions(modules, stored)


def _untraced(run: PairedRun, watch: ComparisonMonitor) -> Iterator[str]:
    """Yield that code which ran, but was not traced, changes nothing."""
    traced = run.graph.exported.blocks
    if traced is None:
        return
    ran: dict[tuple[TracedBlocks, ...], dict[Place, None]] = {}
    for at, places in watch.reached:
        known = run.known(at)
        own = tuple(one for one in traced if satisfied(one.conditions, known))
        ran.setdefault(own, {}).update(places)
    found = [
        place
        for own, places in ran.items()
        for place in not_traced(places, frozenset().union(*(one.places for one in own)))
    ]
    for place in sorted(found, key=len)[:1]:
        told = f"values of `{watch.blocks[place]}` that did not occur in the trace have"
        if len(place) == PLACE_PARTS:
            told = f"code that ran untraced, such as `{watch.blocks[place]}`, has"
        yield f"{told} no effect, as in every run"


def _memory() -> int:
    """Return the resident memory of this process in KiB, or its maximum if that cannot be read."""
    try:
        with Path("/proc/self/statm").open("rb", buffering=0) as told:
            pages = int(told.read().split()[1])
    except (OSError, ValueError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return pages * resource.getpagesize() // 1024


def _inputs_tried(
    run: PairedRun, letters: list[str], constants: Iterable[float], numbers: Sequence[int]
) -> Iterator[tuple[tuple[Tensor, ...], Lengths]]:
    """Yield inputs of several scales and signs, constants from the source, distant positions.

    Positions are also given to single tokens, for which untraced code may read them otherwise.
    """
    at = dict.fromkeys(letters, 3)
    places = dict.fromkeys(n for k in numbers for n in (k - 1, k, k + 1) if 0 <= n < 1 << 40)
    for k, scale in enumerate(INPUT_SCALES):
        yield run.inputs(at, k, scale), at
        yield tuple(x.abs() if x.is_floating_point() else x for x in run.inputs(at, k, scale)), at
        yield tuple(-x.abs() if x.is_floating_point() else x for x in run.inputs(at, k, scale)), at
    given = run.graph.call.inputs
    placed = not all(x.is_floating_point() or x.dtype == torch.bool for x in given)
    lengths = (at, {**at, **dict.fromkeys(run.from_one(), 1)}) if placed else (at,)
    for n, here in product(islice(places, SOURCE_NUMBERS), lengths):
        given, later = run.inputs(here, 0), run.inputs(here, 1)
        yield tuple(x if x.dtype == torch.bool else torch.full_like(x, n) for x in given), here
        if placed:
            moved = (x if x.is_floating_point() or x.dtype == torch.bool else x + n for x in later)
            yield tuple(moved), here
    for real in islice((c for c in constants if 0 < abs(c) < 1e30 and c != int(c)), SOURCE_NUMBERS):
        for value in (real, 1.01 * real, 0.99 * real):
            yield (
                tuple(
                    torch.full_like(x, value) if x.is_floating_point() else x
                    for x in run.inputs(at, 0)
                ),
                at,
            )


def _records(run: PairedRun, at: dict[str, int], way: str) -> bool:
    """Record lengths and a way of calling at which code and graph differ; return True."""
    run.gate.differs_at.append(at)
    run.gate.how = WAY_TEXTS.get(way, "")
    return True


def _shrunk(run: PairedRun, at: Lengths, way: str) -> dict[str, int]:
    """Return lengths, reduced by bisection, at which code and graph differ in this way."""
    found = dict(at)
    for letter, given in at.items():
        low, high = 0, given
        while high - low > 1:
            middle = (low + high) // 2
            agree = run.agrees({**found, letter: middle}, way)
            low, high = (middle, high) if agree else (low, middle)
        found[letter] = high
    return found
