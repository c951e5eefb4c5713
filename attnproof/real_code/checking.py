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
from dataclasses import asdict, dataclass
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
    from ..programs.prove import Traced
    from ..programs.subjects import Subject
    from .request import Asked

PROOF = 1 / 6  # of the limit of a law is for its proof; code is run and a witness found beside it
Event = dict[str, Any]
Tell = Callable[[Event], None]
Called = Callable[[str], "Subject"]  # the code, called by another line


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


@dataclass
class Patience:
    """How long a law may take where no other process ends it: seconds of the processor, 0 for any.

    A method by which ``IN_A_ROW`` laws come to no end is given up, as where it is a process.
    """

    seconds: float = 0.0
    in_a_row: int = 0

    @contextmanager
    def law(self) -> Iterator[None]:
        """One law by one method.  Raises ``CodeFault``."""
        with limited(self.seconds):
            yield
        self.in_a_row = 0

    def told(self, error: BaseException) -> str:
        """What is told of code that did not end; "" of any other error."""
        late = isinstance(error, CodeFault)
        return f"it had not ended after {self.seconds:g} s" if late else ""


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

    ``seconds``: what a law may take here (:class:`Patience`); ``how``: what was told of the code in
    Python.
    """
    verdicts: dict[str, set[tuple[str, str]]] = {}
    for law, method, verdict in asked.known:
        verdicts.setdefault(law, set()).add((method, verdict))
    others = None if thing is None or asked.call else partial(_called, thing, subject, asked, how)
    patience = Patience(seconds)
    read: list[str] = [asked.as_read]  # the mask, as the identity has it
    methods: dict[str, Callable[[Subject, Asked, Tell], None]] = {
        "measured": partial(_measured, patience, others),
        "identity": partial(_identity, thing, read),
        "exact": partial(_exact, patience, verdicts, others),
        "traced": _traced,
    }
    whole = {"identity": seconds, "traced": seconds * len(laws_of(subject.kind)), "longer": seconds}
    tell = partial(_under, subject, partial(_noted, verdicts, tell))
    order, reads = asked.methods, is_to_be_read(subject, asked.laws)
    if "identity" in order and reads:
        order = ("identity", *(method for method in order if method != "identity"))
    known: set[tuple[str, str]] = set().union(*verdicts.values())
    ran = next(
        (one for one in ("measured", "exact") if one in order or (one, "holds") in known), ""
    )
    methods["longer"] = partial(_longer, verdicts, ran)
    for method in (*order, *["longer"] * bool(ran)):
        start, why, fault = perf_counter(), "", None
        patience.in_a_row = 0
        try:
            with _quiet(), given_back(), limited(whole.get(method, 0.0)):
                methods[method](with_mask(subject, read[-1] * reads), asked, tell)
        except (Exception, SystemExit) as error:  # noqa: BLE001 (any code may raise anything)
            why = patience.told(error)
            fault = None if why else fault_in(subject, error)
            told = raised(error).removeprefix("the code ") if fault is None else fault.told
            why = why or told
        if method == "longer" and not why:
            continue
        tell(
            {
                "event": "method",
                "method": ran if method == "longer" else method,
                "why": why,
                "seconds": perf_counter() - start,
                "traceback": fault.traceback if fault is not None else "",
            }
        )


def _under(subject: Subject, tell: Tell, event: Event) -> None:
    """Tell an event; what is found of code that was given something says so.

    What is broken may hang on that: then it is undecided.
    """
    if event["event"] == "found" and event["finding"]["verdict"] != "not asked":
        finding = event["finding"]
        given = under(subject, finding["law"])
        if finding["verdict"] == "broken" and (why := unsaid(subject, finding["law"])):
            given, finding = f"{why}: ", {**finding, "verdict": "undecided", "witness": None}
        event = {**event, "finding": {**finding, "why": f"{given}{finding['why']}"}}
    tell(event)


def _noted(verdicts: dict[str, set[tuple[str, str]]], tell: Tell, event: Event) -> None:
    """Tell an event; each law's verdicts so far are kept, with the method that found them."""
    if event["event"] == "found":
        one = event["finding"]
        verdicts.setdefault(one["law"], set()).add((one["method"], one["verdict"]))
    tell(event)


