"""Looking at code by every method, each by itself: what fails in one loses nothing of another.

What is found is told as events, plain dictionaries, as soon as it is found: another process may
listen, and go on when this one is killed.

==========  ====================================================================
event       further keys
==========  ====================================================================
adapted     name, kind, adapted (how the code is called), file
begins      method, law (empty where a method looks at all laws at once)
found       finding, as :class:`~attnproof.programs.finding.Finding` has it
traced      operations, guards, unread, why
card        why (there is none; empty if there is one), laws (one or more of them)
identity    kind, sentence, parts, answers, numbers, remarks
printed     lines, first (what the code printed; told by a process of its own at its end)
files       files (what the code loaded, with digests; told by a process of its own)
method         method, why (it did not come to its end; empty if it did), seconds, traceback
==========  ====================================================================
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import torch

from ..numeric.devices import chosen
from ..programs.as_read import is_to_be_read, mask_as_read, with_mask, with_mask_of
from ..programs.calling import given_back
from ..programs.choices import choices, weighed
from ..programs.declarations import declares, parse
from ..programs.draw import Draw
from ..programs.finding import Finding
from ..programs.running import CodeFault, fault_in, limited
from ..programs.subject import adapted_as
from ..programs.supplied_inputs import under, unsaid
from ..theorems.laws import laws_of
from .records import FindingRecord, IdentityRecord
from .request import IN_A_ROW, raised, settings_of

if TYPE_CHECKING:
    from attnproof.symbolic.faults import Fault

    from ..programs.prove import Traced
    from ..programs.subjects import Subject
    from .request import Asked

PROOF = 1 / 6  # of the limit of a law is for its proof; code is run and a witness found beside it
Event = dict[str, Any]
Tell = Callable[[Event], None]


def adapted(thing: Any, asked: Asked, name: str, file: str, tell: Tell) -> Subject:
    """The code with its one call.

    Raises ``NoAdapter`` if none fits, ``OtherKind``, ``SignatureError`` where its call is told and
    is another, ``NoSetting``, or what the code raises.
    """
    declared = parse(asked.declared) if asked.declared else None
    of = declares(asked.declared) if asked.declared else ()
    kind = asked.kind or (of[0] if len(of) == 1 else None)  # mask: and attention: declare alike
    subject = adapted_as(
        thing,
        asked.call,
        kind=kind,
        declared=declared,
        name=name,
        **({"settings": settings_of(asked.settings)} if asked.settings else {}),
    )
    tell(
        {
            "event": "adapted",
            "name": name,
            "kind": subject.kind,
            "adapted": subject.adapted,
            "file": file,
        }
    )
    return subject


def look(
    subject: Subject,
    asked: Asked,
    tell: Tell,
    thing: Any = None,
    *,
    seconds: float = 0.0,
    **how: Any,
) -> None:
    """Look at the code by the methods that are asked for; ``thing`` is what was adapted.

    ``seconds`` of the processor are what a law may take where no other process ends it, 0 for any;
    ``how``: what was told of the code in Python.
    """
    at = _Look(subject, asked, tell, thing, how, seconds, read=asked.as_read)
    for law, method, verdict in asked.known:
        at.verdicts.setdefault(law, set()).add((method, verdict))
    whole = {"identity": seconds, "traced": seconds * len(laws_of(subject.kind)), "longer": seconds}
    order, reads = asked.methods, is_to_be_read(subject, asked.laws)
    if "identity" in order and reads:
        order = ("identity", *(method for method in order if method != "identity"))
    known: set[tuple[str, str]] = set().union(*at.verdicts.values())
    ran = next(
        (one for one in ("measured", "exact") if one in order or (one, "holds") in known), ""
    )
    methods: dict[str, Callable[[], None]] = {
        "measured": at.measured,
        "identity": at.identity,
        "exact": at.exact,
        "traced": at.traced,
        "longer": partial(at.longer, ran),
    }
    for method in (*order, *["longer"] * bool(ran)):
        start, why, fault = perf_counter(), "", None
        at.in_a_row = 0
        try:
            with _quiet(), given_back(), limited(whole.get(method, 0.0)):
                at.code = with_mask(subject, at.read * reads)
                methods[method]()
        except (Exception, SystemExit) as error:  # noqa: BLE001 (any code may raise anything)
            why, fault = at.why(error)
            why = why.removeprefix("the code ") if fault is None else why
        if method == "longer" and not why:
            continue
        at.tell(
            {
                "event": "method",
                "method": ran if method == "longer" else method,
                "why": why,
                "seconds": perf_counter() - start,
                "traceback": fault.traceback if fault is not None else "",
            }
        )


@dataclass
class _Look:
    """One look at code: what is asked of it, who hears, and the verdicts of each law so far.

    ``code``: the subject, as the method at work is given it, with the mask that was ``read``.  A
    method by which ``IN_A_ROW`` laws come to no end is given up, as where it is a process.
    """

    subject: Subject
    asked: Asked
    hear: Tell
    thing: Any
    how: Mapping[str, Any]
    seconds: float
    read: str
    verdicts: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    in_a_row: int = 0
    code: Subject = field(init=False)

    def tell(self, event: Event) -> None:
        """Tell an event; of what is found the verdict is kept.

        What is found of code that was given something says so.  What is broken may hang on that:
        then it is undecided.
        """
        if event["event"] == "found":
            finding = event["finding"]
            law = finding["law"]
            if finding["verdict"] != "not asked":
                given = under(self.subject, law)
                if finding["verdict"] == "broken" and (why := unsaid(self.subject, law)):
                    given = f"{why}: "
                    finding = {**finding, "verdict": "undecided", "witness": None}
                finding = {**finding, "why": f"{given}{finding['why']}"}
                event = {**event, "finding": finding}
            self.verdicts.setdefault(law, set()).add((finding["method"], finding["verdict"]))
        self.hear(event)

    def begins(self, method: str, law: str = "", **more: str) -> None:
        """Tell that a method begins, with a law or with all."""
        self.tell({"event": "begins", "method": method, "law": law, **more})

    def found(self, one: Finding) -> None:
        """Tell what was found."""
        told = FindingRecord.of(one).model_dump(mode="json")
        self.tell({"event": "found", "finding": told})

    def why(self, error: BaseException) -> tuple[str, Fault | None]:
        """Why a law or a method came to no end, and the fault, if it is one of attnproof."""
        if isinstance(error, CodeFault):
            return f"it had not ended after {self.seconds:g} s", None
        fault = fault_in(self.subject, error)
        return (raised(error) if fault is None else fault.told), fault

    def called(self, line: str) -> Subject:
        """The same code, called by another line."""
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
        """Where inputs come from, in the first format that is asked for."""
        dtype = getattr(torch, self.asked.dtypes[0])
        return Draw(self.asked.seed, dtype, str(chosen(self.asked.device)))

    def laws(self, method: str) -> tuple[str, ...]:
        """The laws of this kind of code that this method is still to ask.

        After a process in which one came to no end the others follow from cheap to dear.
        """
        from ..programs.measure.inputs import entries

        known = {law for law, by, _ in self.asked.known if by == method}
        laws = [
            law
            for law in laws_of(self.code.kind)
            if law.id not in known and (not self.asked.laws or law.id in self.asked.laws)
        ]
        if known:
            laws.sort(key=lambda law: entries(law, self.code))
        return tuple(law.id for law in laws)

    def measured(self) -> None:
        """The probes, law by law; a law whose code leaves by sys.exit is undecided."""
        from ..programs.measure.base import CAST, FINITE
        from ..programs.measure.examine import examine
        from ..programs.measure.inputs import beyond_numbers

        asked = self.asked
        if isinstance(self.code, CAST):  # its code is gone through once for all laws
            self.code = replace(self.code, beyond=beyond_numbers(self.code))
        draws = {name: self.draw.cast(getattr(torch, name)) for name in asked.dtypes}
        if asked.laws and FINITE not in asked.laws and not asked.known:
            # told unasked where it is broken, before anything else
            with given_back():
                unasked = examine(self.code, draws.values(), (FINITE,))
            for one in unasked:
                if one.verdict == "broken":
                    self.found(one)
        for law in self.laws("measured"):
            for name, draw in draws.items():
                find = partial(examine, draws=(draw,), laws=(law,))
                self.law(law, "measured", name, draw.device, find)

    def exact(self) -> None:
        """The same code on numbers of a finite field, law by law, but for those that are proved."""
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
        """One law by one method, which may be asked of other calls too.  Raises ``CodeFault``."""
        self.begins(method, law)
        start, code = perf_counter(), self.code
        others = None if self.thing is None or self.asked.call else self.called

        def alike(other: Subject) -> tuple[Finding, ...]:
            return find(with_mask_of(code, other))

        try:
            # what the code sets in one law is not set in the next
            with given_back(), limited(self.seconds):
                found = weighed(find(code), alike, choices(code, others))
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
        if self.in_a_row == IN_A_ROW:
            raise CodeFault

    def longer(self, method: str) -> None:
        """What holds without a proof, at lengths for which the code asks; or what it asks is told.

        ``method``: "measured" where the code is run in floating point.
        """
        from .longer import at_longer

        names = [law for law, known in self.verdicts.items() if _is_run_alone(known)]
        begin = partial(self.begins, method, does="being run of more")
        exact = [law for law in names if ("exact", "holds") in self.verdicts[law]]
        for one in at_longer(self.code, names, self.draw, begin, method, exact):
            self.found(one)

    def traced(self) -> None:
        """The proofs about the graph of operations; it is traced once for all laws."""
        from ..programs.prove import prove

        self.begins("traced")
        told: list[Finding] = []

        def heard(one: Finding) -> None:
            told.append(one)
            self.found(one)

        begin, seconds = partial(self.begins, "traced"), PROOF * self.asked.limit
        traced = prove(self.code, self.laws("traced"), heard, begin=begin, seconds=seconds)
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
        if self.asked.card:
            self.card(traced)

    def card(self, traced: Traced) -> None:
        """The laws of encodings, asked of the graph."""
        self.begins("traced", does="being asked for its card")
        if traced.hooks is None:
            why = traced.why or "its graph does not stand for it at all lengths"
            if self.code.kind != "rotary":
                why = f"it is {self.code.kind} code, and a card is of rotary code"
            self.tell({"event": "card", "why": why, "laws": []})
            return
        from .card import card_of

        for law in card_of(traced.hooks):
            self.tell({"event": "card", "why": "", "laws": [law]})

    def identity(self) -> None:
        """What the code is, and what is unusual of that beside what it says of itself."""
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
    """Whether a law holds where it was run, and no proof says it."""
    methods = {method for method, verdict in known if verdict == "holds"}
    return bool(methods) and "traced" not in methods and "broken" not in {v for _, v in known}


@contextmanager
def _quiet() -> Iterator[None]:
    """What the code warns of is no verdict, and what torch writes of its graphs is no log.

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
