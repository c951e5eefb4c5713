"""Records of checked code: each law with the findings of every method, and what the code is."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BeforeValidator, Field, JsonValue, model_validator

from .. import __version__
from ..documents.evidence import Record, Traceback
from ..documents.verdict_line import Condition
from ..numeric.results import Number
from .request import number, plain

LawVerdict = Literal[
    "proved", "exact", "measured", "broken", "unchecked", "undecided", "not asked", "internal error"
]
Method = Literal["measured", "identity", "exact", "traced"]
RAISED = ("the code raised ", "the code left ")  # prefixes of reasons that are not about the law
RUN_OF_MORE = "being run of more"  # what a law is while it is examined at more tokens


Told = Annotated[JsonValue, BeforeValidator(plain)]
Real = Annotated[Number, BeforeValidator(number)]


class SideRecord(Record):
    """One of the two sides that a law compares."""

    words: str
    value: Told

    @model_validator(mode="before")
    @classmethod
    def _pair(cls, told: Any) -> Any:
        return {"words": str(told[0]), "value": told[1]} if isinstance(told, tuple) else told


class SeenRecord(Record):
    """A witness: inputs for which the law fails, as small as could be found."""

    inputs: Annotated[dict[str, JsonValue], BeforeValidator(plain)]
    here: SideRecord
    there: SideRecord
    difference: Real
    allowed: Real = Field(description="The rounding bound.")
    certified: bool = Field(description="Whether ball arithmetic separates the difference from 0.")


class FindingRecord(Record):
    """What one method found about one law."""

    law: str
    method: Method = Field(
        description="traced: proof; exact: finite fields; measured: floating-point runs."
    )
    verdict: Literal["holds", "broken", "undecided", "not asked", "internal error"]
    why: str
    error: Real | None = Field(description="The largest observed difference.")
    bound: Real | None = Field(description="The rounding bound there.")
    witness: SeenRecord | None
    seed: int
    dtype: str
    device: str
    sizes: dict[str, int]
    assuming: tuple[Condition, ...] = Field(description="Conditions of the verdict.")
    seconds: float = Field(ge=0)
    traceback: Traceback = ""

    @property
    def numbers(self) -> str:
        """The numbers of which it speaks, as a phrase."""
        others = {"traced": "in the proof", "exact": "in finite fields"}
        return others.get(self.method, f"in {self.dtype}")


class LawOfCodeRecord(Record):
    """One law of the code: the verdict of all methods together, and the findings of each."""

    law: str
    says: str
    group: str
    always: bool = Field(description="Whether code that breaks it is wrong whatever its purpose.")
    verdict: LawVerdict = Field(
        description="unchecked: a declaration was not compared with the code, which counts as a "
        "failure."
    )
    why: str = Field(
        description="How the verdict is known, in one line; for a proof, its verdict line with "
        "every condition."
    )
    error: Number | None
    bound: Number | None
    assuming: tuple[Condition, ...] = ()
    findings: tuple[FindingRecord, ...]
    again: str = Field(description="The command that reproduces it.")

    @property
    def shown(self) -> FindingRecord | None:
        """The finding that breaks it; None if none does."""
        return next((one for one in self.findings if one.verdict == "broken"), None)


class PartRecord(Record):
    """One property that was read off the code."""

    name: str
    value: Told
    words: str
    evidence: str
    certain: bool = Field(description="False if other values would fit as well.")


class IdentityRecord(Record):
    """What the code is."""

    kind: str
    sentence: str
    parts: tuple[PartRecord, ...]
    answers: tuple[str, ...]
    numbers: dict[str, tuple[Real, ...]]
    why: str = Field("", description="The error of attnproof itself; otherwise empty.")
    traceback: Traceback = ""


class RemarkRecord(Record):
    """Something unusual about the code, given what it says of itself; it breaks no law."""

    about: str = Field(description="The part of the identity that it is about.")
    expected: str
    why: str = Field(
        description="The name, setting or source line that suggests the expected value."
    )
    found: str

    @property
    def sentence(self) -> str:
        """The remark in a line."""
        return f"{self.about}: {self.found}; expected: {self.expected} ({self.why})"


class TracedRecord(Record):
    """What was read from the code's graph of operations."""

    operations: int = Field(ge=0)
    guards: tuple[str, ...] = Field(
        description="Conditions under which the graph agrees with the code."
    )
    unread: tuple[str, ...] = Field(description="Operations without a symbolic interpretation.")
    why: str = Field(description="Why nothing was traced; otherwise empty.")


class CardLawRecord(Record):
    """A law of encodings, checked on what the code's graph does to a vector at a position."""

    law: str
    says: str
    verdict: Literal["proved", "refuted", "undecided", "does not apply", "internal error"]
    why: str = Field(description="How the verdict is known, or a certified counterexample.")
    assuming: tuple[Condition, ...]
    seconds: float = Field(ge=0)
    traceback: Traceback = ""


