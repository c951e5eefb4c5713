"""The code itself, run beside its graph: at lengths on both sides of every number in its source.

Tracing takes some branches without a word: on ``isinstance(n, int)``, on a string made of a
length, on whether the code is being compiled, in an ``except``.  A proof is of the graph, so before
anything is said of the code it is run, as it is called, and has to give what the graph gives: in
batches of one, with one token, with fewer queries than keys and with more, for large and for equal
numbers, with gradients wanted and without, however its inputs lie in memory, call after call.
"""

from __future__ import annotations

import math
import resource
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from pathlib import Path
from time import process_time
from types import CodeType, FunctionType

import torch
from torch import Tensor, nn

from attnproof.verdict_line import Condition

from ..response import OutOfRange
from ..source_numbers import constants_in, is_own, kept_in, numbers_of, state_of
from .branches import Search
from .comparison import CHANGES, run_of, runs_of
from .environment import asked_elsewhere
from .executed import Executed, stores
from .exporting import modules_in
from .guards import met
from .lengths import Lengths, every, named, pairs, small
from .parts import letters_of
from .stating import Graph
from .watching import Watch, marked
from .ways import ALL, HOW, called_in, flat_weights_drawn, given_in
from .work import work_of

Results = tuple[Tensor, ...]
NAMED = 48  # numbers of the source that are tried as positions
# Work, as it is counted in work.py: a million takes about a millisecond.
WORK = {"small": 100_000_000, "named": 600_000_000, "pairs": 120_000_000, "all": 220_000_000}
MOST_WORK = 150_000_000  # of one call
LITTLE = 5_000_000  # of a call that is made in every way
SECONDS = 2.0  # of the processor, for code that does more than its graph shows
MEMORY = 400_000  # KiB that the code may keep of all these calls
VALUES = (0.0, 1.0, 100.0, 1e4)  # how large the inputs are
ORDINARY, FEW = 4.0, 16  # numbers, and lengths, of which no exponential of a score overflows
STEP = 2.0**-22
POOL, STEPS = 1_048_583, 104_729  # both prime: no axis comes round to the same numbers
# How a call is made.
WAYS = (
    "plain",
    "gradients",
    "plain",
    "apart",
    "inference",
    "one",
    "trained",
    "repeated",
    "int32",
    "plain",
    "apart",
)
OVERWRITES = "a later call of the code writes over what an earlier one gave"