def _called(
    thing: Any, subject: Subject, asked: Asked, how: Mapping[str, Any], line: str
) -> Subject:
    """The same code, called by another line."""
    return adapted_as(
        thing,
        line,
        kind=subject.kind,
        name=subject.name,
        declared=parse(asked.declared) if asked.declared else None,
        **{"settings": settings_of(asked.settings), **how},
    )


def _measured(
    patience: Patience, others: Called | None, subject: Subject, asked: Asked, tell: Tell
) -> None:
    """The probes, law by law; a law whose code leaves by sys.exit is undecided."""
    from ..programs.measure.base import FINITE
    from ..programs.measure.examine import examine

    where = str(chosen(asked.device))
    draws = {name: Draw(asked.seed, getattr(torch, name), where) for name in asked.dtypes}
    if asked.laws and FINITE not in asked.laws and not asked.known:
        # told unasked where it is broken, before anything else
        with given_back():
            unasked = examine(subject, draws.values(), (FINITE,))
        for one in unasked:
            if one.verdict == "broken":
                tell(_found(one))
    for law in _laws(subject, asked, "measured"):
        for name, draw in draws.items():
            find = partial(examine, draws=(draw,), laws=(law,))
            _law(patience, subject, law, "measured", asked, tell, name, where, find, others)


def _exact(
    patience: Patience,
    verdicts: Mapping[str, set[tuple[str, str]]],
    others: Called | None,
    subject: Subject,
    asked: Asked,
    tell: Tell,
) -> None:
    """The same code on numbers of a finite field, law by law, but for those that are proved."""
    from ..programs.exact import exact

    for law in _laws(subject, asked, "exact"):
        known = verdicts.get(law, set())
        if ("traced", "holds") in known and {verdict for _, verdict in known} == {"holds"}:
            why = "it is proved of the same code, and holds where it was measured"
            tell(_found(Finding(law, "exact", "not asked", why, seed=asked.seed)))
            continue
        find = partial(exact, laws=(law,), seed=asked.seed, named=law in asked.laws)
        _law(patience, subject, law, "exact", asked, tell, "residues", "cpu", find, others)


def _law(
    patience: Patience,
    subject: Subject,
    law: str,
    method: str,
    asked: Asked,
    tell: Tell,
    dtype: str,
    device: str,
    find: Callable[[Subject], tuple[Finding, ...]],
    others: Called | None,
) -> None:
    def alike(other: Subject) -> tuple[Finding, ...]:
        return find(with_mask_of(subject, other))

    tell({"event": "begins", "method": method, "law": law})
    start = perf_counter()
    try:
        # what the code sets in one law is not set in the next
        with given_back(), patience.law():
            found = weighed(find(subject), alike, choices(subject, others))
    except (Exception, SystemExit) as error:  # noqa: BLE001 (any code may raise anything)
        late = patience.told(error)
        fault = None if late else fault_in(subject, error)
        patience.in_a_row += bool(late)
        found = (
            Finding(
                law,
                method,
                "undecided" if fault is None else "internal error",
                late or (raised(error) if fault is None else fault.told),
                seed=asked.seed,
                dtype=dtype,
                device=device,
                seconds=perf_counter() - start,
                traceback=fault.traceback if fault is not None else "",
            ),
        )
    for one in found:
        tell(_found(one))
    if patience.in_a_row == IN_A_ROW:
        raise CodeFault


