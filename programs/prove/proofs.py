"""Laws proved of graphs: for all sizes within their guards, all inputs, all parameters.

A proof speaks of the graph of one call, in evaluation and in exact arithmetic.  What it cannot see
(dtypes, kernels, state between calls, training, branches on data) the other methods look at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

from attnproof.symbolic.composition import NotComposed, decide_composition
from attnproof.symbolic.decision import Decision
from attnproof.symbolic.faults import Fault
from attnproof.symbolic.normal_form.sums import USUAL, written_out
from attnproof.symbolic.prove import Effort, decide, ranges_of
from attnproof.symbolic.scalars import number_of
from attnproof.symbolic.terms import Term, free
from attnproof.theorems.laws import Formula
from attnproof.verdict_line import Condition, clauses

from ..applicable_laws import read_of_few
from ..finding import UNLIKE, Finding, Seen, speaks_of_gradients
from ..identify.applicability import no_formula
from ..running import fault_in
from ..source_numbers import asks_device, numbers_in
from ..subjects import Pair, Rotary, Subject
from .calls import Call
from .comparison import CHANGES, gives_otherwise, result_of, wrong_reading
from .gate import Gate, gate
from .guards import Binding, alike, meets, possible, ranges_told
from .guards import told as told_at
from .hooks import Hook, Hooks
from .least import Bounds, bounds_of, from_least, from_one
from .operations import Unread
from .parts import stands_at
from .program import Way
from .running import gives_none, is_broken, witness_of
from .stating import LIKE, Axes, Graph, bound_letters, composed, reorders, stated
from .widening import of_one_call
from .widths import widths_told

# How a proof is looked for: how programs are read, up to which literal length sums are written out
# (pairs of channels are 2), and which part of the time that may take.
WAYS: tuple[tuple[Way, int, float], ...] = (("folded", 1, 0.4), ("program", 2, 0.6))
IN_PARTS = 0.5  # of a program that can be cut into parts, before it is looked at as a whole
VALUED = 0.6  # of pairs: sums over axes of small stored tables are written out as well
# What a graph is of.  Code that counts its calls, keeps things from one to the next, or asks how it
# is called may run another one elsewhere; the probes of state look for that.  Nothing is traced
# under autocast, which code can ask for.
ONE_CALL = Condition("every float32 call in evaluation without autocast runs this graph", "where")
# A graph says nothing of derivatives: what is detached is in it by its value.
ON_CPU = Condition("calls are on the CPU: the code asks for the device", "where")
BY_VALUE = Condition("this is said of values, not of gradients", "where")
ORDERED = ("composition", "identity-at-zero")  # laws that rotate what was rotated
IN_ORDER = Condition("its channels are put back in the order in which they went in", "where")
NAMED, LONGEST_TRIED = 6, 1100  # lengths named in the source at which a witness is looked for
BESIDE_A_WITNESS = 0.3  # seconds in which a proof is looked for, where small inputs break the law
HEADS_BESIDE = (2, 3, 4, 8)
WORST = ("internal error", "broken", "undecided", "holds", "not asked")
SHORT = 60  # characters of a formula that stands in a line


def _defined(told: str, short: int = SHORT) -> Condition:
    """That a number is not 0, or not negative; where it is long, the same of all such numbers."""
    if len(told) <= short:
        return Condition(told, "if")
    if told.endswith("≠ 0"):
        return Condition("no denominator is 0", "if")
    if told.endswith("≥ 0"):
        return Condition("no root is of a negative number", "if")
    if told.endswith("> 0"):
        return Condition("every logarithm is of a number above 0", "if")
    return Condition(told, "if")


def _always_alike(graph: Graph, met: Sequence[Binding]) -> tuple[str, ...]:
    """Letters of lengths that a law keeps equal wherever it calls a program."""
    names = {str(length): letter for letter, length, _ in graph.axes}
    each = [set(alike({names[s]: t for s, t in binding if s in names})) for binding in met]
    return tuple(sorted(set.intersection(*each))) if each else ()


def _of_one_call(findings: Sequence[Finding]) -> Finding:
    """What is found of a law by several formulas of one call: the worst, or all that is assumed."""
    worst = min(findings, key=lambda one: WORST.index(one.verdict))
    assuming = dict.fromkeys(c for one in findings for c in one.assuming)
    return replace(worst, assuming=tuple(assuming)) if worst.verdict == "holds" else worst


def _found(law: Formula, verdict: str, why: str, seen: Seen | None = None, **more: Any) -> Finding:
    """What is found of a law, with its witness where there is one."""
    if seen is not None:
        more |= {"error": seen.difference, "bound": seen.allowed, "witness": seen}
    return Finding(law.id, "traced", verdict, why, **more)


def _failed(law: Formula, fault: Fault) -> Finding:
    return _found(law, "internal error", fault.told, traceback=fault.traceback)


def _forget(graphs: Mapping[str, Graph]) -> None:
    """Forget in all readings of these graphs what an earlier law met."""
    for graph in graphs.values():
        for program in graph.programs:
            program.forget()


class _Dropped(Exception):
    """The code gives something else at a later call: nothing is said of its graph."""


class Proofs:
    """The proofs of one subject."""

    def __init__(
        self, subject: Subject, calls: Sequence[str], graphs: tuple[Graph, ...], seconds: float
    ) -> None:
        self.subject, self.calls, self.seconds = subject, calls, seconds
        self.graphs = {graph.call.name: graph for graph in graphs}
        self.asking: dict[int, tuple[Call, bool]] = {}  # by the id of the call, which is held
        self.letters: Axes = bound_letters(graphs)
        self.first = {
            name: result_of(g.call.code, g.call.inputs) for name, g in self.graphs.items()
        }
        self.gates: dict[str, Gate] = {}
        self.dropped: list[str] = []
        self.in_parts = False  # whether the law at hand was proved part by part
        self.bounds: Bounds = {}  # lengths that are written by others in the statement at hand
        self.elsewhere: list[tuple[dict[str, int], Callable[[], Proofs | None]]] = []
        self.widens: Callable[[Graph], Graph] = lambda graph: graph
        self.widened: set[str] = set()

    def run_beside(self) -> None:
        """Run the code beside each graph, once; graphs of code that changes are dropped, and told.

        Nothing is said to hold before, nor to be undecided.
        """
        ran: dict[Any, Gate] = {}
        graphs = {name: g for name, g in self.graphs.items() if name not in self.gates}
        for name, graph in graphs.items():
            own = id(graph.exported.program)  # that of both results of one call
            both = [id(g.exported.program) for g in graphs.values()].count(own) == 2
            found = self.gates[name] = ran[own] if own in ran else gate(graph, whole=both)
            ran[own] = found
            if found.changes:
                self.drop(name, found.changes)

    def widen(self, names: Iterable[str]) -> dict[str, Graph]:
        """These graphs, of all lengths at which the code is shown to be the same function."""
        for name in names:
            if name in self.widened:
                continue
            own = id(self.graphs[name].exported.program)  # that of both results of one call
            each = [n for n, graph in self.graphs.items() if id(graph.exported.program) == own]
            self.widened.update(each)
            wider = of_one_call([self.widens(self.graphs[one]) for one in each])
            for one, found in zip(each, wider, strict=True):
                if found.exported.conditions != self.graphs[one].exported.conditions:
                    self.gates.pop(one, None)  # it is run at those lengths as well
                self.graphs[one] = found
        return {name: self.graphs[name] for name in names}

    def drop(self, name: str, why: str = CHANGES) -> None:
        """Nothing is shown of code that gives something else at a later call, or than its term."""
        self.graphs.pop(name, None)
        self.dropped.append(f"`{name}` is not read: {why}")

    def _changed(self, graphs: Mapping[str, Graph]) -> bool:
        """Whether some code gives something else by now; its graph is dropped."""
        changed = [
            name
            for name, graph in graphs.items()
            if name in self.graphs
            and gives_otherwise(graph.call.code, graph.call.inputs, self.first[name])
        ]
        for name in changed:
            self.drop(name)
        return bool(changed)

    def _at(self, lengths: Mapping[str, int]) -> str:
        return ", ".join(f"{self.lettered(letter)} = {n}" for letter, n in lengths.items())

    def _unlike(self, law: Formula, graphs: Mapping[str, Graph]) -> Finding | None:
        """What is found where the code is seen to do other than its graph; None where it is not.

        The law is asked of the code itself, at these lengths first.
        """
        self.run_beside()
        if not set(graphs) <= set(self.graphs):
            raise _Dropped
        at = [lengths for name in graphs for lengths in self.gates[name].unlike]
        at = [lengths for k, lengths in enumerate(at) if lengths not in at[:k]]
        if not at:
            return None
        how = "; ".join(filter(None, dict.fromkeys(self.gates[name].how for name in graphs)))
        where = " and ".join(filter(None, map(self._at, at)))  # none, where no length is free
        told = (
            f"{', '.join(filter(None, (where and f'at {where}', how)))}{',' * bool(how)} {UNLIKE}"
        )
        try:
            seen = self._witness(law, graphs, at=at)
        except Unread:
            seen = None
        if seen is None:
            return _found(law, "undecided", told)
        return self._broken(law, f"{told}, and breaks the law", seen, sizes=dict(at[0]))

    def _broken(self, law: Formula, why: str, seen: Seen, **more: Any) -> Finding:
        """Broken; undecided where it is a law of what was read of few tokens, and no fault."""
        few = read_of_few(law.id, self.subject)
        return _found(law, "undecided", few) if few else _found(law, "broken", why, seen, **more)

    def _witness(self, law: Formula, graphs: Mapping[str, Graph], **where: Any) -> Seen | None:
        """Inputs for which the code itself breaks the law; raises where a length is fixed."""
        calls = {name: graph.call.alone for name, graph in graphs.items()}
        operations = sum(g.exported.operations for g in graphs.values())
        return witness_of(law, calls, self.letters, self.subject, operations, **where)

    @property
    def guards(self) -> tuple[str, ...]:
        """The ranges of the lengths that the code is called with, and what is fixed of a call."""
        graphs = self.graphs.values()
        own = [(g.exported.ranges, [self._own(g)]) for g in graphs]
        settings = (c.text for g in graphs for c in g.call.where)
        return tuple(
            dict.fromkeys(
                map(
                    self.lettered,
                    (
                        *settings,
                        *ranges_told(own),
                        *self._fixed(graphs),
                        *alike(self.letters),
                    ),
                )
            )
        )

    def _own(self, graph: Graph) -> Binding:
        """The letters of a call for the lengths of its graph."""
        return tuple(
            (length, self.letters[letter])
            for letter, length, _ in graph.axes
            if isinstance(length, str)
        )

    def _fixed(self, graphs: Iterable[Graph]) -> tuple[str, ...]:
        letters = dict.fromkeys(c for g in graphs for told in g.call.letters for c in told.split())
        for letter in getattr(self.subject, "single", ""):
            letters.pop(letter, None)  # the code has no such axis
        return tuple(
            f"{c} = {self.letters[c]!r}"
            for c in letters
            if c.isalpha() and number_of(self.letters[c]) is not None
        )

    def lettered(self, told: str) -> str:
        """Lengths in the letters in which the call is printed: T tokens or queries, S keys.

        Another length of a kind, as that of a batch put behind one, is B′ beside B.
        """
        if isinstance(self.subject, Pair):  # its calls were told in these letters
            return told
        names = {"r": "T", "n": "S"} if "r" in self.letters else {"n": "T"}
        for letter, like in LIKE.items():
            if letter not in self.letters:
                names[letter] = f"{names.get(like, like)}′"
        if "r" not in self.letters:
            names["m"] = "T″"
        return re.sub(r"\b[Anrm]\b", lambda found: names.get(found[0], found[0]), told)

    @property
    def readings(self) -> tuple[Condition, ...]:
        """What was assumed in reading the graphs."""
        return self._read(self.graphs.values())

    def _read(self, graphs: Iterable[Graph]) -> tuple[Condition, ...]:
        return tuple(
            dict.fromkeys(
                told for g in graphs for program in g.programs for told in program.notes.readings
            )
        )

    def compare(self) -> None:
        """Graphs whose terms do not give their numbers are dropped, and told."""
        for name, graph in list(self.graphs.items()):
            wrong = wrong_reading(graph, self.letters)
            if wrong:
                self.drop(name, wrong)

    def of_all(self, laws: Sequence[Formula]) -> list[Finding]:
        """What is found about a law of several calls: it holds only if it holds of each."""
        asked = [law for law in laws if law.call in self.calls]
        findings = [self.of(law) for law in asked]
        open_ = [
            law.call
            for law, one in zip(asked, findings, strict=True)
            if one is None or one.verdict not in ("holds", "not asked")
        ]
        told = f"of the other call, {' and '.join(open_)}, it is not proved"
        each: dict[str, list[Finding]] = {}
        for law, one in zip(asked, findings, strict=True):
            if one is not None:
                each.setdefault(law.call, []).append(one)
        return [
            replace(one, verdict="undecided", why=told, assuming=())
            if open_ and one.verdict == "holds"
            else one
            for one in map(_of_one_call, each.values())
        ]

    def of(self, law: Formula) -> Finding | None:
        """What is found about one law; None where its call was not traced."""
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
        wanted = {law.call, *law.others}
        if not wanted <= set(self.graphs) or (law.rotates and self._lacks_key()):
            return None
        needed = wanted | ({"key"} & set(self.graphs))
        excuse = no_formula(law, self.subject)
        if excuse:
            return _found(law, "not asked", excuse)
        graphs = {name: graph for name, graph in self.graphs.items() if name in needed}
        try:
            return self._decided_of(law, graphs)
        except _Dropped:
            return None

    def _decided_of(self, law: Formula, graphs: Mapping[str, Graph]) -> Finding:
        _forget(graphs)
        self.bounds = {}
        try:
            decided = self._decided(law, graphs)
            claims = decided.claims
            verdict, why = decided.verdict, next((c.why for c in claims if c.why), "")
            steps = sum(link.steps for claim in claims for link in claim.links)
            for claim in claims:
                if claim.fault is not None:
                    return _failed(law, claim.fault)
            # In a part, or with other lengths, it is said of other letters.
            short = 0 if self.bounds or self.in_parts else SHORT
            divisors = tuple(_defined(told, short) for claim in claims for told in claim.readings)
            lengths = self._lengths(graphs)
        except Unread as error:
            verdict, why = "unread", str(error)
        if verdict == "proved" and divisors and self._gives_none(law, graphs):
            told = " and ".join(dict.fromkeys(one.text for one in divisors))
            return _found(
                law,
                "undecided",
                f"it would be proved if {told}, which is not so "
                "everywhere: there the code gives NaN",
            )
        if verdict == "proved" and any(all(g.program.notes.undefined) for g in graphs.values()):
            met = (*divisors, *(c for c in self._read(graphs.values()) if c.kind == "if"))
            told = " and ".join(dict.fromkeys(one.text for one in met))
            return _found(
                law,
                "undecided",
                f"it would be proved if {told}, not all of which is "
                "so at any lengths that were tried",
            )
        if verdict == "proved":
            if not self.bounds:  # what is written by least lengths is shown of those alone
                graphs = self.widen(graphs)
                lengths = self._lengths(graphs)
            unlike = self._unlike(law, graphs)
            if unlike is not None:
                return unlike
            assuming = (*lengths, *divisors, *self._assumed(law, graphs))
            beyond = self._beyond(law, graphs, clauses(lengths))
            if isinstance(beyond, Finding):
                return beyond
            return _found(law, "holds", f"{steps} kernel steps", assuming=(*assuming, *beyond))
        return self._unproved(law, graphs, why)

    def _gives_none(self, law: Formula, graphs: Mapping[str, Graph]) -> bool:
        """Whether the code gives NaN at ordinary inputs, as where it divides by 0."""
        calls = {name: graph.call.alone for name, graph in graphs.items()}
        try:
            return gives_none(law, calls, self.letters, self.subject)
        except Unread:
            return False

    def _beyond(
        self, law: Formula, graphs: Mapping[str, Graph], proved: Sequence[str]
    ) -> Finding | list[Condition]:
        """What is found of a proved law where branches take the code elsewhere.

        There the code is run, which may break the law; else it is told whether it is proved there.
        """
        told = []
        for at, read in self.elsewhere:
            if all(stands_at(graph, at) for graph in graphs.values()):
                continue
            try:
                seen = self._witness(law, graphs, at=[at], alone=True)
            except Unread:
                seen = None
            where = self._at(at)
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
                told.append(
                    Condition(
                        f"other code runs elsewhere, of which it is proved {', '.join(lengths)}",
                        "where",
                    )
                )
            else:
                told.append(
                    Condition(
                        f"other code runs elsewhere, as at {where}, of which it is not proved",
                        "where",
                    )
                )
        return told

    def _assumed(self, law: Formula, graphs: Mapping[str, Graph]) -> tuple[Condition, ...]:
        """What a proof assumes beside its lengths: values, what was read as what, which calls."""
        kind = self.subject.kind
        by_value = kind == "pair" or speaks_of_gradients(law.id, kind)
        said = (BY_VALUE,) if by_value else ()
        if law.id in ORDERED and reorders(self.subject):
            said = (IN_ORDER,)
        return tuple(dict.fromkeys((*self._of_calls(graphs), *said, ONE_CALL)))

    def _asks_device(self, graph: Graph) -> bool:
        """Whether the code of a graph asks on which device it runs; read once for all laws."""
        known = self.asking.get(id(graph.call))
        if known is None:
            known = self.asking[id(graph.call)] = graph.call, asks_device(graph.call.roots)
        return known[1]

    def _of_calls(self, graphs: Mapping[str, Graph]) -> tuple[Condition, ...]:
        told = [c for g in graphs.values() for c in (*g.call.where, *widths_told(g.exported))]
        told += [ON_CPU for g in graphs.values() if self._asks_device(g)]
        told += [c for name in graphs for c in self.gates[name].where]
        raising = (self.gates[name].raises for name in graphs)
        told += [
            Condition(f"the code does not raise, as it does at {self._at(lengths)}", "where")
            for lengths in raising
            if lengths
        ]
        return *told, *self._read(graphs.values())

    def hooks(self) -> Hooks | None:
        """The rotations of rotary code, where all were read; None elsewhere."""
        graphs, axes = self.graphs, getattr(self.subject, "axes", 0)
        if "rotate" in graphs:
            self.run_beside()
        if (
            "rotate" not in graphs
            or self._lacks_key()
            or any(self.gates[name].unlike for name in graphs)
        ):
            return None

        def forget() -> None:
            _forget(graphs)

        def conditions() -> tuple[Condition, ...]:
            told = (*self._lengths(graphs), *self._of_calls(graphs), ONE_CALL)
            return tuple(dict.fromkeys(told))

        def allowed(sizes: Mapping[str, int]) -> bool:
            def spoken(binding: Binding) -> bool:
                return all(s.data[0] in sizes for _, length in binding for s in free(length))

            return all(
                meets(g.conditions, g.ranges, filter(spoken, program.met), sizes)
                for g, program in ((g.exported, g.program) for g in graphs.values())
            )

        def allows(sizes: Mapping[str, int]) -> bool:  # beside any number of other heads
            return any(allowed({**sizes, "G": heads}) for heads in HEADS_BESIDE)

        made = {name: Hook(graph, axes) for name, graph in graphs.items()}
        least: dict[str, int] = {}
        for graph in graphs.values():
            ranges = graph.exported.ranges
            for letter, name in zip("BHT", graph.exported.shapes[0], strict=False):
                if name in ranges:
                    least[letter] = max(int(ranges[name].lower), least.get(letter, 1))
        whole = getattr(self.subject, "whole", False)
        return Hooks(made["rotate"], made.get("key"), whole, least, forget, conditions, allows)

    def _lengths(self, graphs: Mapping[str, Graph]) -> tuple[Condition, ...]:
        """The conditions on the lengths that a law uses; raises where none meet them."""
        as_told = from_one(self.bounds)
        used = [
            (
                g.exported.conditions,
                g.exported.ranges,
                list(
                    dict.fromkeys(
                        tuple((symbol, as_told(length)) for symbol, length in one)
                        for p in g.programs
                        for one in p.met
                    )
                ),
            )
            for g in graphs.values()
        ]
        if not possible(used):
            raise Unread("no lengths were found at which the law meets the guards")
        longest: dict[Term, int] = {}
        for g in graphs.values():
            for program in g.programs:
                for length, most in program.notes.longest.items():
                    told_length = as_told(length)
                    longest[told_length] = min(most, longest.get(told_length, most))
        told = dict.fromkeys(ranges_told([(r, met) for _, r, met in used], longest))
        told |= dict.fromkeys(t for c, r, met in used for t in told_at(c, met, r))
        told |= dict.fromkeys(
            t
            for g, (_, _, met) in zip(graphs.values(), used, strict=True)
            for t in _always_alike(g, met)
        )
        told |= dict.fromkeys(alike(self.letters) if "r" in self.letters else ())
        told |= dict.fromkeys(self._fixed(graphs.values()))
        return tuple(Condition(self.lettered(t), "for") for t in told)

    def _lacks_key(self) -> bool:
        """Whether keys are rotated by code of their own that was not read."""
        own = isinstance(self.subject, Rotary) and self.subject.key is not None
        return own and "key" not in self.graphs

    def _decided(self, law: Formula, graphs: Mapping[str, Graph]) -> Decision:
        """The decision, in the first way in which a proof is found.

        Where small inputs break the law no proof is waited for: only a graph that is not what the
        code does has one, and then the code breaks the law as well.
        """
        letters: Axes = self.letters
        seconds = self.seconds
        if self._is_broken(law, graphs):
            seconds = min(seconds, BESIDE_A_WITNESS)
        in_parts = self._in_parts(law, graphs, seconds)
        if in_parts is not None:
            return in_parts
        for way, longest, part in (*WAYS, *self._valued(graphs)):
            statement = stated(law, graphs, letters, self.subject, way=way)
            if letters is self.letters and ranges_of(statement, statement.claims.values())[0]:
                _forget(graphs)
                letters = self._at_least(graphs)
                statement = stated(law, graphs, letters, self.subject, way=way)
            effort = Effort(refuting=False, whole=part * seconds)
            with written_out(longest):
                decided = decide(statement, effort=effort)
            if decided.verdict == "proved":
                break
        return decided

    def _in_parts(
        self, law: Formula, graphs: Mapping[str, Graph], seconds: float
    ) -> Decision | None:
        """The law proved of each part of a program that can be cut; None where it is not.

        It says the same of the whole, which is looked at as a whole next.
        """
        self.in_parts = False
        if len(graphs) != 1:
            return None
        (graph,) = graphs.values()
        effort = Effort(refuting=False, whole=IN_PARTS * seconds)
        try:
            with written_out(1):
                whole = composed(law, graph, self.letters, self.subject)
                decided = None if whole is None else decide_composition(whole, effort)
        except (NotComposed, Unread):
            decided = None
        if decided is None or decided.verdict != "proved":
            _forget(graphs)  # what was met in parts is no matter of the whole
            return None
        self.in_parts = True
        return decided

    def _is_broken(self, law: Formula, graphs: Mapping[str, Graph]) -> bool:
        """Whether the code breaks the law at a glance, at few of the inputs of a witness.

        Not asked of a pair, whose programs were compared before.
        """
        if self.subject.kind == "pair":
            return False
        calls = {name: graph.call.alone for name, graph in graphs.items()}
        operations = sum(g.exported.operations for g in graphs.values())
        try:
            return is_broken(law, calls, self.letters, self.subject, operations)
        except Unread:
            return False

    def _at_least(self, graphs: Mapping[str, Graph]) -> Axes:
        """Letters by sizes from 1 on, whose form shows how long the guards keep them.

        Of a pair alone, whose graphs are called with these letters and no others.
        """
        if self.subject.kind != "pair":
            return self.letters
        self.bounds = bounds_of(self.letters, graphs.values())
        longer = from_least(self.bounds)
        return {letter: longer(length) for letter, length in self.letters.items()}

    def _valued(self, graphs: Mapping[str, Graph]) -> list[tuple[Way, int, float]]:
        """The way in which small stored tables are read as the numbers that they hold, of a pair.

        What is proved of them as any numbers says more, and is tried before.
        """
        if self.subject.kind != "pair":
            return []
        small = [
            n
            for g in graphs.values()
            for name in g.exported.small
            for n in g.exported.values[name].shape
        ]
        return [("valued", min(max(small), USUAL), VALUED)] if small else []

    def _unproved(self, law: Formula, graphs: Mapping[str, Graph], why: str) -> Finding:
        """What is found where no proof is: a witness at few lengths, or where the graph is another.

        Raises ``_Dropped`` for code that changes.
        """
        seen, excuse = None, ""
        try:
            at = [dict.fromkeys("nr", n) for n in self._named_in(graphs)]
            seen = self._witness(law, graphs, after=at)
        except Unread as error:
            excuse = str(error)
        if self._changed(graphs):
            raise _Dropped
        if seen is None:
            unlike = self._unlike(law, graphs)
            if unlike is not None:
                return unlike
            return (
                _found(law, "not asked", excuse)
                if excuse
                else _found(law, "undecided", self._no_proof(graphs, why))
            )
        why = "the terms of both sides differ, and the code shows it"
        return self._broken(law, why, seen)

    def _named_in(self, graphs: Mapping[str, Graph]) -> list[int]:
        """Lengths that the code names, and one more: what it does beyond may break a law."""
        named = {n + 1 for g in graphs.values() for n in numbers_in(g.call.roots)}
        return sorted((n for n in named if 3 < n <= LONGEST_TRIED), reverse=True)[:NAMED]

    def _no_proof(self, graphs: Mapping[str, Graph], why: str) -> str:
        """Why there is no proof, in a line; two normal forms of a screen each help nobody."""
        tables = sorted({name for g in graphs.values() for name in g.program.notes.rows})
        if tables:
            return "no proof: the rows of a stored table are any numbers to the graph"
        short = " ".join(why.split(":\n", maxsplit=1)[0].split())
        return f"no proof was found: {short[:160]}"
