"""Trace the calls of a program, and prove the laws of its kind for their graphs.

If a call cannot be traced with all lengths symbolic, some are fixed; where a branch on a length
leads to other code, that code is traced separately.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from attnproof.documents.verdict_line import Condition
from attnproof.symbolic.scalars import number_of
from attnproof.theorems.laws import Formula

from ..execution.running import seeded, uncompiled
from ..finding import Finding
from ..subjects import Pair, Rotary, Subject, provable
from .branches import TRACED_SIDES, lengths_elsewhere, letters_of, resized
from .calls import Call, calls_of, symbolic
from .comparison import result_changed, result_of
from .exporting import Exported, Trace, in_order, read, traced
from .nodes import unread_of
from .proofs import Proofs
from .reached_arrays import NotTraced, modules_in
from .statements import graphs_of
from .token_blocks import in_blocks
from .traced_rotation import Hooks
from .widening import widened

# Code that loops over the rows of a batch has a graph for one batch size only.  Likewise code that
# holds one number per head, where no operation relates that to the number of heads.
FIXED = ("", "B", "GH")
SECONDS = 10.0
# What was traced, or why it was not; with the code, so that no other has its id.
_Traces = dict[Any, tuple[Callable[..., Any], Trace | NotTraced]]


@dataclass(frozen=True)
class Traced:
    """The result of tracing: findings of the laws, and facts about the graph.

    ``why`` is empty, or says why nothing could be traced; ``unread`` names operations that have no
    reading.  ``guards`` are the fixed lengths and the settings, ``readings`` the assumptions made
    in reading the graph as a term.  ``free``: the letters of symbolic lengths.
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
        """The rotations of rotary code; computing them first compares the code with its graph."""
        return self.read_hooks()


def prove(
    subject: Subject,
    laws: Collection[str] = (),
    tell: Callable[[Finding], None] | None = None,
    seconds: float = SECONDS,
    begin: Callable[[str], None] = lambda _: None,
    fixed: Sequence[str] = FIXED,
    part: int | None = None,
) -> Traced:
    """Trace a program and prove the named laws of its kind (all laws, if none is named).

    ``tell`` is called with each finding as soon as it is made, ``begin`` with the name of each law
    before it is tried; ``seconds`` limits the search for one proof; ``fixed`` lists choices of
    letters whose lengths to fix, of which the first that can be read is used; ``part``: trace only
    this one of :func:`parts_of`.
    """
    made = _calls(subject)
    with uncompiled(), _evaluated(made):
        start = perf_counter()
        wanted = [f for f in provable(subject) if not laws or f.id in laws]
        parts = _parts(subject, made, wanted)
        parts = parts if part is None else parts[part : part + 1]
        first = {c.name: result_of(c.code, c.inputs) for own in parts for c in own}
        groups: list[_Group] = []
        findings: list[Finding] = []
        for own in parts or [[]]:
            group = _Group(subject, own, fixed, seconds)
            groups.append(group)
            group.finish(first)
            for name in dict.fromkeys(law.id for law in wanted if law.call in group.proofs.calls):
                begin(name)
                for finding in group.proofs.findings_on([law for law in wanted if law.id == name]):
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
            "; ".join(dict.fromkeys(why for group in groups for why in group.reasons)),
            proofs.readings,
            perf_counter() - start,
            frozenset(c for c, n in proofs.letters.items() if number_of(n) is None),
            hooks,
        )


def parts_of(subject: Subject, laws: Collection[str] = ()) -> int:
    """Return how many parts :func:`prove` can be split into, each of which traces its own calls."""
    made = _calls(subject)
    return len(_parts(subject, made, [f for f in provable(subject) if not laws or f.id in laws]))


def _calls(subject: Subject) -> tuple[Call, ...]:
    """Return the calls of a program; their random inputs are the same in every process."""
    with torch.random.fork_rng(devices=[]):
        seeded(0)
        return tuple(in_blocks(call, subject.multiple_of) for call in calls_of(subject))


def _parts(subject: Subject, made: Sequence[Call], wanted: Sequence[Formula]) -> list[list[Call]]:
    """Return the calls that these laws make; each call with a mask is a part of its own."""
    names = {name for law in wanted for name in (law.call, *law.others)}
    names |= {"key"} if isinstance(subject, Rotary) else set()
    calls = [call for call in made if not names.isdisjoint(call.names)]
    parts = [[call for call in calls if not call.masked], *([c] for c in calls if c.masked)]
    return [part for part in parts if part]


