"""Run the code beside its graph, at lengths on both sides of every number in its source.

Tracing takes some branches without recording a guard: on ``isinstance(n, int)``, on a string made
from a length, on whether the code is being compiled, in an ``except``.  A proof is about the graph,
so before anything is claimed about the code, the code is run as users call it and must return what
the graph returns: in batches of one, with one token, with fewer queries than keys and with more,
for large and for equal numbers, with and without gradients, for any memory layout of the inputs,
call after call.
"""

from __future__ import annotations

import math
import resource
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from pathlib import Path
from time import process_time
from types import FunctionType
from typing import Any

import torch
from torch import Tensor, nn

from attnproof.documents.verdict_line import Condition

from ..execution.response import OutOfRange
from ..loading.reach import reached
from ..loading.source_numbers import cached_functions, constants_in, is_own, numbers_of
from .blocks import PLACE_PARTS, Place, TracedBlocks, not_traced
from .branches import Search
from .call_variants import (
    ALL_WAYS,
    WAY_TEXTS,
    call_in,
    inputs_for,
    random_contents,
    random_flat_weights,
)
from .comparison import CHANGES, all_results_function, result_function
from .environment import environment_conditions, torchscript_conditions
from .executed_code import Executed, counts_calls, kept_values
from .guards import satisfied
from .instrumentation import instrument
from .lengths import Lengths, every, named, pairs, small
from .other_branches import letters_of
from .reached_arrays import modules_in, numbers_read
from .statements import Graph
from .watch import Watch
from .work import work_of

Results = tuple[Tensor, ...]
SOURCE_NUMBERS = 48  # numbers of the source that are tried as positions and values
POSITION_LIMIT = 1 << 30  # positions below this fit every dtype that positions have
# Work in the units of work.py: a million takes about a millisecond.
WORK = {"small": 100_000_000, "named": 600_000_000, "pairs": 120_000_000, "all": 220_000_000}
WORK_PER_CALL = 150_000_000  # of one call
CHEAP_WORK = 5_000_000  # of a call that is cheap enough to be made in every way
SECONDS = 2.0  # of processor time, for code that does more than its graph shows
MEMORY = 400_000  # KiB by which memory may grow over all these calls
INPUT_SCALES = (0.0, 1.0, 100.0, 1e4)  # how large the inputs are
SAFE_INPUT, SAFE_LENGTH = 4.0, 16  # up to these, no exponential of a score overflows
STEP = 2.0**-22
ROUNDED_GAP = 0.99  # of the allowed gap, so that rounding the gap itself cannot matter
POOL, POOL_STRIDE = 1_048_583, 104_729  # both prime, so that no axis repeats the same numbers
# How successive calls are made; see call_variants.py.
WAYS = (
    "plain",
    "gradients",
    "plain",
    "strided",
    "inference",
    "one",
    "trained",
    "repeated",
    "int32",
    "plain",
    "strided",
)
OVERWRITES = "a later call of the code overwrites the result of an earlier one"


@dataclass
class Gate:
    """Lengths at which the code differs from its graph, and lengths at which only the code raises.

    ``differs_at`` has lengths by letter; ``how`` says how the call was made, if not plainly.
    ``changes``: why the result of an earlier call is not reproduced.  ``where``: conditions that
    the code tests and that had the same outcome in every run.  ``nan_at``: lengths at which the
    code gives NaN for ordinary numbers, or for zeros (``nan_at_zeros``); terms have no NaN, so that
    0 times anything is 0 there.
    """

    differs_at: list[dict[str, int]] = field(default_factory=list)
    how: str = ""
    raises: dict[str, int] | None = None
    changes: str = ""
    where: list[Condition] = field(default_factory=list)
    nan_at: dict[str, int] | None = None
    nan_at_zeros: bool = False
    letters: Mapping[str, str] = field(default_factory=dict)  # by the names of lengths in the graph

    def for_graph(self, graph: Graph) -> Gate:
        """Return the same gate for another graph of the same runs, with that graph's letters."""
        own = {letter: s for s, letter in self.letters.items()}
        names = letters_of(graph)

        def named(at: dict[str, int]) -> dict[str, int]:
            return {names[own[letter]]: n for letter, n in at.items()}

        return replace(
            self,
            differs_at=[named(at) for at in self.differs_at],
            raises=self.raises and named(self.raises),
            nan_at=self.nan_at and named(self.nan_at),
        )


