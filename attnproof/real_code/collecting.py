"""From events to the record of one target."""

from __future__ import annotations

from typing import Any, cast

from ..programs.declared_laws import Compared, compared_by
from ..theorems.laws import LAWS as CODE_LAWS
from ..theorems.laws import Law as CodeLaw
from .asked import Asked
from .combining import combined
from .plain import readable
from .records import (
    CardLawRecord,
    CardRecord,
    CodeRecord,
    ConditionRecord,
    FindingRecord,
    IdentityRecord,
    LawOfCodeRecord,
    Leg,
    LegRecord,
    PartRecord,
    RemarkRecord,
    SeenRecord,
    SideRecord,
    TracedRecord,
)  # fmt: skip

NOT_REACHED = "it was not reached"
UNCHECKED = "declared, and not checked"
HOLDS = ("proved", "exact", "measured")


class Collected:
    """What was heard of one target so far."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.name = self.kind = self.adapted = self.file = self.torch = self.why = ""
        self.traceback = ""
        self.findings: list[FindingRecord] = []
        self.legs: list[LegRecord] = []
        self.traced: TracedRecord | None = None
        self.card: CardRecord | None = None
        self.identity: IdentityRecord | None = None
        self.remarks: tuple[RemarkRecord, ...] = ()
        self.at = ("", "")  # the leg and the law that were begun last
        self.cut: dict[tuple[str, str], str] = {}  # why a law came to no end on a leg
        self.does = "starting"
        self.printed, self.first_printed = 0, ""
        self.files: dict[str, str] = {}
        self.ended = False

    def hear(self, event: dict[str, Any]) -> None:  # noqa: C901 (one case for each event)
        """Take in one event.  Raises ``KeyError`` or ``ValidationError`` for what is none."""
        told = {name: value for name, value in event.items() if name != "event"}
        match event["event"]:
            case "ready":
                self.torch = str(told["torch"])
            case "adapted":
                for name in ("name", "kind", "adapted", "file"):
                    setattr(self, name, readable(str(told[name])))
            case "begins":
                self.at = (str(told["leg"]), str(told["law"]))
                self.does = str(told.get("does", ""))
            case "found":
                self.findings.append(_finding(told["finding"]))
            case "traced":
                self.traced = TracedRecord(
                    operations=told["operations"], guards=tuple(told["guards"]),
                    unread=tuple(told["unread"]), why=told["why"],
                )  # fmt: skip
            case "card":
                before = self.card.laws if self.card is not None else ()
                laws = (*before, *map(_on_card, told["laws"]))
                self.card = CardRecord(why=told["why"], laws=laws)
            case "identity":
                self.remarks = tuple(RemarkRecord(**one) for one in told["remarks"])
                self.identity = _identity(told)
            case "leg":
                own = [f"{law}: {why}" for (at, law), why in self.cut.items() if at == told["leg"]]
                self.legs.append(LegRecord(**{**told, "why": told["why"] or "; ".join(own)}))
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

    @property
    def laws(self) -> tuple[CodeLaw, ...]:
        """The laws that are asked about, as far as the kind of the code is known."""
        asked = self.asked.laws
        if not self.kind or set(self.asked.legs) <= {"identity"}:
            return ()
        if asked:
            return tuple(law for law in CODE_LAWS if law.id in asked or self._met(law.id))
        declared = {one.law for one in compared_by(self.asked.declared, self.kind).values()}
        return tuple(law for law in CODE_LAWS if self.kind in law.about or law.id in declared)

    def _met(self, law: str) -> bool:
        """Whether a law was broken by what a look at another law met, which is told unasked."""
        return any(one.law == law and one.verdict == "broken" for one in self.findings)

    @property
    def expected(self) -> int:
        """How many laws there are to look at on the legs that go law by law."""
        mine = sum(self.kind in law.about for law in self.laws)
        asked = self.asked
        once = ("exact" in asked.legs) + ("traced" in asked.legs)
        return mine * (len(asked.dtypes) * ("measured" in asked.legs) + once)

    @property
    def known(self) -> tuple[tuple[str, str, str], ...]:
        """Law, leg and verdict of everything that was found."""
        return tuple((one.law, one.leg, one.verdict) for one in self.findings)

    def left(self, leg: str) -> bool:
        """Whether there are laws of which this leg has told nothing."""
        told = {one.law for one in self.findings if one.leg == leg}
        return any(law.id not in told for law in self.laws if self.kind in law.about)

    def lost(self, why: str) -> None:
        """The law that was looked at last has this for a finding: it came to no end."""
        leg, law = self.at
        if law:
            self.cut[leg, law] = why
            self.findings.append(
                FindingRecord(
                    law=law, leg=cast("Leg", leg), verdict="undecided",
                    why=why, error=None, bound=None, witness=None, seed=self.asked.seed,
                    dtype=self.asked.dtypes[0], device=self.asked.device, sizes={}, assuming=(),
                    seconds=0.0, traceback="",
                )
            )  # fmt: skip

    def record(self, seconds: float, *, stopped: str = "", said: str = "") -> CodeRecord:
        """The record of what was heard; what was not reached is named there."""
        asked = self.asked
        over = self.ended or any(leg.leg == "measured" for leg in self.legs)
        rows = [self._row(law, over=over) for law in self.laws]
        missing = tuple(row.law for row in rows if row.why == NOT_REACHED)
        return CodeRecord(
            target=asked.target, strict=asked.strict, name=self.name, file=self.file,
            kind=self.kind or asked.kind,
            adapted=self.adapted, declared=asked.declared, seed=asked.seed, dtypes=asked.dtypes,
            device=asked.device, named=asked.laws, laws=tuple(rows), identity=self.identity,
            remarks=self.remarks, traced=self.traced, card=self.card, legs=tuple(self.legs),
            why=self.why, traceback=self.traceback, stopped=stopped,
            unfinished=missing, said=said, printed=self.printed, first_printed=self.first_printed,
            torch=self.torch, seconds=seconds,
        )  # fmt: skip

    def _row(self, law: CodeLaw, *, over: bool) -> LawOfCodeRecord:
        found = [one for one in self.findings if one.law == law.id]
        broken = next((one for one in found if one.verdict == "broken"), None)
        known = broken.dtype if broken is not None and broken.leg == "measured" else ""
        met = broken.witness.inputs.get("met by") if broken is not None and broken.witness else None
        again = self.asked.again(str(met) if law.id == "finite" and met else law.id, known)
        row = combined(law, found, again, named=law.id in self.asked.laws)
        if self.kind not in law.about:
            told = f"it is a law of {' and '.join(law.about)} code, and this is {self.kind} code"
            row = row.model_copy(update={"why": told})
        elif not over and not found:
            return row.model_copy(update={"verdict": "undecided", "why": NOT_REACHED})
        return row if self.asked.laws else self._checked(row)

    def _checked(self, row: LawOfCodeRecord) -> LawOfCodeRecord:
        """The row, or that what it was to compare is declared and was not checked."""
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
        """Why a declaration was not compared with the code; "" where it was."""
        if by.unread:
            return by.unread
        if row.verdict not in HOLDS and not by.alone:
            return row.why
        ran = (one for one in row.findings if one.leg == "measured")
        if by.run and not any(one.verdict == "holds" for one in ran):
            return "running it did not decide it"
        if not by.part:
            return ""
        parts = self.identity.parts if self.identity is not None else ()
        known = [part for part in parts if part.name == by.part and part.certain]
        if not known:
            return f"whether it has {by.part} was not read"
        return "" if known[0].value is True else f"it is read as code without {by.part}"


def _finding(told: dict[str, Any]) -> FindingRecord:
    seen = told["witness"]
    known = {name: told[name] for name in FindingRecord.model_fields}
    known |= {
        "assuming": tuple(ConditionRecord(**one) for one in told["assuming"]),
        "witness": None if seen is None else SeenRecord(
            **{**seen, "here": SideRecord(**seen["here"]), "there": SideRecord(**seen["there"])}
        ),
    }  # fmt: skip
    return FindingRecord(**known)


def _on_card(told: dict[str, Any]) -> CardLawRecord:
    assuming = tuple(ConditionRecord(**one) for one in told["assuming"])
    return CardLawRecord(**{**told, "assuming": assuming})


def _identity(told: dict[str, Any]) -> IdentityRecord:
    return IdentityRecord(
        kind=told["kind"], sentence=told["sentence"], answers=tuple(told["answers"]),
        parts=tuple(PartRecord(**part) for part in told["parts"]),
        numbers={name: tuple(all_) for name, all_ in told["numbers"].items()},
        why=told["why"], traceback=told["traceback"],
    )  # fmt: skip