class _Group:
    """Calls traced with the same letters fixed: the first choice that lets all of them be read."""

    def __init__(
        self, subject: Subject, calls: Sequence[Call], fixed: Sequence[str], seconds: float
    ) -> None:
        letters = set("".join(told for call in calls for told in call.letters))
        self.traces: _Traces = {}
        for way in [way for way in fixed if letters.issuperset(way)] or [""]:
            self.reading, self.way = _Reading(subject, calls, way, seconds, self.traces), way
            if len(self.reading.proofs.graphs) == len(calls):
                break
        self.calls, self.proofs = calls, self.reading.proofs

    @property
    def reasons(self) -> list[str]:
        """Why calls of the group were not read."""
        return [*self.reading.reasons, *self.proofs.dropped]

    def finish(self, first: Mapping[str, Tensor | None]) -> None:
        """Drop calls whose result has changed since the start, and find where other code runs."""
        for call in self.calls:
            if result_changed(call.code, call.inputs, first[call.name]):
                self.proofs.drop(call.name)
        self.proofs.elsewhere = self.reading.elsewhere(self.way)
        self.proofs.widens = partial(
            widened,
            traced=lambda call, from_one: _exported(call, self.way, self.traces, from_one=from_one),
            elsewhere=[at for at, _ in self.proofs.elsewhere[:TRACED_SIDES]],
        )


@contextmanager
def _evaluated(calls: Sequence[Call]) -> Iterator[None]:
    """Put all modules of these calls into evaluation mode; restore each submodule afterwards."""
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
    """The graphs of some calls with the axes of these letters fixed, and why others have none."""

    def __init__(
        self,
        subject: Subject,
        calls: Sequence[Call],
        fixed: str,
        seconds: float,
        traces: _Traces,
    ) -> None:
        self.traces = traces
        graphs: list[tuple[Call, Exported]] = []
        self.missing: dict[str, None] = {}
        self.reasons: list[str] = []
        for call in calls:
            try:
                graph = _exported(call, fixed, traces, from_one=True)
            except NotTraced as error:
                self.reasons.append(error.told(call.name))
                continue
            missing = unread_of(graph.nodes)
            self.missing |= dict.fromkeys(missing)
            if not missing:
                graphs.append((call, graph))
        if self.missing:
            told = ", ".join(self.missing)
            self.reasons.append(f"without a reading: {told}; the code is run instead")
        names = [name for call in calls for name in call.names]
        apart = graphs_of(graphs, by_value=isinstance(subject, Pair))
        for own in apart if isinstance(subject, Pair) else ():
            for program in own.programs:
                program.notes.recognises = True
        self.proofs = Proofs(subject, names, apart, seconds)
        self.proofs.compare()

    def elsewhere(self, fixed: str) -> list[tuple[dict[str, int], Callable[[], Proofs | None]]]:
        """Return lengths beyond branches, each with a function that gives the proofs made there.

        Proofs are made when first asked for; the function gives None past the first
        ``TRACED_SIDES`` lengths.
        """
        graphs = list(self.proofs.graphs.values())

        def proofs(k: int, at: dict[str, int]) -> Proofs | None:
            if k >= TRACED_SIDES:
                return None
            calls = [
                resized(g.call, g, at) for g in graphs if set(letters_of(g).values()) <= set(at)
            ]
            seconds = self.proofs.seconds
            return _Reading(self.proofs.subject, calls, fixed, seconds, self.traces).proofs

        fixed_to = {c: number_of(n) for c, n in self.proofs.letters.items()}
        sides = dict.fromkeys(
            tuple(at.items())
            for g in graphs
            for at in lengths_elsewhere(g)
            if all(fixed_to[c] in (None, n) for c, n in at.items())
        )
        return [(dict(at), cache(partial(proofs, k, dict(at)))) for k, at in enumerate(sides)]


def _exported(call: Call, fixed: str, traces: _Traces, *, from_one: bool) -> Exported:
    """Return the graph of a call; ``traces`` keeps what the calls of one group were traced to.

    Two results of one call are traced once, and so is a side of a branch that is first proved to be
    the same function, and else proved by itself.
    """
    code: Callable[..., Any] = call.code
    place: int | None = None
    given, free = call.inputs, symbolic(call, fixed)
    if call.pair is not None:
        code, place = call.pair, call.place
        given, free = in_order(given, place), in_order(free, place)
    key = (id(code), free, *((x.shape, x.dtype) for x in given), from_one)
    if key not in traces:
        found: Trace | NotTraced
        try:
            found = traced(code, given, free, call.modules, from_one=from_one)
        except NotTraced as error:
            found = error.with_traceback(None)
        traces[key] = (code, found)
    _, found = traces[key]
    if isinstance(found, NotTraced):
        raise type(found)(*found.args)
    return read(found, place)