@dataclass
class _Run:
    """A graph and its code, and the work of calls made so far.

    ``code`` and ``compiled`` return all results of a call as a tuple, whose entries are compared.
    """

    graph: Graph
    letters: dict[str, str]  # the first letter of each length in the graph
    code: Callable[..., Results]
    compiled: Callable[..., Results]
    gate: Gate = field(default_factory=Gate)
    done: int = 0  # work
    count: int = 0  # calls
    size: float = 1.0  # scale of the graph's results on inputs of size 1, at most 1
    far: tuple[int, ...] = ()  # numbers of the source that positions may start from

    def __post_init__(self) -> None:
        self.work = work_of(self.graph.exported)
        ranges = self.graph.exported.ranges
        self.longest = {s: int(r.upper) for s, r in ranges.items() if r.upper.is_Integer}
        self.pool = _pool()
        numbers = [x.is_floating_point() for x in self.graph.call.inputs]
        self.several, self.whole = sum(numbers) > 1, not all(numbers)
        self.rounded = STEP * (16 + self.graph.exported.operations)
        places = [
            (shape, letters.split())
            for shape, letters in zip(
                self.graph.exported.shapes, self.graph.call.letters, strict=True
            )
        ]
        self.row = [letters.index("B") if "B" in letters else None for _, letters in places]

    def shape(self, place: int, at: Lengths) -> tuple[int, ...]:
        """Return the shape of an input at these lengths."""
        return tuple(
            n if isinstance(n, int) else at[self.letters[n]]
            for n in self.graph.exported.shapes[place]
        )

    def inputs(self, at: Lengths, count: int, scale: float = 1.0) -> tuple[Tensor, ...]:
        """Return inputs of these lengths; positions are consecutive from some start, or random.

        Every fourth call starts far along: a branch on a length may also read positions.
        """
        generator = torch.Generator().manual_seed(count) if self.whole else None  # slow to make
        made = []
        for place, like in enumerate(self.graph.call.inputs):
            shape = self.shape(place, at)
            if like.is_floating_point():
                x = self.numbers(shape, count + place)
                made.append((x if scale == 1 else x * scale).to(like.dtype))
            elif count % 2 and len(shape) == 2 and like.dtype != torch.bool:
                first = torch.randint(0, 9, (shape[0], 1), generator=generator)
                start = self.far[count // 4 % len(self.far)] if self.far and count % 4 == 3 else 0
                made.append((torch.arange(shape[1]) + first + start).to(like.dtype))
            else:
                most = 2 if like.dtype == torch.bool else max(2, *shape)
                made.append(torch.randint(0, most, shape, generator=generator, dtype=like.dtype))
        return tuple(made)

    def numbers(self, shape: tuple[int, ...], salt: int) -> Tensor:
        """Return random numbers drawn once and read from a different offset on each call."""
        first, count = salt * POOL_STRIDE % POOL, math.prod(shape)
        if count <= POOL:  # the pool is stored twice, so that no draw wraps around
            return self.pool[first : first + count].view(shape)
        once = self.pool[first : first + POOL]
        return once.repeat(-(-count // POOL))[:count].view(shape)

    def allowed(self, at: Lengths) -> bool:
        """Whether the guards of the graph admit these lengths."""
        known = self.known(at)
        if any(known[s] > most for s, most in self.longest.items() if s in known):
            return False
        return satisfied(self.graph.exported.conditions, known)

    def known(self, at: Lengths) -> dict[str, int]:
        """Return the lengths by their names in the graph."""
        return {s: at[letter] for s, letter in self.letters.items()}

    def agrees(self, at: Lengths, way: str = "", inputs: tuple[Tensor, ...] | None = None) -> bool:
        """Whether code and graph agree, called in this way or the next; True if not comparable."""
        way = way or WAYS[self.count % len(WAYS)]
        self.count += 1
        work = self.work(self.known(at))
        if work > WORK_PER_CALL or not self.allowed(at):
            return True
        given = self.inputs(at, self.count) if inputs is None else inputs
        given = inputs_for(way, given, self.row)
        self.done += work
        want = self.graph_results(given)
        if want is None:
            return True
        got = self.code_results(given, way)
        if got is None:
            if way == "plain" and self.gate.raises is None and min(at.values(), default=2) > 1:
                self.gate.raises = dict(at)
            return True
        if self.gate.nan_at is None and max(at.values(), default=0) <= SAFE_LENGTH:
            self._record_nan(at, given, got)
        return self.agree(got, want)

    def _record_nan(self, at: Lengths, given: tuple[Tensor, ...], got: Results) -> None:
        """Record the lengths if inputs that are not large give NaN."""
        numbers = [x for x in given if x.is_floating_point() and x.numel()]
        if any(bool(x.isnan().any()) for x in got):
            largest = max((float(x.abs().max()) for x in numbers), default=0.0)
            if largest <= SAFE_INPUT and not self._out_of_range(given):
                self.gate.nan_at, self.gate.nan_at_zeros = dict(at), bool(numbers) and not largest

    def _out_of_range(self, given: tuple[Tensor, ...]) -> bool:
        """Whether a number leaves the range of its format, which terms do not model."""
        mode = OutOfRange()
        with mode:
            self.code_results(given)
        return mode.seen

    def from_one(self) -> list[str]:
        """Return the letters of lengths that may be 1."""
        ranges = self.graph.exported.ranges
        return [letter for s, letter in self.letters.items() if s in ranges and ranges[s].lower < 2]

    def affordable(self, at: Lengths) -> bool:
        """Whether a call at these lengths is cheap enough to run."""
        return self.work(self.known(at)) <= WORK_PER_CALL

    def call(self, at: Lengths, way: str) -> None:
        """Run only the code, in this way."""
        self.count += 1
        self.done += self.work(self.known(at))
        self.code_results(inputs_for(way, self.inputs(at, self.count), self.row), way)

    def graph_results(self, inputs: tuple[Tensor, ...]) -> Results | None:
        """Return the results of the graph, or None if it raises."""
        for mode in (torch.inference_mode, torch.no_grad):  # the first is faster
            with suppress(Exception), mode():  # a graph may reject a length of 1
                return self.compiled(*inputs)
        return None

    def code_results(self, inputs: tuple[Tensor, ...], way: str = "plain") -> Results | None:
        """Return the results of the code, called in this way, or None if it raises."""
        try:
            modules = _modules(self.graph) if way == "frozen" else ()  # slow to find
            return call_in(way, self.code, inputs, modules)
        except Exception:  # noqa: BLE001 (code may raise anything)
            return None

    def agree(self, got: Results, want: Results) -> bool:
        """Whether results agree pairwise up to rounding."""
        return all(
            _equal_up_to_rounding(a, b, self.rounded, self.size)
            for a, b in zip(got, want, strict=True)
        )

    def is_overwritten(self, at: Lengths) -> bool:
        """Whether a later call overwrites the results of an earlier one."""
        try:
            with torch.no_grad():
                kept = self.code(*(x.clone() for x in self.inputs(at, 1)))
                before = tuple(x.clone() for x in kept)
                self.code(*(x.clone() for x in self.inputs(at, 4)))
        except Exception:  # noqa: BLE001 (code may raise anything)
            return False
        return not all(
            torch.equal(a, b) or bool(b.isnan().any()) for a, b in zip(kept, before, strict=True)
        )


@cache
def _pool() -> Tensor:
    """Return the numbers that graphs and their code are run on; nothing writes to them."""
    return torch.randn(POOL, generator=torch.Generator().manual_seed(0)).repeat(2)


def _modules(graph: Graph) -> tuple[nn.Module, ...]:
    """Return the modules of a call."""
    return (*graph.call.modules, *modules_in(graph.call.code))


def gate(graph: Graph, *, whole: bool = False, seed: int = 0) -> Gate:
    """Run the code beside its graph; return where they differ, and where only the code raises.

    ``whole``: compare both results of a call of which each result is a graph.
    """
    own = letters_of(graph)
    run = _Run(graph, own, *_results(graph, whole=whole), Gate(letters=own))
    letters = list(dict.fromkeys(run.letters.values()))
    with random_flat_weights(_modules(graph)), random_contents(graph.exported.written):
        _run_beside(run, letters, seed)
    return run.gate


def _run_beside(run: _Run, letters: list[str], seed: int) -> None:
    first = dict.fromkeys(letters, 3)
    fresh = run.inputs(first, 0)
    before, want = run.code_results(fresh), run.graph_results(fresh)
    if want:
        run.size = _size(want)
    if run.is_overwritten(first):
        run.gate.changes = OVERWRITES
        return
    if letters:
        differs = _differs(run, letters, seed)
    else:
        differs = _differs_at_branches(run, letters, _ExecutedCode(run))
    if differs and before is not None:
        now = run.code_results(fresh)
        if now is None or not run.agree(now, before):
            run.gate.changes = CHANGES


def _size(results: Results) -> float:
    """Return the largest absolute value among these results, or 1 if it is larger than 1, or 0."""
    largest = max(
        (
            float(x.detach().double().abs().nan_to_num(posinf=0.0).max())
            for x in results
            if x.numel()
        ),
        default=0.0,
    )
    return largest if 0 < largest < 1 else 1.0


def _results(graph: Graph, *, whole: bool) -> tuple[Callable[..., Results], Callable[..., Results]]:
    """Return the call as two functions, by its code and by its graph, that return all results."""
    code, pair, tables = graph.call.code, graph.call.pair, graph.exported.values
    if whole and pair is not None:
        return pair, all_results_function(graph, tables, often=True)
    alone = result_function(graph, tables, often=True)
    return lambda *given: (code(*given),), lambda *given: (alone(*given),)


def _differs(run: _Run, letters: list[str], seed: int) -> bool:
    """Whether the code was seen to differ from its graph; where it did is recorded."""
    ran = _ExecutedCode(run)
    with ran.recorded():
        run.code_results(run.inputs(dict.fromkeys(letters, 3), 0))
    ran.kept = ran.kept_values()
    constants = ran.constants()
    numbers = numbers_of(constants)
    for inputs, at in _inputs_tried(run, letters, constants, numbers):
        way = WAYS[run.count % 3]
        if not run.agrees(at, way, inputs):
            run.gate.differs_at.append(dict(at))
            run.gate.how = WAY_TEXTS.get(way, "")
            return True
    run.far = tuple(islice((n for n in numbers if 0 < n < POSITION_LIMIT), SOURCE_NUMBERS))
    plans: dict[str, Iterable[tuple[Lengths, str]]] = {
        "small": ((at, "") for at in small(letters)),
        "named": _named(run, letters, ran),
        "pairs": _pairs(run, letters, ran),
        "all": ((at, "") for at in every(letters, seed)),
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
                run.gate.differs_at.append(_shrunk(run, at, told))
                run.gate.how = WAY_TEXTS.get(told, "")
                return True
    return False


@dataclass
class _ExecutedCode:
    """The code objects executed by runs beside a graph, and the numbers in their source."""

    run: _Run
    executed: Executed = field(default_factory=lambda: Executed(is_own))
    kept: dict[str, Any] = field(default_factory=dict)  # by name, what code may set
    _functions: tuple[int, list[FunctionType]] = (-1, [])  # count of codes when last searched

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Record which code objects the code executes."""
        code = self.run.code
        self.run.code = self.executed.recording(code)
        try:
            yield
        finally:
            self.run.code = code

    @property
    def functions(self) -> list[FunctionType]:
        """The functions that ran, searched for again when more code objects were recorded."""
        count = len(self.executed.codes)
        if self._functions[0] != count:
            self._functions = count, self.executed.functions(self.run.graph.call.roots)
        return self._functions[1]

    def kept_values(self) -> dict[str, Any]:
        """Return what the code may set, by name, as it is now."""
        modules = {m: None for one in _modules(self.run.graph) for m in one.modules()}
        return kept_values(self.executed.codes, modules)

    def conditions(self) -> Iterator[str]:
        """Yield that what the code may set, and no run did, keeps its value."""
        now = self.kept_values()
        for name, value in self.kept.items():
            if name in now and now[name] == value:
                yield f"{name} keeps its value, {value!r}"

    def constants(self) -> list[float]:
        """Return the numbers in the code that ran and in the values it names."""
        roots = (*self.run.graph.call.roots, *self.functions)
        return constants_in(roots, ran=self.executed.codes)


def _named(run: _Run, letters: list[str], ran: _ExecutedCode) -> Iterator[tuple[Lengths, str]]:
    """Yield lengths that the source names, and those named by any further code they lead to.

    Calls with little work come first, so that a long call does not crowd them out.
    """
    tried: set[int] = set()
    known = -1
    while len(ran.executed.codes) > known:
        known = len(ran.executed.codes)
        numbers = [n for n in numbers_of(ran.constants()) if n not in tried]
        tried.update(numbers)
        yield from sorted(
            named(letters, numbers, several=run.several) if numbers else (),
            key=lambda one: run.work(run.known(one[0])).bit_length(),
        )


def _pairs(run: _Run, letters: list[str], ran: _ExecutedCode) -> Iterator[tuple[Lengths, str]]:
    """Yield pairs of lengths that the source names."""
    yield from pairs(letters, numbers_of(ran.constants()), several=run.several)


def _differs_at_branches(run: _Run, letters: list[str], ran: _ExecutedCode) -> bool:
    """Whether code and graph differ where the outcome of one of the comparisons changes."""
    at = dict.fromkeys(letters, 3)
    ways = ALL_WAYS if run.work(run.known(at)) < CHEAP_WORK else ALL_WAYS[:3]
    watch, codes = Watch(), ran.executed.codes
    search = Search(run, watch, letters, ways, run.from_one())
    with ran.recorded():
        found = search.in_each_way()
    if found is None:
        ran.executed.add_cached(cached_functions(run.graph.call.roots))
        instrument(ran.functions, watch)
        found = search.where_outcomes_change()
    if found is not None:
        lengths, way = found
        run.gate.differs_at.append(_shrunk(run, lengths, way))
        run.gate.how = WAY_TEXTS.get(way, "")
        return True
    held = [*reached((*run.graph.call.roots, *ran.functions), codes)]
    told = (
        *search.conditions(),
        *watch.conditions(),
        *ran.executed.conditions(),
        *ran.conditions(),
        *numbers_read(held, _modules(run.graph), run.graph.exported.stored.values()),
        *_untraced(run, watch),
        *watch.unseen(codes),
        *environment_conditions(codes, held),
        *torchscript_conditions(held),
        *counts_calls(codes, run.graph.call.roots, lambda: run.code_results(run.inputs(at, 0))),
    )
    run.gate.where = [Condition(one, "where") for one in told]
    return False


def _untraced(run: _Run, watch: Watch) -> Iterator[str]:
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
    run: _Run, letters: list[str], constants: Iterable[float], numbers: Sequence[int]
) -> Iterator[tuple[tuple[Tensor, ...], Lengths]]:
    """Yield inputs of several scales and signs, constants from the source, distant positions."""
    at = dict.fromkeys(letters, 3)
    places = dict.fromkeys(n for k in numbers for n in (k - 1, k, k + 1) if 0 <= n < 1 << 40)
    for k, scale in enumerate(INPUT_SCALES):
        yield run.inputs(at, k, scale), at
        yield tuple(x.abs() if x.is_floating_point() else x for x in run.inputs(at, k, scale)), at
        yield tuple(-x.abs() if x.is_floating_point() else x for x in run.inputs(at, k, scale)), at
    given = run.graph.call.inputs
    placed = not all(x.is_floating_point() or x.dtype == torch.bool for x in given)
    for n in islice(places, SOURCE_NUMBERS):
        yield (
            tuple(x if x.dtype == torch.bool else torch.full_like(x, n) for x in run.inputs(at, 0)),
            at,
        )
        if placed:
            yield (
                tuple(
                    x if x.is_floating_point() or x.dtype == torch.bool else x + n
                    for x in run.inputs(at, 1)
                ),
                at,
            )
    for real in islice((c for c in constants if 0 < abs(c) < 1e30 and c != int(c)), SOURCE_NUMBERS):
        for value in (real, 1.01 * real, 0.99 * real):
            yield (
                tuple(
                    torch.full_like(x, value) if x.is_floating_point() else x
                    for x in run.inputs(at, 0)
                ),
                at,
            )


def _shrunk(run: _Run, at: Lengths, way: str) -> dict[str, int]:
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


def _equal_up_to_rounding(got: Tensor, want: Tensor, allowed: float, size: float) -> bool:
    """Whether two results agree up to rounding, judged by the entries that differ.

    Other entries may be far larger: the fill value of a mask is on both sides.
    """
    if got.shape != want.shape:
        return False
    if torch.equal(got, want):
        return True
    if got.is_floating_point() and float((got - want).abs().max()) < ROUNDED_GAP * allowed * size:
        return True  # and neither has NaN or ±∞
    a, b = (t.double() for t in (got, want))
    if bool((a.isfinite() != b.isfinite()).any()):
        return False
    differ = (a != b) & a.isfinite()
    if not bool(differ.any()):
        return bool(torch.equal(a.nan_to_num(), b.nan_to_num()))
    gap, of = (float(torch.where(differ, x.abs(), 0.0).max()) for x in (a - b, b))
    return gap <= allowed * max(size, of)
