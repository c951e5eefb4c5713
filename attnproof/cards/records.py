"""Records of cards and of the table: what is known of each encoding and each law."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ..documents.evidence import (
    Evidence,
    Formula,
    ProvedEvidence,
    Record,
    RefutedEvidence,
    Traceback,
    UndecidedEvidence,
)
from ..documents.verdict_line import Condition, verdict_line
from ..theorem_runs.records import GivenRecord, LinkRecord

CellVerdict = Literal[
    "proved", "refuted", "measured", "misread", "undecided", "does not apply", "internal error"
]

KERNEL = 12
"""Kernel steps of each link that are stored in a card, which has a proof for each law."""


class LawRecord(Record):
    """A law: a statement with a hole for an encoding."""

    id: str
    title: str
    group: str
    says: str
    some: bool = Field(
        description="Whether it claims a difference for some inputs rather than an equality."
    )


class EncodingRecord(Record):
    """An encoding: its definition as formulas, its parameters, where it comes from."""

    id: str
    title: str
    says: str
    sources: tuple[str, ...]
    file: str
    formulas: tuple[Formula, ...] = Field(
        description="What it does: one formula for each place where it acts."
    )
    parameters: tuple[GivenRecord, ...]
    acts: str = Field(default="", description="Where it acts, in words.")
    hypotheses: tuple[str, ...] = Field(
        default=(), description="Hypotheses on its parameters, in words."
    )
    code: str = Field(default="", description="Source code of the class.")


class CellRecord(Record):
    """One law of one encoding."""

    encoding: str
    law: str
    verdict: CellVerdict
    why: str = Field(description="How the verdict is known, in one line.")
    under: tuple[str, ...] = Field(
        default=(), description="The hypotheses under which it has this verdict, in words."
    )
    obeyed: tuple[str, ...] = Field(
        default=(), description="The hypotheses that the witness of a refutation obeys, in words."
    )
    places: str = Field(
        default="",
        description="The positions for which it has this verdict, where these are not all.",
    )
    assumed: tuple[Formula, ...] = Field(default=(), description="The same as formulas.")
    needed: RefutedEvidence | None = Field(
        default=None, description="A witness that the law fails without them."
    )
    statement: Formula | None = Field(default=None, description="The statement that was decided.")
    chain: tuple[LinkRecord, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    witness: str = Field(default="", description="The witness in one line, if there is one.")
    error: str = Field(
        default="",
        description="The exception raised by the code of the encoding, or where it is misread.",
    )
    seconds: float = Field(ge=0)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Everything under which the verdict holds: positions, hypotheses, divisors that are not 0.

        A refuted difference has conditions too: its negation is proved.
        """
        proofs = [part for part in self.evidence if isinstance(part, ProvedEvidence)]
        if any(isinstance(part, RefutedEvidence | UndecidedEvidence) for part in self.evidence):
            proofs = []  # they prove parts of the statement, and carry no verdict
        alone = len(proofs) == 1
        readings = [
            Condition(told, "if", "" if alone else part.says)
            for part in proofs
            for told in part.readings
        ]
        places = [Condition(self.places, "for")] if self.places else []
        return (*places, *map(Condition, self.under), *readings)

    @property
    def line(self) -> str:
        """The verdict with all its conditions."""
        return verdict_line(self.verdict, self.conditions)


class RequirementRecord(Record):
    """What a document requires of an encoding, and whether the laws grant it."""

    encoding: str
    id: str
    document: str
    says: str
    verdict: Literal["met", "not met", "open"]
    because: tuple[tuple[str, str], ...] = Field(
        description="The laws that decide it, or leave it open, each with its verdict in words."
    )


class BrokenEncoding(Record):
    """An encoding that cannot be used, by name, and why."""

    name: str
    error: str
    traceback: Traceback = ""


class TableRecord(Record):
    """Encodings × laws.  A card is a table of one encoding."""

    version: Literal[3] = 3
    made: str = Field(description="Date and time of creation, in ISO format.")
    attnproof: str
    encodings: tuple[EncodingRecord, ...]
    laws: tuple[LawRecord, ...]
    cells: tuple[CellRecord, ...]
    requirements: tuple[RequirementRecord, ...] = Field(
        default=(), description="The requirements whose laws are all in the table, by encoding."
    )
    broken: tuple[BrokenEncoding, ...] = ()
    unfinished: tuple[str, ...] = Field(
        default=(),
        description="Encodings that an interrupted run did not reach or did not complete.",
    )
    seconds: float = Field(ge=0)

    @property
    def ok(self) -> bool:
        """Whether nothing is broken, misread or unfinished, and no code raised."""
        stopped = any(cell.error or cell.verdict == "internal error" for cell in self.cells)
        return not (self.broken or self.unfinished or stopped)

    def cell(self, encoding: str, law: str) -> CellRecord:
        """Return the cell of these two ids."""
        return next(c for c in self.cells if (c.encoding, c.law) == (encoding, law))
