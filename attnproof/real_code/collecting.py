"""Combine the events of all methods into the record of one target, with one verdict per law."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING

from ..documents.verdict_line import Condition, clauses, verdict_line
from ..programs.declarations import Compared, compared_by
from ..programs.finding import (
    AT_OTHER_LENGTHS,
    BROKEN_AS_GUESSED,
    DIFFERS_FROM_GRAPH,
    LEFT_OPEN,
    NOT_MEASURED,
    Finding,
)
from ..programs.identified_mask import IN_ORDER, hides_by_place, mask_as_read
from ..theorems.laws import LAWS as CODE_LAWS
from ..theorems.laws import Law as CodeLaw
from .records import (
    RAISED,
    RUN_OF_MORE,
    CardLawRecord,
    CardRecord,
    CodeRecord,
    FindingRecord,
    IdentityRecord,
    LawOfCodeRecord,
    LawVerdict,
    MethodRecord,
    RemarkRecord,
    TracedRecord,
)
from .request import CodeRequest, readable

if TYPE_CHECKING:
    from .running import Event

BEST = ("traced", "exact", "measured")
VERDICTS: dict[str, LawVerdict] = {"traced": "proved", "exact": "exact", "measured": "measured"}
NOBODY = "no method examines it"
BREAKS = "breaks in floating point"
NOT_THERE = "but not where it was run in {}"
ELSEWHERE = f"{NOT_THERE} (rounding, or a call that no proof covers)"
IN_FIELDS = "holds in finite fields, at other inputs"
FORMATS = ("float64", "float32", "float16", "bfloat16")  # finest first
SHOWN = "broken in exact arithmetic and in floating point, at other inputs than were measured"


def combined(
    law: CodeLaw, findings: Sequence[FindingRecord], again: str, *, named: bool = False
) -> LawOfCodeRecord:
    """Return the record of a law, with one verdict for the findings of all methods.

    The law is broken if any method breaks it, and undecided if it fails only under the call that
    was guessed.  Otherwise its verdict is that of the best method by which it holds, unless runs
    gave NaN or are undecided at other lengths, which exact methods do not see.

    A law that correct code may break, and that was not ``named``, counts only if a measured run
    shows that it applies.  Otherwise it is not asked; its findings are kept.
    """
    verdict, why, shown = _judged(findings)
    if not (law.always or named) and verdict in ("broken", "undecided") and not _applies(findings):
        verdict, why, shown = "not asked", _unasked(law, findings), None
    return LawOfCodeRecord.of(
        law,
        law=law.id,
        verdict=verdict,
        why=why,
        error=shown.error if shown else None,
        bound=shown.bound if shown else None,
        assuming=_guards(findings) if verdict == "proved" else _run_at(findings, verdict),
        findings=tuple(findings),
        again=again,
    )


def _judged(findings: Sequence[FindingRecord]) -> tuple[LawVerdict, str, FindingRecord | None]:
    """Return the verdict, the reason, and the finding whose error and bound are shown."""
    broken = [one for one in findings if one.verdict == "broken"]
    holding = [one for one in findings if one.verdict == "holds"]
    doubtful = [one for one in findings if one.verdict == "undecided"]
    stopped = [one for one in findings if one.verdict == "internal error"]
    lost = next((one for one in doubtful if one.why.startswith(NOT_MEASURED)), None)
    guess = next((one for one in doubtful if one.why.startswith(BROKEN_AS_GUESSED)), None)
    if guess is not None:  # by any method, the fault may be in our call
        return "undecided", guess.why, None
    if broken:
        return "broken", _breaks(broken[0], holding), broken[0]
    if lost is not None:  # exact arithmetic does not show NaN
        return "undecided", _not_measured(lost, holding), None
    more = next((one for one in doubtful if one.why.startswith(AT_OTHER_LENGTHS)), None)
    if more is not None:  # exactness for few tokens does not cover more
        return "undecided", more.why, more
    for method in BEST:
        good = [one for one in holding if one.method == method]
        if good:
            measured = [one for one in holding if one.method == "measured"]
            return VERDICTS[method], _holds(good, doubtful, holding), _worst(measured or good)
    if stopped:
        return "internal error", _told(stopped[0]), stopped[0]
    if doubtful:
        return "undecided", _told(doubtful[0]), _worst(doubtful)
    ran = (one.why for one in findings if one.method == "measured")  # others cover fewer laws
    return "not asked", next(ran, NOBODY), None


def _not_measured(lost: FindingRecord, holding: Sequence[FindingRecord]) -> str:
    """Return why a law could not be measured (NaN came back), and whether it is proved."""
    known = next(
        (
            VERDICTS[method]
            for method in ("traced", "exact")
            if any(one.method == method for one in holding)
        ),
        "",
    )
    return lost.why + (f"; {known} in exact arithmetic" if known == "proved" else "")


def _applies(findings: Sequence[FindingRecord]) -> bool:
    """Whether a run of the code was judged by the law, or failed on its own."""
    ran = [one for one in findings if one.method == "measured"]
    return any(one.verdict in ("holds", "broken") or one.why.startswith(RAISED) for one in ran)


def _unasked(law: CodeLaw, findings: Sequence[FindingRecord]) -> str:
    ran = [one.why for one in findings if one.method == "measured"]
    why = ran[0] if ran else "nothing says that it should hold"
    broken = any(one.verdict == "broken" for one in findings)
    return (
        f"it does not hold, which is not a fault ({why}); --law {law.id} checks it"
        if broken
        else why
    )


def _breaks(one: FindingRecord, holding: Sequence[FindingRecord]) -> str:
    """Return why the law is broken, and how that fits with what the other methods found."""
    exactly = [
        other
        for other in holding
        if other.method in ("traced", "exact") and LEFT_OPEN not in other.why
    ]
    if DIFFERS_FROM_GRAPH in one.why or one.why.startswith(AT_OTHER_LENGTHS):
        return one.why
    if one.method == "measured" and exactly:
        told = ", ".join(("", *clauses(_guards(exactly))))
        where = told.replace(", ", " ", 1)
        finer = FORMATS[: FORMATS.index(one.dtype)] if one.dtype in FORMATS else ()
        if any(other.method == "measured" and other.dtype in finer for other in holding):
            return f"holds in exact arithmetic{where}, {BREAKS} ({one.dtype}): {one.why}"
        if all(other.method == "exact" for other in exactly):
            return f"{IN_FIELDS}, {NOT_THERE.format(one.dtype)}: {one.why}"
        return f"holds in exact arithmetic{where}, {ELSEWHERE.format(one.dtype)}: {one.why}"
    if one.method != "measured" and any(other.method == "measured" for other in holding):
        shown = isinstance(one.error, float) and isinstance(one.bound, float)
        if one.error == "non-finite" or (shown and one.error > one.bound):  # type: ignore[operator]
            return f"{SHOWN}: {one.why}"
        return f"broken in exact arithmetic, hidden by rounding where it was measured: {one.why}"
    return _told(one)


def _holds(
    good: Sequence[FindingRecord],
    doubtful: Sequence[FindingRecord],
    holding: Sequence[FindingRecord],
) -> str:
    """Return how the law is known to hold; for a proof, its verdict line with every condition."""
    told = _told(good[0])
    if good[0].method == "traced":
        told = verdict_line("proved", _guards(good))
    else:
        told += "".join(f", {clause}" for clause in clauses(_run_at(holding)))
    unlike = [other for other in doubtful if DIFFERS_FROM_GRAPH in other.why][:1]
    others = [other for other in doubtful if other.method != "traced"][:1]
    return (
        told
        + "".join(f"; undecided {other.numbers}: {other.why}" for other in others)
        + "".join(f"; not proved: {other.why}" for other in unlike)
    )


def _told(one: FindingRecord) -> str:
    return one.why or f"{one.verdict} {one.numbers}"


def _guards(findings: Sequence[FindingRecord]) -> tuple[Condition, ...]:
    proofs = (one for one in findings if one.method == "traced" and one.verdict == "holds")
    return tuple(dict.fromkeys(guard for one in proofs for guard in one.assuming))


def _run_at(
    findings: Sequence[FindingRecord], verdict: LawVerdict = "measured"
) -> tuple[Condition, ...]:
    """Return the limits of the runs, for a law that holds without a proof."""
    runs = (one for one in findings if one.method != "traced" and one.verdict == "holds")
    told = dict.fromkeys(limit for one in runs for limit in one.assuming)
    return tuple(told) if verdict in HOLDS else ()


def _worst(findings: Sequence[FindingRecord]) -> FindingRecord:
    """Return the finding with the largest error relative to its bound."""

    def used(one: FindingRecord) -> float:
        if not isinstance(one.error, float) or not isinstance(one.bound, float):
            return -1.0 if one.error is None else float("inf")
        return one.error / one.bound if one.bound else float(one.error > 0)

    return max(findings, key=used)


NOT_REACHED = "it was not reached"
UNCHECKED = "declared, and not checked"
HOLDS = ("proved", "exact", "measured")


class Collected:
    """What the events received so far say about one target."""

    def __init__(self, asked: CodeRequest) -> None:
        self.asked = asked
        self.name = self.kind = self.adapted = self.file = self.torch = self.why = ""
        self.traceback = ""
        self.findings: list[FindingRecord] = []
        self.methods: list[MethodRecord] = []
        self.traced: TracedRecord | None = None
        self.card: CardRecord | None = None
        self.identity: IdentityRecord | None = None
        self.remarks: tuple[RemarkRecord, ...] = ()
        self.at = ("", "")  # the method and the law begun last
        self.cut: dict[tuple[str, str], str] = {}  # (method, law): why it did not finish
        self.does = "starting"
        self.printed, self.first_printed = 0, ""
        self.lengthened: list[str] = []
        self.files: dict[str, str] = {}
        self.ended = False

    def receive(self, event: Event) -> None:  # noqa: C901 (one case for each event)
        """Take in one event.  Raises ``KeyError`` or ``ValidationError`` if it is invalid."""
        told = {name: value for name, value in event.items() if name != "event"}
        match event["event"]:
            case "ready":
                self.torch = str(told["torch"])
            case "adapted":
                for name in ("name", "kind", "adapted", "file"):
                    setattr(self, name, readable(str(told[name])))
            case "begins":
                self.at = (str(told["method"]), str(told["law"]))
                self.does = str(told.get("does", ""))
            case "found":
                self.findings.append(FindingRecord.read(told["finding"]))
            case "traced":
                self.traced = self._also(TracedRecord.read(told))
            case "card":
                before = self.card.laws if self.card is not None else ()
                laws = (*before, *map(CardLawRecord.read, told["laws"]))
                self.card = CardRecord(why=told["why"], laws=laws)
            case "identity":
                self.remarks = tuple(map(RemarkRecord.read, told.pop("remarks")))
                self.identity = IdentityRecord.read(told)
            case "method":
                same = [one.why for one in self.methods if one.method == told["method"]]
                own = [
                    f"{law}: {why}"
                    for (at, law), why in self.cut.items()
                    if at == told["method"] and not any(f"{law}: {why}" in one for one in same)
                ]
                self.methods.append(MethodRecord(**{**told, "why": told["why"] or "; ".join(own)}))
            case "lengthened":
                self.lengthened += told["laws"]
            case "files":
                self.files |= told["files"]
            case "printed":
                self.printed += int(told["lines"])
                self.first_printed = self.first_printed or readable(str(told["first"]))
            case "refused":
                self.why, self.traceback = str(told["why"]), str(told.get("traceback", ""))
            case "ended":
                self.ended = True
            case other:
                raise KeyError(other)

    def _also(self, traced: TracedRecord) -> TracedRecord:
        """Return what is known of the graph; a further part adds why calls were not read."""
        if self.traced is None:
            return traced
        reasons = [why for one in (self.traced, traced) if one.why for why in one.why.split("; ")]
        return self.traced.model_copy(update={"why": "; ".join(dict.fromkeys(reasons))})

    @property
    def laws(self) -> tuple[CodeLaw, ...]:
        """The laws to report; none until the kind of the code is known."""
        asked = self.asked.laws
        if not self.kind or set(self.asked.methods) <= {"identity"}:
            return ()
        if asked:
            return tuple(law for law in CODE_LAWS if law.id in asked or self._met(law.id))
        declared = {one.law for one in compared_by(self.asked.declared, self.kind).values()}
        return tuple(law for law in CODE_LAWS if self.kind in law.about or law.id in declared)

    def _met(self, law: str) -> bool:
        """Whether the law was found broken during another law, and so is reported unasked."""
        return any(one.law == law and one.verdict == "broken" for one in self.findings)

    @property
    def expected(self) -> int:
        """The number of examinations to expect from the methods that go law by law."""
        mine = sum(self.kind in law.about for law in self.laws)
        asked = self.asked
        once = ("exact" in asked.methods) + ("traced" in asked.methods)
        return mine * (len(asked.dtypes) * ("measured" in asked.methods) + once)

    @property
    def known(self) -> tuple[tuple[str, str, str], ...]:
        """The law, method and verdict of every finding."""
        return tuple((one.law, one.method, one.verdict) for one in self.findings)

    @property
    def as_read(self) -> str:
        """The mask that was read, in the notation of a declaration; "" if none was read."""
        return mask_as_read(self.kind, self.identity.parts) if self.identity is not None else ""

    def left(self, method: str) -> bool:
        """Whether there are laws on which this method has not reported."""
        told = {one.law for one in self.findings if one.method == method}
        return any(law.id not in told for law in self.laws if self.kind in law.about)

    def lost(self, why: str) -> None:
        """Record that the law begun last did not finish: it is undecided, with this reason."""
        method, law = self.at
        if law:
            if self.does == RUN_OF_MORE:
                self.lengthened.append(law)  # it is not tried again
                why = f"{AT_OTHER_LENGTHS}: {why}"
            self.cut[method, law] = why
            asked = self.asked
            found = Finding(
                law,
                method,
                "undecided",
                why,
                seed=asked.seed,
                dtype=asked.dtypes[0],
                device=asked.device,
            )
            self.findings.append(FindingRecord.of(found))

    def record(self, seconds: float, *, stopped: str = "", said: str = "") -> CodeRecord:
        """Return the record of everything received; it names the laws that were not reached."""
        asked = self.asked
        over = self.ended or any(method.method == "measured" for method in self.methods)
        rows = [self._row(law, over=over) for law in self.laws]
        if stopped or self.cut:
            rows = [*map(self._at_few_lengths, rows)]
        missing = tuple(row.law for row in rows if row.why == NOT_REACHED)
        return CodeRecord.of(
            SimpleNamespace(**vars(asked) | vars(self)),
            kind=self.kind or asked.kind,
            named=asked.laws,
            laws=tuple(rows),
            methods=tuple(sorted(self.methods, key=lambda one: asked.methods.index(one.method))),
            stopped=stopped,
            unfinished=missing,
            said=said,
            seconds=seconds,
        )

    def _row(self, law: CodeLaw, *, over: bool) -> LawOfCodeRecord:
        found = [one for one in self.findings if one.law == law.id]
        broken = next((one for one in found if one.verdict == "broken"), None)
        known = broken.dtype if broken is not None and broken.method == "measured" else ""
        met = broken.witness.inputs.get("met by") if broken is not None and broken.witness else None
        again = self.asked.again(str(met) if law.id == "finite" and met else law.id, known)
        row = self._in_order(combined(law, found, again, named=law.id in self.asked.laws))
        if self.kind not in law.about:
            told = f"it is a law of {' and '.join(law.about)} code, and this is {self.kind} code"
            row = row.model_copy(update={"why": told})
        elif not over and not found:
            return row.model_copy(update={"verdict": "undecided", "why": NOT_REACHED})
        return row if self.asked.laws else self._checked(row)

    def _at_few_lengths(self, row: LawOfCodeRecord) -> LawOfCodeRecord:
        """Return the row of a check that was cut short; if exact for few tokens, it is open."""
        if row.verdict != "exact" or row.law in self.lengthened:
            return row
        told = f"{AT_OTHER_LENGTHS} it was not run; it is exact for few tokens"
        return row.model_copy(update={"verdict": "undecided", "why": told, "assuming": ()})

    def _in_order(self, row: LawOfCodeRecord) -> LawOfCodeRecord:
        """Return the row; no law of unordered tokens holds if the mask that was read orders them.

        The mask is read with more tokens than laws are run with, and a window may show all of those
        few.  That the law is broken is reported only if it was asked by name.
        """
        parts = self.identity.parts if self.identity is not None else ()
        mask = hides_by_place(parts)
        named = row.law in self.asked.laws
        answers = ("exact", "measured", *(() if named else ("broken",)))
        if not mask or row.law not in IN_ORDER or row.verdict not in answers:
            return row
        verdict = "undecided" if named else "not asked"
        told = f"it has a mask, so order matters: {mask}; few tokens do not show this"
        return row.model_copy(update={"verdict": verdict, "why": told})

    def _checked(self, row: LawOfCodeRecord) -> LawOfCodeRecord:
        """Return the row, as unchecked if a declaration that it should compare was not compared."""
        if row.verdict in ("broken", "internal error"):
            return row
        here = compared_by(self.asked.declared, self.kind)
        missed: dict[str, list[str]] = {}
        for words, by in here.items():
            if by.law == row.law and (why := self._missed(by, row)):
                missed.setdefault(why, []).append(words)
        if not missed:
            return row
        told = "; ".join(f"{', '.join(words)}: {UNCHECKED}: {why}" for why, words in missed.items())
        if row.verdict in HOLDS:
            told += f"; the law by itself is {row.verdict}"
        return row.model_copy(update={"verdict": "unchecked", "why": told, "assuming": ()})

    def _missed(self, by: Compared, row: LawOfCodeRecord) -> str:
        """Return why a declaration was not compared with the code; "" if it was."""
        if by.unread:
            return by.unread
        if row.verdict not in HOLDS and not by.part_only:
            return row.why
        ran = (one for one in row.findings if one.method == "measured")
        if by.run and not any(one.verdict == "holds" for one in ran):
            return "running it did not decide it"
        if not by.part:
            return ""
        parts = self.identity.parts if self.identity is not None else ()
        known = [part for part in parts if part.name == by.part and part.certain]
        if not known:
            return f"whether it has {by.part} was not read"
        return "" if known[0].value is True else f"it is read as code without {by.part}"
