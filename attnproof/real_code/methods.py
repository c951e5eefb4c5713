"""The methods by which code is examined, each of which reports its findings as events.

The events are listed in :mod:`attnproof.real_code.checking`, which runs the methods in turn.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import torch

from ..documents.verdict_line import Condition
from ..numeric.devices import chosen
from ..programs.call_forms.choices import checked_under_choices, choices
from ..programs.calls.supplied_inputs import mask_prefix, why_inconclusive
from ..programs.declarations import parse
from ..programs.execution.calling import restored_settings
from ..programs.execution.draw import Draw
from ..programs.execution.running import CodeFault, fault_in, limited
from ..programs.finding import AT_OTHER_LENGTHS, Finding
from ..programs.identified_mask import mask_as_read, with_mask, with_mask_of
from ..programs.signatures.grammar import parse as parse_line
from ..programs.subject import adapted_as
from ..programs.subjects import provable
from ..theorems.laws import laws_of
from ..theorems.laws.masks import CAUSAL
from .records import RUN_OF_MORE, FindingRecord, IdentityRecord
from .request import DTYPES, IN_A_ROW, raised, settings_of

if TYPE_CHECKING:
    from attnproof.symbolic.faults import Fault

    from ..programs.prove import Traced
    from ..programs.subjects import Subject
    from .comparison_outcomes import OwnRuns
    from .critical_lengths import Places
    from .request import CodeRequest
    from .running import Event, Tell

DECLARED_CAUSAL = "attention:causal=true"
PROOF = 1 / 6  # share of a law's limit for its proof; runs and witnesses need time as well


@dataclass
class Methods:
    """The methods for one request: the listener, and the verdicts on each law so far.

    ``code``: the subject as the current method gets it, with the mask that was ``read`` if laws are
    to be examined with it.  ``here``: the laws that are examined now.  A method is given up if
    ``IN_A_ROW`` laws in a row do not finish, as in a separate process.  ``unasked``: whether a
    result that is not finite is still to be reported although no law was asked about it.
    """

    subject: Subject
    asked: CodeRequest
    report: Tell
    thing: Any
    how: Mapping[str, Any]
    seconds: float
    reads: bool
    read: str = field(init=False)
    verdicts: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    in_a_row: int = 0
    unasked: bool = True
    lengthened: set[str] = field(default_factory=set)  # laws that were examined at more tokens
    code: Subject = field(init=False)
    here: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.code, self.read = self.subject, self.asked.as_read
        for law, method, verdict in self.asked.known:
            self.verdicts.setdefault(law, set()).add((method, verdict))
        self.lengthened.update(self.asked.lengthened)
        every = frozenset(law.id for law in laws_of(self.subject.kind))
        self.here = every & set(self.asked.laws) if self.asked.laws else every
        known: set[tuple[str, str]] = set().union(*self.verdicts.values())
        ran = ("measured", "exact")
        self.ran = next(
            (one for one in ran if one in self.asked.methods or (one, "holds") in known), ""
        )

    def masked(self) -> Subject:
        """Return the code with the mask that was read, if laws are to be examined with it."""
        return with_mask(self.subject, self.read * self.reads)

    def tried(self) -> frozenset[str]:
        """Return the laws, of those that were asked for, of which a proof is tried."""
        return self.here & {formula.id for formula in provable(self.masked())}

    def watch(self) -> None:
        """Find what the code compares, before laws are examined.

        If this never ends, the first law is blamed, and a further process does without.
        """
        self.code = self.masked()
        if self.ran and (laws := self.laws(self.ran)):
            self.begins(self.ran, laws[0])
            with _quiet(), restored_settings():
                _ = self.own

    def run(self, method: str, **how: Any) -> Event:
        """Run a method, or "longer"; return the event that reports its end."""
        start, why, fault = perf_counter(), "", None
        self.in_a_row = 0
        laws = len(laws_of(self.subject.kind)) if method == "traced" else 1
        seconds = 0.0 if method in ("measured", "exact") else laws * self.seconds
        try:
            with _quiet(), restored_settings(), limited(seconds):
                self.code = self.masked()
                getattr(self, method)(**how)
        except (Exception, SystemExit) as error:  # noqa: BLE001 (any code may raise anything)
            why, fault = self.why(error)
            why = why.removeprefix("the code ") if fault is None else why
            if method == "longer":
                self.leave_open(why)
        return {
            "event": "method",
            "method": self.ran if method == "longer" else method,
            "why": why,
            "seconds": perf_counter() - start,
            "traceback": fault.traceback if fault is not None else "",
        }

    def tell(self, event: Event) -> None:
        """Report an event.

        If the code was supplied with an input, its findings say so.  If a broken law may depend on
        that input, it is undecided.
        """
        if event["event"] == "found":
            finding = event["finding"]
            law = finding["law"]
            if finding["verdict"] != "not asked":
                given = mask_prefix(self.subject, law)
                if finding["verdict"] == "broken" and (why := why_inconclusive(self.subject, law)):
                    given = f"{why}: "
                    finding = {**finding, "verdict": "undecided", "witness": None}
                finding = {**finding, "why": f"{given}{finding['why']}"}
                event = {**event, "finding": finding}
        self.pass_on(event)

    def pass_on(self, event: Event) -> None:
        """Report an event as it is, and keep the verdict if it is a finding."""
        if event["event"] == "found":
            told = event["finding"]
            self.verdicts.setdefault(told["law"], set()).add((told["method"], told["verdict"]))
        self.report(event)

    def begins(self, method: str, law: str = "", **more: str) -> None:
        """Report that a method begins, with one law or with all."""
        self.tell({"event": "begins", "method": method, "law": law, **more})

    def found(self, one: Finding) -> None:
        """Report a finding; one that holds says what holds of every run."""
        if one.method != "traced" and one.verdict == "holds":
            one = replace(one, assuming=(*one.assuming, *self.of_every_run))
        told = FindingRecord.of(one).model_dump(mode="json")
        self.tell({"event": "found", "finding": told})

    @cached_property
    def of_every_run(self) -> tuple[Condition, ...]:
        """What was converted, and the numbers that the code received in every run."""
        told = parse_line(self.subject.line or "-> 1")
        arrays = {c for one in told.arrays for c in one.letters}
        given = {c: n for c, n in self.subject.lengths_given.items() if c not in arrays}
        found = [Condition(f"{c} = {n}", "for") for c, n in given.items()]
        clauses = filter(None, self.subject.converted.split("; "))
        return (*found, *(Condition(one, "where") for one in clauses))

    def why(self, error: BaseException) -> tuple[str, Fault | None]:
        """Return why a law or a method did not finish, and the fault if it is attnproof's own."""
        if isinstance(error, CodeFault):
            return f"it had not ended after {self.seconds:g} s", None
        fault = fault_in(self.subject, error)
        return (raised(error) if fault is None else fault.message), fault

    def called(self, line: str) -> Subject:
        """Return the same code, adapted to another call."""
        return adapted_as(
            self.thing,
            line,
            kind=self.subject.kind,
            name=self.subject.name,
            declared=parse(self.asked.declared) if self.asked.declared else None,
            **{"settings": settings_of(self.asked.settings), **self.how},
        )

    @property
    def draw(self) -> Draw:
        """The source of inputs, in the first dtype that was asked for."""
        dtype = getattr(torch, self.asked.dtypes[0])
        return Draw(self.asked.seed, dtype, str(chosen(self.asked.device)))

    def laws(self, method: str) -> tuple[str, ...]:
        """Return the laws of this kind of code that this method has not examined yet.

        If a previous process examined some, the others are sorted from cheap to expensive.
        """
        from ..programs.measure.inputs import input_size

        known = {law for law, told in self.verdicts.items() if method in {by for by, _ in told}}
        laws = [law for law in laws_of(self.code.kind) if law.id in self.here - known]
        if any(by == method for _, by, _ in self.asked.known):
            laws.sort(key=lambda law: input_size(law, self.code))
        return tuple(law.id for law in laws)

    def measured(self) -> None:
        """Run the probes, law by law; a law is undecided if its code leaves by sys.exit.

        Code that was converted to float32 is run in the formats of its weights as well, in which it
        may take other branches.
        """
        from ..programs.measure.base import CAST, FINITE
        from ..programs.measure.examine import examine
        from ..programs.measure.inputs import lengths_past_constants

        asked = self.asked
        if isinstance(self.code, CAST):  # its source is searched once for all laws
            self.code = replace(self.code, beyond=lengths_past_constants(self.code))
        formats = (*asked.dtypes, *(one for one in self.subject.stored if one in DTYPES))
        draws = {name: self.draw.cast(getattr(torch, name)) for name in formats}
        if self.unasked and asked.laws and FINITE not in asked.laws and not asked.known:
            # reported first if it is broken, even though it was not asked for
            self.unasked = False
            with restored_settings():
                unasked = examine(self.code, draws.values(), (FINITE,))
            for one in unasked:
                if one.verdict == "broken":
                    self.found(one)
        for law in self.laws("measured"):
            for name, draw in draws.items():
                find = partial(examine, draws=(draw,), laws=(law,))
                self.law(law, "measured", name, draw.device, find)

    def exact(self) -> None:
        """Run the same code on numbers of a finite field, law by law, unless the law is proved."""
        from ..programs.exact import exact

        seed = self.asked.seed
        for law in self.laws("exact"):
            known = self.verdicts.get(law, set())
            if ("traced", "holds") in known and {verdict for _, verdict in known} == {"holds"}:
                why = "it is proved of the same code, and holds where it was measured"
                self.found(Finding(law, "exact", "not asked", why, seed=seed))
                continue
            find = partial(exact, laws=(law,), seed=seed, named=law in self.asked.laws)
            self.law(law, "exact", "residues", "cpu", find)

    def law(
        self,
        law: str,
        method: str,
        dtype: str,
        device: str,
        find: Callable[[Subject], tuple[Finding, ...]],
    ) -> None:
        """Examine one law by one method, also under alternative calls.  Raises ``CodeFault``."""
        self.begins(method, law)
        start, code = perf_counter(), self.code
        code, met = (code, None) if self.own is None else self.own.hearing(code)
        if law == CAUSAL.id and law in self.asked.laws and not self.read:
            code = with_mask(code, DECLARED_CAUSAL)  # who asks for it by name expects it
        others = None if self.thing is None or self.asked.call else self.called

        def alike(other: Subject) -> tuple[Finding, ...]:
            return find(with_mask_of(code, other))

        try:
            # state that the code sets in one law must not reach the next
            with restored_settings(), limited(self.seconds):
                found = checked_under_choices(find(code), alike, choices(code, others))
            self.in_a_row = 0
        except (Exception, SystemExit) as error:  # noqa: BLE001 (any code may raise anything)
            why, fault = self.why(error)
            self.in_a_row += isinstance(error, CodeFault)
            found = (
                Finding(
                    law,
                    method,
                    "undecided" if fault is None else "internal error",
                    why,
                    seed=self.asked.seed,
                    dtype=dtype,
                    device=device,
                    seconds=perf_counter() - start,
                    traceback=fault.traceback if fault is not None else "",
                ),
            )
        for one in found:
            self.found(one)
            if (
                met is not None
                and self.own is not None
                and (one.law, one.verdict) == (law, "holds")
                and self.own.is_whole(met)
            ):
                self.own.add(law, met)
        if self.in_a_row == IN_A_ROW:
            raise CodeFault

    def longer(self) -> None:
        """Examine laws that hold without a proof at other lengths that the code compares with.

        If the code may not be run in floating point, comparisons are only reported as conditions.
        """
        from .longer_inputs import at_longer

        names = self.not_lengthened
        begin = partial(self.begins, self.ran, does=RUN_OF_MORE)
        exact = [law for law in names if ("exact", "holds") in self.verdicts[law]]
        for one in at_longer(self.code, names, self.draw, begin, self.ran, exact, self.places):
            self.found(one)
        if self.ran == "measured":
            from .calls_at_lengths import holds_unless

            left = [law for law in names if _is_run_alone(self.verdicts[law])]
            for one in holds_unless(self.ways, left, self.draw) if left else ():
                self.found(one)
        self.lengthened.update(names)
        self.pass_on({"event": "lengthened", "laws": names})

    @property
    def not_lengthened(self) -> list[str]:
        """The laws that hold without a proof and were not examined at more tokens."""
        return [
            law
            for law, known in self.verdicts.items()
            if _is_run_alone(known) and law in self.here - self.lengthened
        ]

    def leave_open(self, why: str) -> None:
        """Report that exact laws are undecided where the code may take another path, and why."""
        for law in self.not_lengthened:
            if ("exact", "holds") in self.verdicts[law]:
                told = f"{AT_OTHER_LENGTHS}: {why}"
                self.found(Finding(law, "measured", "undecided", told, seed=self.asked.seed))

    @cached_property
    def places(self) -> Places:
        """The lengths at which the code takes other paths."""
        from .critical_lengths import lengths_of

        return lengths_of(self.code, self.own)

    @cached_property
    def own(self) -> OwnRuns | None:
        """What the code compares in the runs of each law; None if it does not end when watched.

        A process that follows one which was killed does not try: that may have been the reason.
        """
        from .comparison_outcomes import OwnRuns

        with suppress(Exception), limited(self.seconds):  # code may raise anything
            return None if self.asked.known else OwnRuns.watched(self.code)
        return None

    @cached_property
    def ways(self) -> tuple[str, ...]:
        """The ways of calling in which the code gives other results."""
        from .calls_at_lengths import ways_that_differ

        return ways_that_differ(self.code, self.draw, [one.at for one in self.places.longer])

    def traced(self, parts: Iterable[int] | None = None) -> None:
        """Prove laws of the graphs of operations, in parts that trace their own calls, or in some.

        The first part reports the graph.
        """
        laws = self.laws("traced")
        for part in range(self.parts_of(laws)) if parts is None else parts:
            self.proved(laws, part)

    def parts_of(self, laws: Sequence[str]) -> int:
        """Return how many parts the proof of these laws has, at least one."""
        from ..programs.prove import parts_of

        return max(1, parts_of(self.masked(), laws))

    def proved(self, laws: Sequence[str], part: int) -> None:
        """Prove laws of the graphs of one part, each of which is traced once for all laws."""
        from ..programs.prove import prove

        self.begins("traced")
        told: list[Finding] = []

        def heard(one: Finding) -> None:
            told.append(one)
            self.found(one)

        begin, seconds = partial(self.begins, "traced"), PROOF * self.asked.limit
        traced = prove(self.code, laws, heard, begin=begin, seconds=seconds, part=part)
        for one in traced.findings:
            if one not in told:
                self.found(one)
        self.tell(
            {
                "event": "traced",
                "operations": int(traced.operations),
                "why": str(traced.why),
                "guards": [str(guard) for guard in traced.guards],
                "unread": [str(name) for name in traced.unread],
            }
        )
        if self.asked.card and not part:
            self.card(traced)

    def card(self, traced: Traced) -> None:
        """Check the laws of encodings on the graph."""
        self.begins("traced", does="being checked for its card")
        if traced.hooks is None:
            why = traced.why or "its graph does not represent it at all lengths"
            if self.code.kind != "rotary":
                why = f"it is {self.code.kind} code; only rotary code has a card"
            self.tell({"event": "card", "why": why, "laws": []})
            return
        from .card import card_of

        for law in card_of(traced.hooks):
            self.tell({"event": "card", "why": "", "laws": [law]})

    def identity(self) -> None:
        """Identify the code, and remark on what is unusual given what it says of itself."""
        from ..programs.identify import identify
        from ..programs.identify.remarks import remarks_on

        self.begins("identity")
        found = identify(self.code, self.draw)
        remarks = [asdict(one) for one in remarks_on(self.code, found, self.thing)]
        told = IdentityRecord.of(found)
        if found.traceback:
            told = told.model_copy(update={"why": found.parts[0].evidence})
        self.tell({"event": "identity", **told.model_dump(mode="json"), "remarks": remarks})
        self.read = mask_as_read(self.code.kind, found.parts)


def _is_run_alone(known: set[tuple[str, str]]) -> bool:
    """Whether a law holds where it was run, is broken nowhere, and has no proof."""
    methods = {method for method, verdict in known if verdict == "holds"}
    return bool(methods) and "traced" not in methods and "broken" not in {v for _, v in known}


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence warnings of the code, and what torch writes about its graphs.

    pytest listens to torch's logger of traces too, and would show it with every failure.
    """
    traces = logging.getLogger("torch.__trace")
    others = [one for one in traces.handlers if not type(one).__module__.startswith("torch.")]
    for one in others:
        traces.removeHandler(one)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for one in others:
            traces.addHandler(one)