class CardRecord(Record):
    """The verdicts on the laws of encodings; the exit code does not depend on them."""

    why: str = Field(description="Why there is no card; otherwise empty.")
    laws: tuple[CardLawRecord, ...]


class MethodRecord(Record):
    """One method, and why it did not finish, if it did not."""

    method: Method
    why: str
    seconds: float = Field(ge=0)
    traceback: Traceback = ""


class CodeRecord(Record):
    """The record of one target."""

    target: str
    name: str
    file: str
    kind: str
    adapted: str = Field(description="How the code is called, in words.")
    declared: str
    strict: bool = Field(False, description="Whether undecided laws count as failures.")
    seed: int
    dtypes: tuple[str, ...]
    device: str
    named: tuple[str, ...] = Field(description="The selected laws; empty for all laws of its kind.")
    laws: tuple[LawOfCodeRecord, ...]
    identity: IdentityRecord | None
    remarks: tuple[RemarkRecord, ...] = Field(
        default=(), description="Unusual properties; the exit code does not depend on them."
    )
    traced: TracedRecord | None
    card: CardRecord | None = Field(default=None, description="None if not requested.")
    methods: tuple[MethodRecord, ...]
    why: str = Field(description="Why the code cannot be run; empty if it can.")
    traceback: Traceback = ""
    stopped: str = Field(description="Where it was stopped, in a paragraph; empty if it completed.")
    unfinished: tuple[str, ...] = Field(description="Laws that were not reached.")
    said: str = Field(description="The end of what the code printed.")
    printed: int = Field(0, ge=0, description="Number of lines printed to standard output.")
    first_printed: str = Field("", description="The first of them.")
    torch: str
    seconds: float = Field(ge=0)
    stored: AwareDatetime | None = Field(
        default=None,
        description="When it was checked, if the record was taken from the store; otherwise None.",
    )

    @property
    def asked(self) -> tuple[LawOfCodeRecord, ...]:
        """The laws that were asked of it."""
        return tuple(law for law in self.laws if law.verdict != "not asked")

    @property
    def broken(self) -> tuple[LawOfCodeRecord, ...]:
        """The laws that it breaks."""
        return tuple(law for law in self.laws if law.verdict == "broken")

    @property
    def unchecked(self) -> tuple[LawOfCodeRecord, ...]:
        """The laws that should have compared a declaration, and did not."""
        return tuple(law for law in self.laws if law.verdict == "unchecked")

    @property
    def undecided(self) -> tuple[LawOfCodeRecord, ...]:
        """The laws that were asked, and are not known to hold or to fail."""
        return tuple(law for law in self.laws if law.verdict == "undecided")

    @property
    def unasked(self) -> tuple[LawOfCodeRecord, ...]:
        """The laws that were named, but could not be asked of this code."""
        named = (law for law in self.laws if law.law in self.named)
        return tuple(law for law in named if law.verdict == "not asked")

    @property
    def raises(self) -> str:
        """What the code raised first, if it raised whenever it was simply run; else empty."""
        ran = [f for law in self.asked for f in law.findings if f.method == "measured"]
        ran = [one for one in ran if one.verdict != "not asked"]
        ended = [one for one in ran if one.verdict != "undecided" or not one.why.startswith(RAISED)]
        return "" if ended or not ran else ran[0].why

    @property
    def ok(self) -> bool:
        """Whether at least one law was asked, and every law that was asked or named holds."""
        ran = not (self.why or self.stopped or self.unfinished or self.unasked or self.raises)
        good = all(law.verdict in ("proved", "exact", "measured") for law in self.asked)
        return ran and bool(self.asked) and good

    def law(self, name: str) -> LawOfCodeRecord:
        """Return the law with this id.  Raises ``KeyError`` if the record has none."""
        return {law.law: law for law in self.laws}[name]


class CodesRecord(Record):
    """The records of all targets of one command."""

    version: Literal[7] = 7
    made: str = Field(description="Date and time of creation, in ISO format.")
    attnproof: str
    python: str
    codes: tuple[CodeRecord, ...]
    unfinished: tuple[str, ...] = Field(
        default=(), description="Targets that an interrupted run did not reach."
    )
    seconds: float = Field(ge=0)


def codes_record(
    codes: Sequence[CodeRecord], unfinished: Sequence[str], seconds: float
) -> CodesRecord:
    """Return the record of one command, dated now."""
    return CodesRecord(
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        attnproof=__version__,
        python=platform.python_version(),
        codes=tuple(codes),
        unfinished=tuple(unfinished),
        seconds=seconds,
    )