@dataclass
class Gate:
    """At which lengths the code differs from its graph, and where it raises and the graph not.

    ``unlike`` has lengths by letter, and ``how`` says how the call was made, if in no plain way.
    ``changes``: why what an earlier call gave is given no more.  ``where``: what the code asks and
    was answered in one way wherever it was run.  ``none``: lengths at which code and graph give NaN
    of ordinary numbers, or of zeros, ``of_zeros``; terms have no NaN, and 0 times it is 0 there.
    """

    unlike: list[dict[str, int]] = field(default_factory=list)
    how: str = ""
    raises: dict[str, int] | None = None
    changes: str = ""
    where: list[Condition] = field(default_factory=list)
    none: dict[str, int] | None = None
    of_zeros: bool = False
    letters: Mapping[str, str] = field(default_factory=dict)  # by the lengths of the graph

    def of(self, graph: Graph) -> Gate:
        """The same of another graph of the same runs, in its own letters for each length."""
        own = {letter: s for s, letter in self.letters.items()}
        names = letters_of(graph)

        def named(at: dict[str, int]) -> dict[str, int]:
            return {names[own[letter]]: n for letter, n in at.items()}

        return replace(
            self,
            unlike=[named(at) for at in self.unlike],
            raises=self.raises and named(self.raises),
            none=self.none and named(self.none),
        )


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
    count: int = 0  # calls
    size: float = 1.0  # of what the graph gives of numbers of size 1, or 1 where that is more

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
        """The shape of an input at these lengths."""
        return tuple(
            n if isinstance(n, int) else at[self.letters[n]]
            for n in self.graph.exported.shapes[place]
        )

    def inputs(self, at: Lengths, count: int, scale: float = 1.0) -> tuple[Tensor, ...]:
        """Inputs of these lengths; positions count on from anywhere, or stand in any order."""
        generator = torch.Generator().manual_seed(count) if self.whole else None  # which takes long
        made = []
        for place, like in enumerate(self.graph.call.inputs):
            shape = self.shape(place, at)
            if like.is_floating_point():
                x = self.numbers(shape, count + place)
                made.append((x * scale).to(like.dtype))
            elif count % 2 and len(shape) == 2 and like.dtype != torch.bool:
                first = torch.randint(0, 9, (shape[0], 1), generator=generator)
                made.append((torch.arange(shape[1]) + first).to(like.dtype))
            else:
                most = 2 if like.dtype == torch.bool else max(2, *shape)
                made.append(torch.randint(0, most, shape, generator=generator, dtype=like.dtype))
        return tuple(made)

    def numbers(self, shape: tuple[int, ...], salt: int) -> Tensor:
        """Random numbers that were drawn once, from another one on each time."""
        first, count = salt * STEPS % POOL, math.prod(shape)
        if count <= POOL:  # the pool stands there twice, so that no draw comes round its end
            return self.pool[first : first + count].view(shape)
        once = self.pool[first : first + POOL]
        return once.repeat(-(-count // POOL))[:count].view(shape)

    def allowed(self, at: Lengths) -> bool:
        """Whether the graph is the code's at these lengths, 1 for what it takes for 2 or more."""
        known = self.known(at)
        if any(known[s] > most for s, most in self.longest.items() if s in known):
            return False
        return met(self.graph.exported.conditions, known)

    def known(self, at: Lengths) -> dict[str, int]:
        """Lengths by their names in the graph."""
        return {s: at[letter] for s, letter in self.letters.items()}

    def look(self, at: Lengths, way: str = "", inputs: tuple[Tensor, ...] | None = None) -> bool:
        """Whether the code gives what the graph gives, called in this way, or in the next."""
        way = way or WAYS[self.count % len(WAYS)]
        self.count += 1
        work = self.work(self.known(at))
        if work > MOST_WORK or not self.allowed(at):
            return True
        given = self.inputs(at, self.count) if inputs is None else inputs
        given = given_in(way, given, self.row)
        self.done += work
        want = self.of_graph(given)
        if want is None:
            return True
        got = self.of_code(given, way)
        if got is None:
            if way == "plain" and self.found.raises is None and min(at.values(), default=2) > 1:
                self.found.raises = dict(at)
            return True
        if self.found.none is None and max(at.values(), default=0) <= FEW:
            self._hear_of_none(at, given, got)
        return self.alike(got, want)

    def _hear_of_none(self, at: Lengths, given: tuple[Tensor, ...], got: Results) -> None:
        """Note it where numbers that are not large give NaN."""
        numbers = [x for x in given if x.is_floating_point() and x.numel()]
        if any(bool(x.isnan().any()) for x in got):
            largest = max((float(x.abs().max()) for x in numbers), default=0.0)
            if largest <= ORDINARY and not self._out_of_range(given):
                self.found.none, self.found.of_zeros = dict(at), bool(numbers) and not largest

    def _out_of_range(self, given: tuple[Tensor, ...]) -> bool:
        """Whether a number is past what its format has, of which a term knows nothing."""
        mode = OutOfRange()
        with mode:
            self.of_code(given)
        return mode.seen

    def ones(self) -> list[str]:
        """The letters of lengths that may be 1."""
        ranges = self.graph.exported.ranges
        return [letter for s, letter in self.letters.items() if s in ranges and ranges[s].lower < 2]

    def affordable(self, at: Lengths) -> bool:
        """Whether a call at these lengths is little enough work."""
        return self.work(self.known(at)) <= MOST_WORK

    def call(self, at: Lengths, way: str) -> None:
        """Run the code alone, in this way."""
        self.count += 1
        self.done += self.work(self.known(at))
        self.of_code(given_in(way, self.inputs(at, self.count), self.row), way)

    def of_graph(self, inputs: tuple[Tensor, ...]) -> Results | None:
        """What the graph gives; None where it raises."""
        try:
            with torch.no_grad():
                return self.compiled(*inputs)
        except Exception:  # noqa: BLE001 (a graph may not take a length of 1)
            return None

    def of_code(self, inputs: tuple[Tensor, ...], way: str = "plain") -> Results | None:
        """What the code gives, called in this way; None where it raises."""
        try:
            return called_in(way, self.code, inputs, _modules(self.graph))
        except Exception:  # noqa: BLE001 (code may raise anything)
            return None

    def alike(self, got: Results, want: Results) -> bool:
        """Whether each of some results is another one up to rounding."""
        return all(_near(a, b, self.rounded, self.size) for a, b in zip(got, want, strict=True))

    def is_overwritten(self, at: Lengths) -> bool:
        """Whether a later call writes over what an earlier one gave."""
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
    """Numbers that every graph and its code are run on; they are read alone."""
    return torch.randn(POOL, generator=torch.Generator().manual_seed(0)).repeat(2)


def _modules(graph: Graph) -> tuple[nn.Module, ...]:
    """The modules of a call."""
    return (*graph.call.modules, *modules_in(graph.call.code))


def gate(graph: Graph, *, whole: bool = False, seed: int = 0) -> Gate:
    """Run the code of a graph beside it: where they differ, and where the code alone raises.

    ``whole``: of a call with two results, each of which is a graph, both are compared.
    """
    own = letters_of(graph)
    run = _Run(graph, own, *_results(graph, whole=whole), Gate(letters=own))
    letters = list(dict.fromkeys(run.letters.values()))
    with flat_weights_drawn(_modules(graph)):
        if letters:
            _run_beside(run, letters, seed)
        else:
            _is_unlike_where_it_branches(run, letters, _Heard(run))
    return run.found


def _run_beside(run: _Run, letters: list[str], seed: int) -> None:
    first = dict.fromkeys(letters, 3)
    fresh = run.inputs(first, 0)
    before, want = run.of_code(fresh), run.of_graph(fresh)
    if want:
        run.size = _size(want)
    if run.is_overwritten(first):
        run.found.changes = OVERWRITES
    elif _is_unlike(run, letters, seed) and before is not None:
        now = run.of_code(fresh)
        if now is None or not run.alike(now, before):
            run.found.changes = CHANGES


def _size(results: Results) -> float:
    """The largest number of some results; 1 where there is none, or it is larger."""
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
    """The results of a call as its code gives them, and as its graph does."""
    code, pair, tables = graph.call.code, graph.call.pair, graph.exported.values
    if whole and pair is not None:
        return pair, runs_of(graph, tables)
    alone = run_of(graph, tables)
    return lambda *given: (code(*given),), lambda *given: (alone(*given),)


def _is_unlike(run: _Run, letters: list[str], seed: int) -> bool:
    """Whether the code was seen to do other than its graph; where, is kept."""
    ran = _Heard(run)
    with ran.heard():
        run.of_code(run.inputs(dict.fromkeys(letters, 3), 0))
    constants = ran.constants()
    for inputs, at in _values(run, letters, constants, numbers_of(constants)):
        way = WAYS[run.count % 3]
        if not run.look(at, way, inputs):
            run.found.unlike.append(dict(at))
            run.found.how = HOW.get(way, "")
            return True
    plans: dict[str, Iterable[tuple[Lengths, str]]] = {
        "small": ((at, "") for at in small(letters)),
        "named": _named(run, letters, ran),
        "pairs": _pairs(run, letters, ran),
        "all": ((at, "") for at in every(letters, seed)),
    }
    memory = _memory()
    if _is_unlike_where_it_branches(run, letters, ran):
        return True
    for name, planned in plans.items():
        most, start = run.done + WORK[name], process_time()
        for at, way in planned:
            late = process_time() - start > SECONDS
            full = run.count % 8 == 0 and _memory() - memory > MEMORY  # it takes as long as a call
            if late or full or run.done > most:
                break
            told = way or WAYS[run.count % len(WAYS)]
            # once of each length it is heard whether other code runs there
            with ran.heard() if (name, told) == ("named", "plain") else nullcontext():
                alike = run.look(at, told)
            if not alike:
                run.found.unlike.append(_smaller(run, at, told))
                run.found.how = HOW.get(told, "")
                return True
    return False


@dataclass
class _Heard:
    """The codes that runs beside a graph have run, and the numbers that stand in them."""

    run: _Run
    executed: Executed = field(default_factory=lambda: Executed(is_own))
    _functions: tuple[int, list[FunctionType]] = (-1, [])  # of so many codes

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Hear what the code runs."""
        code = self.run.code
        self.run.code = self.executed.of(code)
        try:
            yield
        finally:
            self.run.code = code

    @property
    def functions(self) -> list[FunctionType]:
        """The functions that ran, looked for again once there are more."""
        count = len(self.executed.codes)
        if self._functions[0] != count:
            self._functions = count, self.executed.functions(self.run.graph.call.roots)
        return self._functions[1]

    def constants(self) -> list[float]:
        """The numbers that what ran has and names."""
        roots = (*self.run.graph.call.roots, *self.functions)
        return constants_in(roots, ran=self.executed.codes)


def _named(run: _Run, letters: list[str], ran: _Heard) -> Iterator[tuple[Lengths, str]]:
    """Lengths that the source names; where they lead to other code, those that this names too.

    Calls with little work come first, so that a long one leaves none of them out.
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


def _pairs(run: _Run, letters: list[str], ran: _Heard) -> Iterator[tuple[Lengths, str]]:
    """Two lengths at a time that the source names."""
    yield from pairs(letters, numbers_of(ran.constants()), several=run.several)


def _is_unlike_where_it_branches(run: _Run, letters: list[str], ran: _Heard) -> bool:
    """Whether the code differs from its graph where one of its comparisons turns out otherwise."""
    at = dict.fromkeys(letters, 3)
    ways = ALL if run.work(run.known(at)) < LITTLE else ALL[:3]
    watch, codes = Watch(), ran.executed.codes
    search = Search(run, watch, letters, ways, run.ones())
    with ran.heard():
        found = search.in_each_way()
    if found is None:
        ran.executed.with_kept(kept_in(run.graph.call.roots))
        marked(ran.functions, watch)
        found = search.where_comparisons_turn()
    if found is not None:
        lengths, way = found
        run.found.unlike.append(_smaller(run, lengths, way))
        run.found.how = HOW.get(way, "")
        return True
    unseen = (
        f"what `{name}` compares turns out as it did in every run: its source is not found"
        for name in watch.unseen(codes)
    )
    told = (
        *search.told(),
        *watch.told(),
        *ran.executed.told(),
        *_untraced(run, watch),
        *unseen,
        *asked_elsewhere(codes),
        *_counted(run, codes, at),
    )
    run.found.where = [Condition(one, "where") for one in told]
    return False


def _untraced(run: _Run, watch: Watch) -> Iterator[str]:
    """That what runs, and did not while it was traced, changes nothing."""
    traced = run.graph.exported.blocks
    if traced is None:
        return
    beyond = [text for place, text in watch.blocks.items() if place not in traced]
    if beyond:
        told = f"code that ran untraced, such as `{beyond[0]}`,"
        yield f"{told} has no effect, as in every run"


def _counted(run: _Run, codes: Iterable[CodeType], at: Lengths) -> Iterator[str]:
    """That what the code counts changes nothing, if two calls that are one leave it otherwise."""
    if not any(map(stores, codes)):
        return
    roots, given = run.graph.call.roots, run.inputs(at, 0)
    run.of_code(given)
    before = state_of(roots)
    run.of_code(given)
    if state_of(roots) != before:
        yield "what the code counts from call to call has no effect, as in every run"


def _memory() -> int:
    """KiB that this process holds; where that is not told, the most it has held."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return pages * resource.getpagesize() // 1024


def _values(
    run: _Run, letters: list[str], constants: Iterable[float], numbers: Sequence[int]
) -> Iterator[tuple[tuple[Tensor, ...], Lengths]]:
    """Inputs that are zero, equal, large, and numbers of the source; positions far along."""
    at = dict.fromkeys(letters, 3)
    places = dict.fromkeys(n for k in numbers for n in (k - 1, k, k + 1) if 0 <= n < 1 << 40)
    for k, scale in enumerate(VALUES):
        yield run.inputs(at, k, scale), at
        yield tuple(x.abs() if x.is_floating_point() else x for x in run.inputs(at, k, scale)), at
        yield tuple(-x.abs() if x.is_floating_point() else x for x in run.inputs(at, k, scale)), at
    given = run.graph.call.inputs
    placed = not all(x.is_floating_point() or x.dtype == torch.bool for x in given)
    for n in islice(places, NAMED):
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
    for real in islice((c for c in constants if 0 < abs(c) < 1e30 and c != int(c)), NAMED):
        for value in (real, 1.01 * real, 0.99 * real):
            yield (
                tuple(
                    torch.full_like(x, value) if x.is_floating_point() else x
                    for x in run.inputs(at, 0)
                ),
                at,
            )


def _smaller(run: _Run, at: Lengths, way: str) -> dict[str, int]:
    """Each length as small as halving shows it to differ still, called in this way."""
    found = dict(at)
    for letter, given in at.items():
        low, high = 0, given
        while high - low > 1:
            middle = (low + high) // 2
            alike = run.look({**found, letter: middle}, way)
            low, high = (middle, high) if alike else (low, middle)
        found[letter] = high
    return found


def _near(got: Tensor, want: Tensor, allowed: float, size: float) -> bool:
    """Whether two results are one up to rounding, which is told by the entries that differ.

    Others may be far larger: what a mask is filled with is on both sides.
    """
    if got.shape != want.shape:
        return False
    if torch.equal(got, want):
        return True
    a, b = (t.double() for t in (got, want))
    if bool((a.isfinite() != b.isfinite()).any()):
        return False
    differ = (a != b) & a.isfinite()
    if not bool(differ.any()):
        return bool(torch.equal(a.nan_to_num(), b.nan_to_num()))
    gap, of = (float(torch.where(differ, x.abs(), 0.0).max()) for x in (a - b, b))
    return gap <= allowed * max(size, of)
