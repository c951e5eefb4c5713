"""Laws proved of traced code: for all sizes within its guards, all inputs, all parameters.

A proof speaks of the graph in exact arithmetic.  What it cannot see (dtypes, kernels, state
between calls, branches on data) the other legs look at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

from attnproof.symbolic.decision import Decision
from attnproof.symbolic.prove import Effort, decide
from attnproof.symbolic.scalars import number_of
from attnproof.symbolic.unrolling import written_out

from ..programs.finding import Finding
from ..programs.subjects import Rotary, Subject
from . import laws_of_attention, laws_of_others, laws_of_rotary  # noqa: F401 (they register)
from .calls import Call, calls_of, symbolic
from .compared import wrong_reading
from .exporting import Exported, NotTraced, exported
from .guards import possible
from .guards import told as told_at
from .laws import TRACED_LAWS, TracedLaw
from .operations import Unread
from .program import unread
from .running import witness_of
from .stating import Axes, Graph, bound_letters, named_apart, stated

__all__ = ["Traced", "prove"]

# How a proof is looked for: whether maps of one row stay folded, up to which literal length sums
# are written out (pairs of channels are 2), and which part of the time that may take.
WAYS = ((True, 1, 0.4), (False, 2, 0.6))
# Code that goes through the rows of a batch one by one has a graph for one number of rows only.
FIXED = ("", "B")
SECONDS = 10.0


@dataclass(frozen=True)
class Traced:
    """What came of tracing: findings of the laws, and what the graph is.

    ``why`` is empty, or says why nothing could be traced; ``unread`` names operations without a
    reading.  ``guards`` are the conditions of torch.export, ``readings`` what was assumed in
    reading the graph as a term.
    """

    findings: tuple[Finding, ...] = ()
    operations: int = 0
    guards: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    why: str = ""
    readings: tuple[str, ...] = ()
    seconds: float = 0.0


def prove(
    subject: Subject, laws: Collection[str] = (), tell: Callable[[Finding], None] | None = None,
    seconds: float = SECONDS,
) -> Traced:  # fmt: skip
    """Trace some code and prove the laws of its kind that are named (all, if none is).

    ``tell`` hears of each finding as soon as it is made; ``seconds`` is how long one proof is
    looked for.
    """
    start = perf_counter()
    wanted = [law for law in TRACED_LAWS if law.kind == subject.kind
              and (not laws or law.id in laws)]  # fmt: skip
    names = {law.call for law in wanted} | ({"key"} if isinstance(subject, Rotary) else set())
    calls = [call for call in calls_of(subject) if call.name in names]
    for fixed in FIXED:
        found = _Reading(subject, calls, fixed, seconds)
        if len(found.proofs.graphs) == len(calls):
            break
    findings = []
    for law in wanted:
        finding = found.proofs.of(law)
        if finding is not None:
            findings.append(finding)
            if tell is not None:
                tell(finding)
    proofs = found.proofs
    return Traced(
        tuple(findings), sum(g.exported.operations for g in proofs.graphs.values()), proofs.guards,
        tuple(found.missing), "; ".join(found.reasons), proofs.readings, perf_counter() - start,
    )  # fmt: skip


class _Reading:
    """The graphs of some calls, with the axes of these letters fixed, and why others are none."""

    def __init__(
        self, subject: Subject, calls: Sequence[Call], fixed: str, seconds: float
    ) -> None:
        graphs: list[tuple[Call, Exported]] = []
        self.missing: dict[str, None] = {}
        self.reasons: list[str] = []
        for call in calls:
            try:
                graph = exported(call.code, call.inputs, symbolic(call, fixed), call.modules)
            except NotTraced as error:
                self.reasons.append(f"torch.export refuses `{call.name}`: {error}")
                continue
            self.missing |= dict.fromkeys(unread(graph))
            if not unread(graph):
                graphs.append((call, graph))
        if self.missing:
            told = ", ".join(self.missing)
            self.reasons.append(f"without a reading: {told}; the code is run instead")
        self.proofs = _Proofs(subject, named_apart(graphs), seconds)
        self.reasons += self.proofs.disagreements()


class _Proofs:
    """The proofs of one subject."""

    def __init__(self, subject: Subject, graphs: tuple[Graph, ...], seconds: float) -> None:
        self.subject, self.seconds = subject, seconds
        self.graphs = {graph.call.name: graph for graph in graphs}
        self.letters: Axes = bound_letters(graphs)

    @property
    def guards(self) -> tuple[str, ...]:
        """The guards, with letters for the names of torch."""
        told: dict[str, None] = {}
        for graph in self.graphs.values():
            names = {
                length: letter
                for letters, shape in zip(graph.call.letters, graph.exported.shapes, strict=True)
                for letter, length in zip(letters.split(), shape, strict=True)
                if isinstance(length, str)
            }  # fmt: skip
            for symbol, guard in graph.exported.guards:
                # Others are lengths that torch found equal to one of these.
                if symbol in names and number_of(self.letters[names[symbol]]) is None:
                    told[guard.replace(symbol, names[symbol])] = None
        fixed = [f"{letter} = {n!r}" for letter, n in self.letters.items()
                 if number_of(n) is not None]  # fmt: skip
        return (*told, *fixed)

    @property
    def readings(self) -> tuple[str, ...]:
        """What was assumed in reading the graphs."""
        return tuple(dict.fromkeys(
            told for g in self.graphs.values() for program in (g.program, g.folded)
            for told in program.notes.readings
        ))  # fmt: skip

    def disagreements(self) -> list[str]:
        """Graphs whose terms do not give their numbers are dropped, and told."""
        told = []
        for name, graph in list(self.graphs.items()):
            wrong = wrong_reading(graph, self.letters)
            if wrong:
                del self.graphs[name]
                told.append(f"`{name}` is not read: {wrong}")
        return told

    def of(self, law: TracedLaw) -> Finding | None:
        """What is found about one law; None where its call was not traced."""
        needed = {law.call, "key"} & set(self.graphs)
        if law.call not in needed or (law.keys and self._lacks_key()):
            return None
        start = perf_counter()
        excuse = law.needs(self.subject)
        if excuse:
            return Finding(law.id, "traced", "not asked", excuse)
        graphs = {name: self.graphs[name] for name in needed}
        for graph in graphs.values():
            graph.program.met.clear()
            graph.folded.met.clear()
        try:
            decided = self._decided(law, graphs)
            verdict, why = decided.verdict, decided.claims[0].why
            steps = sum(link.steps for link in decided.claims[0].links)
            readings = (*decided.claims[0].readings, *self._lengths(graphs))
        except Unread as error:
            verdict, why, steps, readings = "unread", str(error), 0, ()
        if verdict == "proved":
            told = "for all inputs, parameters, and sizes within its guards"
            return Finding(
                law.id, "traced", "holds", f"{told}; {steps} kernel steps",
                assuming=(*self.guards, *self.readings, *readings),
                seconds=perf_counter() - start,
            )  # fmt: skip
        return self._unproved(law, graphs, why, perf_counter() - start)

    def _lengths(self, graphs: Mapping[str, Graph]) -> tuple[str, ...]:
        """The conditions on the lengths that a law uses; raises where none meet them."""
        used = [(g.exported.conditions, g.exported.program.range_constraints,
                 (*g.program.met, *g.folded.met)) for g in graphs.values()]  # fmt: skip
        named = [(conditions, {str(s): r for s, r in ranges.items()}, met)
                 for conditions, ranges, met in used]  # fmt: skip
        if not possible(named):
            raise Unread("no lengths were found at which the law meets the guards")
        return tuple(dict.fromkeys(t for c, _, met in used for t in told_at(c, met)))

    def _lacks_key(self) -> bool:
        """Whether keys are turned by code of their own that was not read."""
        own = isinstance(self.subject, Rotary) and self.subject.key is not None
        return own and "key" not in self.graphs

    def _decided(self, law: TracedLaw, graphs: Mapping[str, Graph]) -> Decision:
        """The decision, in the first way in which a proof is found."""
        for folded, longest, part in WAYS:
            statement = stated(law, graphs, self.letters, self.subject, folded=folded)
            effort = Effort(refuting=False, prove=part * self.seconds)
            with written_out(longest):
                decided = decide(statement, effort=effort)
            if decided.verdict == "proved":
                break
        return decided

    def _unproved(
        self, law: TracedLaw, graphs: Mapping[str, Graph], why: str, seconds: float
    ) -> Finding:
        calls = {name: graph.call.code for name, graph in graphs.items()}
        operations = sum(g.exported.operations for g in graphs.values())
        try:
            seen = witness_of(law, calls, self.letters, self.subject, operations)
        except Unread as error:
            return Finding(law.id, "traced", "not asked", str(error), seconds=seconds)
        if seen is None:
            return Finding(law.id, "traced", "undecided", self._no_proof(graphs, why),
                           seconds=seconds)  # fmt: skip
        return Finding(
            law.id, "traced", "broken", "the terms of both sides differ, and the code shows it",
            error=seen.difference, bound=seen.allowed, witness=seen, seconds=seconds,
        )  # fmt: skip

    def _no_proof(self, graphs: Mapping[str, Graph], why: str) -> str:
        """Why there is no proof, in a line; two normal forms of a screen each help nobody."""
        tables = sorted({name for g in graphs.values() for name in g.program.notes.rows})
        if tables:
            return "no proof: the rows of a stored table are any numbers to the graph"
        short = " ".join(why.split(":\n", maxsplit=1)[0].split())
        return f"no proof was found: {short[:160]}"
