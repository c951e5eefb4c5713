"""Tracing some code: its calls become graphs, and each law of its kind is proved of them.

Where a call is refused with all its lengths free, some are fixed; where a branch on a length takes
the code elsewhere, that is traced by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from time import perf_counter
from typing import Any

from torch import Tensor

from attnproof.symbolic.scalars import number_of
from attnproof.verdict_line import Condition

from ..finding import Finding
from ..subjects import Pair, Rotary, Subject, formulas_of
from .calls import Call, calls_of, symbolic
from .comparison import gives_otherwise, result_of
from .exporting import Exported, NotTraced, Trace, exported, in_order, modules_in, read, traced
from .hooks import Hooks
from .nodes import unread_of
from .parts import MOST, lengths_elsewhere, letters_of, resized
from .proofs import Proofs
from .stating import named_apart
from .widening import widened

# Code that goes through the rows of a batch one by one has a graph for one number of rows only.
# So does code that has a number for each head, and no operation that says so.
FIXED = ("", "B", "GH")
SECONDS = 10.0


@dataclass(frozen=True)
class Traced:
    """What came of tracing: findings of the laws, and what the graph is.

    ``why`` is empty, or says why nothing could be traced; ``unread`` names operations without a
    reading.  ``guards`` are the lengths that are fixed and the settings, ``readings`` what was
    assumed in reading the graph as a term.  ``free``: the letters of lengths that are symbolic.
    """

    findings: tuple[Finding, ...] = ()
    operations: int = 0
    guards: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    why: str = ""
    readings: tuple[Condition, ...] = ()
    seconds: float = 0.0
    free: frozenset[str] = frozenset()
    read_hooks: Callable[[], Hooks | None] = field(default=lambda: None, repr=False)

    @cached_property
    def hooks(self) -> Hooks | None:
        """Its rotations, of rotary code; the code is run beside its graph before there are any."""
        return self.read_hooks()


def prove(
    subject: Subject,
    laws: Collection[str] = (),
    tell: Callable[[Finding], None] | None = None,
    seconds: float = SECONDS,
    begin: Callable[[str], None] = lambda _: None,
    fixed: Sequence[str] = FIXED,
) -> Traced:
    """Trace some code and prove the laws of its kind that are named (all, if none is).

    ``tell`` hears of each finding as soon as it is made; ``begin`` of each law that is begun;
    ``seconds`` is how long one proof is looked for; ``fixed``: letters whose lengths are fixed, the
    first that can be read.
    """
    made = calls_of(subject)
    with _evaluated(made):
        start = perf_counter()
        # a proof of a formula that says less than its law is none of the law
        said = [f for f in formulas_of(subject) if not f.unsaid and not f.floats]
        wanted = [f for f in said if not laws or f.id in laws]
        names = {name for law in wanted for name in (law.call, *law.others)}
        names |= {"key"} if isinstance(subject, Rotary) else set()
        calls = [call for call in made if not names.isdisjoint(call.names)]
        first = {call.name: result_of(call.code, call.inputs) for call in calls}
        parts = [[call for call in calls if not call.masked], *([c] for c in calls if c.masked)]
        groups: list[_Group] = []
        findings: list[Finding] = []
        for own in [part for part in parts if part] or [[]]:
            group = _Group(subject, own, fixed, seconds)
            groups.append(group)
            group.finish(first)
            for name in dict.fromkeys(law.id for law in wanted if law.call in group.proofs.calls):
                begin(name)
                for finding in group.proofs.of_all([law for law in wanted if law.id == name]):
                    findings.append(finding)
                    if tell is not None:
                        tell(finding)
        proofs, found = groups[0].proofs, groups[0].reading

        def hooks() -> Hooks | None:
            with _evaluated(made):
                return proofs.hooks()

        return Traced(
            tuple(findings),
            sum(g.exported.operations for g in proofs.graphs.values()),
            proofs.guards,
            tuple(found.missing),
            "; ".join([*found.reasons, *proofs.dropped]),
            proofs.readings,
            perf_counter() - start,
            frozenset(c for c, n in proofs.letters.items() if number_of(n) is None),
            hooks,
        )


class _Group:
    """Calls that are traced with the same letters fixed, the first for which all can be read."""

    def __init__(
        self, subject: Subject, calls: Sequence[Call], fixed: Sequence[str], seconds: float
    ) -> None:
        letters = set("".join(told for call in calls for told in call.letters))
        for way in [way for way in fixed if letters.issuperset(way)] or [""]:
            self.reading, self.way = _Reading(subject, calls, way, seconds), way
            if len(self.reading.proofs.graphs) == len(calls):
                break
        self.calls, self.proofs = calls, self.reading.proofs

    def finish(self, first: Mapping[str, Tensor | None]) -> None:
        """Leave out calls that give something else by now, and say where other code runs."""
        for call in self.calls:
            if gives_otherwise(call.code, call.inputs, first[call.name]):
                self.proofs.drop(call.name)
        self.proofs.elsewhere = self.reading.elsewhere(self.way)
        anew: dict[Any, Trace] = {}
        self.proofs.widens = partial(
            widened,
            traced=lambda call, from_one: _exported(call, self.way, anew, from_one=from_one),
            elsewhere=[at for at, _ in self.proofs.elsewhere[:MOST]],
        )


@contextmanager
def _evaluated(calls: Sequence[Call]) -> Iterator[None]:
    """All modules of some calls in evaluation; afterwards each part is as it was."""
    parts = [
        part
        for call in calls
        for one in (*call.modules, *modules_in(call.code))
        for part in one.modules()
    ]
    before = [(part, part.training) for part in parts]
    try:
        for part in parts:
            part.training = False
        yield
    finally:
        for part, training in reversed(before):
            part.training = training


class _Reading:
    """The graphs of some calls, with the axes of these letters fixed, and why others are none."""

    def __init__(self, subject: Subject, calls: Sequence[Call], fixed: str, seconds: float) -> None:
        graphs: list[tuple[Call, Exported]] = []
        self.missing: dict[str, None] = {}
        self.reasons: list[str] = []
        traces: dict[Any, Trace] = {}
        for call in calls:
            try:
                graph = _exported(call, fixed, traces, from_one=True)
            except NotTraced as error:
                self.reasons.append(f"torch.export refuses `{call.name}`: {error}")
                continue
            missing = unread_of(graph.nodes)
            self.missing |= dict.fromkeys(missing)
            if not missing:
                graphs.append((call, graph))
        if self.missing:
            told = ", ".join(self.missing)
            self.reasons.append(f"without a reading: {told}; the code is run instead")
        names = [name for call in calls for name in call.names]
        apart = named_apart(graphs, by_value=isinstance(subject, Pair))
        for own in apart if isinstance(subject, Pair) else ():
            for program in own.programs:
                program.notes.recognises = True
        self.proofs = Proofs(subject, names, apart, seconds)
        self.proofs.compare()

    def elsewhere(self, fixed: str) -> list[tuple[dict[str, int], Callable[[], Proofs | None]]]:
        """Where other code runs: lengths on the other sides of branches, and the proofs there.

        These are made when they are first asked for; None where it is not traced.
        """
        graphs = list(self.proofs.graphs.values())

        def proofs(k: int, at: dict[str, int]) -> Proofs | None:
            if k >= MOST:
                return None
            calls = [
                resized(g.call, g, at) for g in graphs if set(letters_of(g).values()) <= set(at)
            ]
            return _Reading(self.proofs.subject, calls, fixed, self.proofs.seconds).proofs

        fixed_to = {c: number_of(n) for c, n in self.proofs.letters.items()}
        sides = dict.fromkeys(
            tuple(at.items())
            for g in graphs
            for at in lengths_elsewhere(g)
            if all(fixed_to[c] in (None, n) for c, n in at.items())
        )
        return [(dict(at), cache(partial(proofs, k, dict(at)))) for k, at in enumerate(sides)]


def _exported(call: Call, fixed: str, traces: dict[Any, Trace], *, from_one: bool) -> Exported:
    """The graph of a call; two results of one call are traced together, and kept in ``traces``."""
    free = symbolic(call, fixed)
    if call.pair is None:
        return exported(call.code, call.inputs, free, call.modules, from_one=from_one)
    given, free = in_order(call.inputs, call.place), in_order(free, call.place)
    key = (call.pair, *(x.shape for x in given), from_one)
    if key not in traces:
        traces[key] = traced(call.pair, given, free, call.modules, from_one=from_one)
    return read(traces[key], call.place)