def _longer(
    verdicts: Mapping[str, set[tuple[str, str]]],
    method: str,
    subject: Subject,
    asked: Asked,
    tell: Tell,
) -> None:
    """What holds without a proof, at lengths for which the code asks; or what it asks is told.

    ``method``: "measured" where the code is run in floating point.
    """
    from .longer import at_longer

    names = [law for law, known in verdicts.items() if _is_run_alone(known)]
    draw = Draw(asked.seed, getattr(torch, asked.dtypes[0]), str(chosen(asked.device)))

    def begin(law: str) -> None:
        tell({"event": "begins", "method": method, "law": law, "does": "being run of more"})

    exact = [law for law in names if ("exact", "holds") in verdicts[law]]
    for one in at_longer(subject, names, draw, begin, method, exact):
        tell(_found(one))


def _is_run_alone(known: set[tuple[str, str]]) -> bool:
    """Whether a law holds where it was run, and no proof says it."""
    methods = {method for method, verdict in known if verdict == "holds"}
    return bool(methods) and "traced" not in methods and "broken" not in {v for _, v in known}


def _traced(subject: Subject, asked: Asked, tell: Tell) -> None:
    """The proofs about the graph of operations; it is traced once for all laws."""
    from ..programs.prove import prove

    tell({"event": "begins", "method": "traced", "law": ""})
    told: list[Finding] = []

    def heard(one: Finding) -> None:
        told.append(one)
        tell(_found(one))

    def begin(law: str) -> None:
        tell({"event": "begins", "method": "traced", "law": law})

    laws = _laws(subject, asked, "traced")
    traced: Traced = prove(subject, laws, heard, begin=begin, seconds=PROOF * asked.limit)
    for one in traced.findings:
        if one not in told:
            tell(_found(one))
    tell(
        {
            "event": "traced",
            "operations": int(traced.operations),
            "why": str(traced.why),
            "guards": [str(guard) for guard in traced.guards],
            "unread": [str(name) for name in traced.unread],
        }
    )
    if asked.card:
        _card(subject, traced, tell)


def _card(subject: Subject, traced: Traced, tell: Tell) -> None:
    """The laws of encodings, asked of the graph."""
    tell({"event": "begins", "method": "traced", "law": "", "does": "being asked for its card"})
    if traced.hooks is None:
        why = traced.why or "its graph does not stand for it at all lengths"
        if subject.kind != "rotary":
            why = f"it is {subject.kind} code, and a card is of rotary code"
        tell({"event": "card", "why": why, "laws": []})
        return
    from .card import card_of

    for law in card_of(traced.hooks):
        tell({"event": "card", "why": "", "laws": [law]})


def _identity(thing: Any, read: list[str], subject: Subject, asked: Asked, tell: Tell) -> None:
    """What the code is, and what is unusual of that beside what it says of itself."""
    from ..programs.identify import identify
    from ..programs.identify.remarks import remarks_on

    tell({"event": "begins", "method": "identity", "law": ""})
    draw = Draw(asked.seed, getattr(torch, asked.dtypes[0]), str(chosen(asked.device)))
    found = identify(subject, draw)
    remarks = [asdict(one) for one in remarks_on(subject, found, thing)]
    told = IdentityRecord.of(found)
    if found.traceback:
        told = told.model_copy(update={"why": found.parts[0].evidence})
    tell({"event": "identity", **told.model_dump(mode="json"), "remarks": remarks})
    read.append(mask_as_read(subject.kind, found.parts))


def _laws(subject: Subject, asked: Asked, method: str) -> tuple[str, ...]:
    """The laws of this kind of code that this method is still to ask.

    After a process in which one came to no end the others follow from cheap to dear.
    """
    from ..programs.measure.inputs import entries

    known = {law for law, by, _ in asked.known if by == method}
    laws = [
        law
        for law in laws_of(subject.kind)
        if law.id not in known and (not asked.laws or law.id in asked.laws)
    ]
    if known:
        laws.sort(key=lambda law: entries(law, subject))
    return tuple(law.id for law in laws)


def _found(one: Finding) -> Event:
    return {"event": "found", "finding": FindingRecord.of(one).model_dump(mode="json")}


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
