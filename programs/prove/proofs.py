"""Prove laws of graphs: for all sizes within their guards, all inputs, and all parameters.

A proof is about the graph of one call, in evaluation mode and in exact arithmetic.  What it does
not cover (dtypes, kernels, state between calls, training, branches on data) is left to the other
methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import inf
from textwrap import shorten
from time import perf_counter
from typing import Any

from attnproof.documents.verdict_line import Condition, clauses
from attnproof.symbolic.budget import OutOfTime, within
from attnproof.symbolic.faults import Fault
from attnproof.symbolic.terms import free
from attnproof.theorems.laws import Formula

from ..applicable_laws import why_not_at_fault
from ..execution.running import fault_in
from ..finding import DIFFERS_FROM_GRAPH, Counterexample, Finding
from ..loading.source_numbers import numbers_in
from ..reading.applicability import no_formula
from ..subjects import Rotary, Subject
from .branches import is_valid_at
from .comparison import CHANGES, result_changed, result_of, wrong_reading
from .conditions import ONE_CALL, SHORT, Conditions, defined, readings_of
from .gate import gate
from .guards import Binding, satisfied_in_calls
from .least_lengths import Bounds
from .operations import Unread
from .paired_runs import Gate
from .proof_search import decided
from .running import Run, gives_nan, is_broken, whole_variants, witness_of
from .statements import Axes, Graph, bound_letters, forget
from .token_blocks import block_of, on_tokens
from .traced_rotation import Hook, Hooks
from .widening import of_shared_call

MAX_WITNESS_LENGTHS, LONGEST_TRIED = (
    6,
    1100,
)  # lengths named in the source at which a witness is sought
WITNESS_SECONDS = 0.3  # time limit of a proof, in seconds, if small inputs break the law
OTHER_HEADS = (2, 3, 4, 8)
WORST_FIRST = ("internal error", "broken", "undecided", "holds", "not asked")


def _combined(findings: Sequence[Finding]) -> Finding:
    """Combine findings on a law by several formulas of one call: the worst, or all assumptions."""
    worst = min(findings, key=lambda one: WORST_FIRST.index(one.verdict))
    assuming = dict.fromkeys(c for one in findings for c in one.assuming)
    return replace(worst, assuming=tuple(assuming)) if worst.verdict == "holds" else worst


def _with_others(at: Sequence[Mapping[str, int]]) -> Iterator[dict[str, int]]:
    """Yield lengths of which one is as given, and the others are 3.

    >>> list(_with_others([{"r": 77, "n": 2}]))
    [{'r': 77, 'n': 3}, {'r': 3, 'n': 2}]
    """
    for given in at:
        for kept in given:
            yield {name: n if name == kept else 3 for name, n in given.items()}


def _finding(
    law: Formula, verdict: str, why: str, seen: Counterexample | None = None, **more: Any
) -> Finding:
    """Return a finding on a law, with its witness if there is one."""
    if seen is not None:
        more |= {"error": seen.difference, "bound": seen.allowed, "witness": seen}
    return Finding(law.id, "traced", verdict, why, **more)


def _failed(law: Formula, fault: Fault) -> Finding:
    return _finding(law, "internal error", fault.message, traceback=fault.traceback)


class _Dropped(Exception):
    """The code gives another result at a later call, so that nothing is claimed about its graph."""


class Proofs:
    """The proofs about one subject."""

    def __init__(
        self, subject: Subject, calls: Sequence[str], graphs: tuple[Graph, ...], seconds: float
    ) -> None:
        self.subject, self.calls, self.seconds = subject, calls, seconds
        self.graphs = {graph.call.name: graph for graph in graphs}
        self.called = {name: own for own, graph in self.graphs.items() for name in graph.call.names}
        self.letters: Axes = bound_letters(graphs)
        self.wording = Conditions(subject, self.letters)
        self.first = {
            name: result_of(g.call.code, g.call.inputs) for name, g in self.graphs.items()
        }
        self.masked = any(graph.call.masked for graph in graphs)
        self.gates: dict[str, Gate] = {}
        self.dropped: list[str] = []
        self.elsewhere: list[tuple[dict[str, int], Callable[[], Proofs | None]]] = []
        self.widens: Callable[[Graph], Graph] = lambda graph: graph
        self.widened: set[str] = set()

    def run_beside(self) -> None:
        """Run the code beside each graph, once; drop and report graphs of code that changes.

        Called before any law is said to hold, or to be undecided.
        """
        ran: dict[Any, Gate] = {}
        graphs = {name: g for name, g in self.graphs.items() if name not in self.gates}
        for name, graph in graphs.items():
            own = id(graph.exported.program)  # shared by both results of one call
            both = [id(g.exported.program) for g in graphs.values()].count(own) == 2
            ran[own] = ran[own] if own in ran else gate(graph, whole=both)
            found = self.gates[name] = ran[own].for_graph(graph)
            if found.changes:
                self.drop(name, found.changes)

    def widen(self, names: Iterable[str]) -> dict[str, Graph]:
        """Return these graphs, valid wherever the code is proved to be the same function."""
        for name in names:
            if name in self.widened:
                continue
            own = id(self.graphs[name].exported.program)  # shared by both results of one call
            each = [n for n, graph in self.graphs.items() if id(graph.exported.program) == own]
            self.widened.update(each)
            wider = of_shared_call([self.widens(self.graphs[one]) for one in each])
            for one, found in zip(each, wider, strict=True):
                if found.exported.conditions != self.graphs[one].exported.conditions:
                    self.gates.pop(one, None)  # run it at the new lengths too
                self.graphs[one] = found
        return {name: self.graphs[name] for name in names}

    def drop(self, name: str, why: str = CHANGES) -> None:
        """Drop the graph of code whose results change, or differ from those of its term."""
        self.graphs.pop(name, None)
        self.dropped.append(f"`{name}` is not read: {why}")

    def _changed(self, graphs: Mapping[str, Graph]) -> bool:
        """Whether some code now gives another result; its graph is dropped."""
        changed = [
            name
            for name, graph in graphs.items()
            if name in self.graphs
            and result_changed(graph.call.code, graph.call.inputs, self.first[name])
        ]
        for name in changed:
            self.drop(name)
        return bool(changed)

    def _difference(self, law: Formula, graphs: Mapping[str, Graph]) -> Finding | None:
        """Return a finding if the code was seen to differ from its graph, else None.

        The law is then tested on the code itself, first at the lengths where they differ, and where
        one of them is so: with the other lengths of a first difference, such as 2, it may hold.
        """
        self.run_beside()
        if not set(graphs) <= set(self.graphs):
            raise _Dropped
        at = [lengths for name in graphs for lengths in self.gates[name].differs_at]
        at = [lengths for k, lengths in enumerate(at) if lengths not in at[:k]]
        if not at:
            return None
        how = "; ".join(filter(None, dict.fromkeys(self.gates[name].how for name in graphs)))
        where = " and ".join(filter(None, map(self.wording.at, at)))  # empty if no length is free
        at_lengths = ", ".join(filter(None, (where and f"at {where}", how)))
        told = f"{at_lengths}{',' * bool(how)} {DIFFERS_FROM_GRAPH}"
        try:
            seen = witness_of(self._run(law, graphs), at=[*at, *_with_others(at)])
        except Unread:
            seen = None
        if seen is None:
            return _finding(law, "undecided", told)
        return self._broken(law, f"{told}, and breaks the law", seen, sizes=dict(at[0]))

    def _broken(self, law: Formula, why: str, seen: Counterexample, **more: Any) -> Finding:
        """Return a broken finding; undecided if the law itself was inferred from few tokens."""
        few = why_not_at_fault(law.id, self.subject)
        return (
            _finding(law, "undecided", few) if few else _finding(law, "broken", why, seen, **more)
        )

    def _run(self, law: Formula, graphs: Mapping[str, Graph]) -> Run:
        """Return the law applied to the code itself."""
        calls = {name: on_tokens(g.call, g.call.alone) for name, g in graphs.items()}
        operations = sum(g.exported.operations for g in graphs.values())
        rotary = isinstance(self.subject, Rotary)  # tables of angles are rounded where stored
        coarse = sum(g.exported.coarse for g in graphs.values() if rotary)
        return Run(law, calls, self.letters, self.subject, operations, coarse)

    @property
    def guards(self) -> tuple[str, ...]:
        """The ranges of the lengths of the calls, and what is fixed in them."""
        return self.wording.guards(list(self.graphs.values()))

    @property
    def readings(self) -> tuple[Condition, ...]:
        """What was assumed in reading the graphs."""
        return readings_of(self.graphs.values())

    def compare(self) -> None:
        """Drop and report graphs whose terms do not evaluate to their numbers."""
        for name, graph in list(self.graphs.items()):
            wrong = wrong_reading(graph, self.letters)
            if wrong:
                self.drop(name, wrong)

    def findings_on(self, laws: Sequence[Formula]) -> list[Finding]:
        """Return the findings on a law of several calls, which holds only if it holds for each."""
        try:
            asked = [one for law in laws if law.call in self.calls for one in self._cases(law)]
        except Unread as error:
            return [_finding(laws[0], "undecided", str(error))]
        several = self.masked or self.subject.multiple_of > 1
        findings: list[Finding | None] = []
        for law in asked:
            findings.append(self.of(law))
            if several and (findings[-1] is None or findings[-1].verdict == "undecided"):
                break  # one unproved call or case suffices
        asked = asked[: len(findings)]
        open_ = [
            law.call
            for law, one in zip(asked, findings, strict=True)
            if one is None or one.verdict not in ("holds", "not asked")
        ]
        told = f"it is not proved for the other call, {' and '.join(dict.fromkeys(open_))}"
        each: dict[str, list[Finding]] = {}
        for law, one in zip(asked, findings, strict=True):
            if one is not None:
                each.setdefault(law.call, []).append(one)
        return [
            replace(one, verdict="undecided", why=told, assuming=())
            if open_ and one.verdict == "holds"
            else one
            for one in map(_combined, each.values())
        ]

    def _cases(self, law: Formula) -> list[Formula]:
        """Return the cases of a law of code that takes blocks, else the law alone."""
        if self.subject.multiple_of == 1 or not self.graphs:
            return [law]
        return whole_variants(law, self.letters, self.subject)

    def of(self, law: Formula) -> Finding | None:
        """Return the finding on one law; None if its call was not traced."""
        start = perf_counter()
        try:
            found = self._of(law)
        except Exception as error:
            fault = fault_in(self.subject, error)
            if fault is None:
                raise
            found = _failed(law, fault)
        return None if found is None else replace(found, seconds=perf_counter() - start)

    def _of(self, law: Formula) -> Finding | None:
        wanted = {self.called.get(name, name) for name in (law.call, *law.others)}
        if not wanted <= set(self.graphs) or (law.rotates and self._lacks_key()):
            return None
        needed = wanted | ({"key"} & set(self.graphs))
        excuse = no_formula(law, self.subject)
        if excuse:
            return _finding(law, "not asked", excuse)
        graphs = {name: graph for name, graph in self.graphs.items() if name in needed}
        try:
            return self._decided_of(law, graphs)
        except _Dropped:
            return None

    def _decided_of(self, law: Formula, graphs: Mapping[str, Graph]) -> Finding:
        forget(graphs)
        bounds: Bounds = {}
        try:
            # If small inputs break the law, do not wait for a proof: it exists only if the graph
            # differs from the code, and the code breaks the law in any case.
            glance = self._is_broken(law, graphs)
            seconds = min(self.seconds, WITNESS_SECONDS) if glance else self.seconds
            with within(self.seconds if self.masked else inf):
                made = decided(law, graphs, self.letters, self.subject, seconds)
            bounds, claims = made.bounds, made.decision.claims
            verdict, why = made.decision.verdict, next((c.why for c in claims if c.why), "")
            steps = sum(link.steps for claim in claims for link in claim.links)
            for claim in claims:
                if claim.fault is not None:
                    return _failed(law, claim.fault)
            # In parts, or with rewritten lengths, the claim is about other letters.
            short = 0 if bounds or made.in_parts else SHORT
            divisors = tuple(defined(told, short) for claim in claims for told in claim.readings)
            lengths = self.wording.lengths(graphs, bounds)
        except (Unread, OutOfTime) as error:
            verdict, why = "unread", str(error)
        fails = ""
        if verdict == "proved" and divisors and self._gives_nan(law, graphs):
            met, fails = divisors, "does not hold everywhere: elsewhere the code gives NaN"
        elif verdict == "proved" and any(all(g.program.notes.undefined) for g in graphs.values()):
            met = (*divisors, *(c for c in readings_of(graphs.values()) if c.kind == "if"))
            fails = "did not all hold at any lengths that were tried"
        if fails:
            told = " and ".join(dict.fromkeys(one.text for one in met))
            return _finding(law, "undecided", f"it would be proved if {told}, which {fails}")
        if verdict == "proved":
            if not bounds:  # a proof with rewritten lengths covers only those
                graphs = self.widen(graphs)
                lengths = self.wording.lengths(graphs, bounds)
            unlike = self._difference(law, graphs)
            if unlike is not None:
                return unlike
            assumed = self.wording.assumed(law, graphs, self.gates)
            assuming = (*lengths, *divisors, *assumed)
            beyond = self._beyond(law, graphs, clauses(lengths))
            if isinstance(beyond, Finding):
                return beyond
            return _finding(law, "holds", f"{steps} kernel steps", assuming=(*assuming, *beyond))
        return self._unproved(law, graphs, why)

    def _gives_nan(self, law: Formula, graphs: Mapping[str, Graph]) -> bool:
        """Whether the code gives NaN at ordinary inputs, as it does when it divides by 0."""
        try:
            return gives_nan(self._run(law, graphs))
        except Unread:
            return False

    def _beyond(
        self, law: Formula, graphs: Mapping[str, Graph], proved: Sequence[str]
    ) -> Finding | list[Condition]:
        """Return what is known of a proved law where branches lead to other code.

        The code is run there, which may break the law; otherwise say whether it is proved there.
        Not so where calls have other frequencies: a law compares calls of several lengths.
        """
        told = []
        for at, read in self.elsewhere:
            if all(is_valid_at(graph, at) for graph in graphs.values()):
                continue
            seen = None
            if not self._in_long_calls(at):
                with suppress(Unread):
                    seen = witness_of(self._run(law, graphs), at=[at], alone=True)
            where = self.wording.at(at)
            if seen is not None:
                return self._broken(
                    law,
                    f"proved {', '.join(proved)}; elsewhere, as at "
                    f"{where}, other code runs, and breaks it",
                    seen,
                    sizes=dict(at),
                )
            proofs = read()
            found = None if proofs is None else proofs.of(law)
            if found is not None and found.verdict == "holds":
                lengths = clauses(c for c in found.assuming if c.kind == "for")
                known = f"for which it is proved {', '.join(lengths)}"
            else:
                known = f"as at {where}, for which it is not proved"
            told.append(Condition(f"other code runs elsewhere, {known}", "where"))
        return told

    def _in_long_calls(self, at: Mapping[str, int]) -> bool:
        """Whether calls of these lengths have other frequencies than shorter ones."""
        subject = self.subject
        if not isinstance(subject, Rotary) or not subject.longest:
            return False
        return at.get("n", 0) > subject.most

    def hooks(self) -> Hooks | None:
        """Return the rotations of rotary code if all were read, else None."""
        graphs, axes = self.graphs, getattr(self.subject, "axes", 0)
        if "rotate" in graphs:
            self.run_beside()
        if (
            "rotate" not in graphs
            or self._lacks_key()
            or any(self.gates[name].differs_at for name in graphs)
        ):
            return None

        def conditions() -> tuple[Condition, ...]:
            told = (
                *self.wording.lengths(graphs, {}),
                *self.wording.of_calls(graphs, self.gates),
                ONE_CALL,
            )
            return tuple(dict.fromkeys(told))

        def allowed(sizes: Mapping[str, int]) -> bool:
            def spoken(binding: Binding) -> bool:
                return all(s.data[0] in sizes for _, length in binding for s in free(length))

            return all(
                satisfied_in_calls(g.conditions, g.ranges, filter(spoken, program.met), sizes)
                for g, program in ((g.exported, g.program) for g in graphs.values())
            )

        def allows(sizes: Mapping[str, int]) -> bool:  # beside any number of other heads
            return any(allowed({**sizes, "G": heads}) for heads in OTHER_HEADS)

        made = {name: Hook(graph, axes) for name, graph in graphs.items()}
        least: dict[str, int] = {}
        for graph in graphs.values():
            ranges = graph.exported.ranges
            for letter, name in zip("BHT", graph.exported.shapes[0], strict=False):
                if name in ranges:
                    least[letter] = max(int(ranges[name].lower), least.get(letter, 1))
        whole = getattr(self.subject, "whole", False)
        return Hooks(
            made["rotate"],
            made.get("key"),
            whole,
            least,
            partial(forget, graphs),
            conditions,
            allows,
        )

    def _lacks_key(self) -> bool:
        """Whether keys are rotated by separate code that was not read."""
        own = isinstance(self.subject, Rotary) and self.subject.key is not None
        return own and "key" not in self.graphs

    def _is_broken(self, law: Formula, graphs: Mapping[str, Graph]) -> bool:
        """Whether a quick test on a few inputs shows that the code breaks the law.

        Not tested for a pair, whose programs were compared before.
        """
        if self.subject.kind == "pair":
            return False
        try:
            return is_broken(self._run(law, graphs))
        except Unread:
            return False

    def _unproved(self, law: Formula, graphs: Mapping[str, Graph], why: str) -> Finding:
        """Return the finding without a proof: a witness, or lengths where code and graph differ.

        Raises ``_Dropped`` for code that changes.
        """
        seen, excuse = None, ""
        try:
            at = [dict.fromkeys("nr", n) for n in self._lengths_named_in(graphs)]
            seen = witness_of(self._run(law, graphs), after=at)
        except Unread as error:
            excuse = str(error)
        if self._changed(graphs):
            raise _Dropped
        if seen is None:
            unlike = self._difference(law, graphs)
            if unlike is not None:
                return unlike
            return (
                _finding(law, "not asked", excuse)
                if excuse
                else _finding(law, "undecided", self._no_proof(graphs, why))
            )
        why = "the terms of both sides differ, and the code shows it"
        return self._broken(law, why, seen)

    def _lengths_named_in(self, graphs: Mapping[str, Graph]) -> list[int]:
        """Return lengths just above those the code names, beyond which its behaviour may change."""
        named = {
            n // block + 1
            for g in graphs.values()
            for n in numbers_in(g.call.roots)
            for block in (1, block_of(g.call))
        }
        return sorted((n for n in named if 3 < n <= LONGEST_TRIED), reverse=True)[
            :MAX_WITNESS_LENGTHS
        ]

    def _no_proof(self, graphs: Mapping[str, Graph], why: str) -> str:
        """Return why there is no proof, in one line, without the lengthy normal forms."""
        tables = sorted({name for g in graphs.values() for name in g.program.notes.rows})
        if tables:
            return "no proof: to the graph, the rows of a stored table are arbitrary numbers"
        first = why.split(":\n", maxsplit=1)[0].split("; ", maxsplit=1)[0]  # without the advice
        return f"no proof was found: {shorten(first, 160, placeholder=' ...')}"
