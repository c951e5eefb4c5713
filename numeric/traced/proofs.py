"""Laws proved of traced code: for all sizes within its guards, all inputs, all parameters.

A proof speaks of the graph of one call, in evaluation and in exact arithmetic.  What it cannot see
(dtypes, kernels, state between calls, training, branches on data) the other legs look at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter

from attnproof.symbolic.decision import Decision
from attnproof.symbolic.prove import Effort, decide
from attnproof.symbolic.scalars import number_of
from attnproof.symbolic.unrolling import written_out

from ..programs.finding import Finding
from ..programs.subjects import Rotary, Subject
from . import laws_of_attention, laws_of_others, laws_of_rotary  # noqa: F401 (they register)
from .calls import Call, calls_of, symbolic
from .compared import CHANGES, gives_otherwise, result_of, wrong_reading
from .exporting import Exported, NotTraced, exported, modules_in
from .guards import Binding, alike, possible
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
# So does code that has a number for each head, and no operation that says so.
FIXED = ("", "B", "GH")
SECONDS = 10.0
# What a graph is of.  Code that counts its calls, keeps things from one to the next, or asks how it
# is called may run another one elsewhere; the probes of state look for that.
ONE_CALL = "every call, in evaluation, runs the graph that was traced"


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
    calls = calls_of(subject)
    with _evaluated(calls):
        return _proved(subject, laws, tell, seconds, calls)


@contextmanager
def _evaluated(calls: Sequence[Call]) -> Iterator[None]:
    """All modules of some calls in evaluation; afterwards each part is as it was."""
    parts = [part for call in calls for one in (*call.modules, *modules_in(call.code))
             for part in one.modules()]  # fmt: skip
    before = [(part, part.training) for part in parts]
    try:
        for part in parts:
            part.training = False
        yield
    finally:
        for part, training in reversed(before):
            part.training = training


def _proved(
    subject: Subject, laws: Collection[str], tell: Callable[[Finding], None] | None,
    seconds: float, made: Sequence[Call],
) -> Traced:  # fmt: skip
    start = perf_counter()
    wanted = [law for law in TRACED_LAWS if law.kind == subject.kind
              and (not laws or law.id in laws)]  # fmt: skip
    names = {law.call for law in wanted} | ({"key"} if isinstance(subject, Rotary) else set())
    calls = [call for call in made if call.name in names]
    letters = set("".join(told for call in calls for told in call.letters))
    first = {call.name: result_of(call.code, call.inputs) for call in calls}
    for fixed in filter(letters.issuperset, FIXED):
        found = _Reading(subject, calls, fixed, seconds)
        if len(found.proofs.graphs) == len(calls):
            break
    found.drop([call for call in calls
                if gives_otherwise(call.code, call.inputs, first[call.name])])  # fmt: skip
    proofs, findings = found.proofs, []
    for name in dict.fromkeys(law.id for law in wanted):
        for finding in proofs.of_all([law for law in wanted if law.id == name]):
            findings.append(finding)
            if tell is not None:
                tell(finding)
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
        names = [call.name for call in calls]
        self.proofs = _Proofs(subject, names, named_apart(graphs), seconds)
        self.reasons += self.proofs.disagreements()

    def drop(self, changing: Sequence[Call]) -> None:
        """Nothing is shown of code that gives something else at a later call."""
        for call in changing:
            self.proofs.graphs.pop(call.name, None)
            self.reasons.append(f"`{call.name}` is not read: {CHANGES}")


def _always_alike(graph: Graph, met: Sequence[Binding]) -> tuple[str, ...]:
    """Letters of lengths that a law keeps equal wherever it calls a program."""
    names = {
        str(length): letter
        for letters, shape in zip(graph.call.letters, graph.exported.shapes, strict=True)
        for letter, length in zip(letters.split(), shape, strict=True)
    }  # fmt: skip
    each = [set(alike({names[s]: t for s, t in binding if s in names})) for binding in met]
    return tuple(sorted(set.intersection(*each))) if each else ()


class _Proofs:
    """The proofs of one subject."""

    def __init__(
        self, subject: Subject, calls: Sequence[str], graphs: tuple[Graph, ...], seconds: float
    ) -> None:  # fmt: skip
        self.subject, self.calls, self.seconds = subject, calls, seconds
        self.graphs = {graph.call.name: graph for graph in graphs}
        self.letters: Axes = bound_letters(graphs)

    @property
    def guards(self) -> tuple[str, ...]:
        """The guards, with letters for the names of torch."""
        told: dict[str, None] = {}
        for graph in self.graphs.values():
            told |= dict.fromkeys(graph.call.where)
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
        return (*told, *fixed, *alike(self.letters))

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

    def of_all(self, laws: Sequence[TracedLaw]) -> list[Finding]:
        """What is found about a law of several calls: it holds only if it holds of each."""
        asked = [law for law in laws if law.call in self.calls]
        findings = [self.of(law) for law in asked]
        open_ = [law.call for law, one in zip(asked, findings, strict=True)
                 if one is None or one.verdict not in ("holds", "not asked")]  # fmt: skip
        told = f"of the other call, {' and '.join(open_)}, it is not proved"
        return [
            replace(one, verdict="undecided", why=told, assuming=())
            if open_ and one.verdict == "holds" else one
            for one in findings if one is not None
        ]  # fmt: skip

    def of(self, law: TracedLaw) -> Finding | None:
        """What is found about one law; None where its call was not traced."""
        needed = {law.call, "key"} & set(self.graphs)
        if law.call not in needed or (law.turns and self._lacks_key()):
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
            claims = decided.claims
            verdict, why = decided.verdict, next((c.why for c in claims if c.why), "")
            steps = sum(link.steps for claim in claims for link in claim.links)
            readings = (*(r for claim in claims for r in claim.readings), *self._lengths(graphs))
        except Unread as error:
            verdict, why, steps, readings = "unread", str(error), 0, ()
        if verdict == "proved":
            told = "for all inputs, parameters, and sizes within its guards"
            return Finding(
                law.id, "traced", "holds", f"{told}; {steps} kernel steps",
                assuming=(ONE_CALL, *self.guards, *self.readings, *readings),
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
        told = dict.fromkeys(t for c, _, met in used for t in told_at(c, met))
        told |= dict.fromkeys(t for g, (_, _, met) in zip(graphs.values(), used, strict=True)
                              for t in _always_alike(g, met))  # fmt: skip
        return tuple(told)

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
