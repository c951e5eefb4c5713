"""The records of claims: what a document says, what decides it, what its examples come to."""

from __future__ import annotations

from typing import Literal

from pydantic import AwareDatetime, Field

from .evidence import Record, Verdict

__all__ = [
    "ClaimRecord", "ClaimVerdict", "DecidingRecord", "DemonstrationRecord", "DocumentRecord",
    "Outcome", "Role", "RowRecord",
]  # fmt: skip

ClaimVerdict = Literal[
    "true as written",
    "true under a stated correction",
    "false as written",
    "not checkable",
    "undecided",
]
Role = Literal["printed", "disproof", "corrected"]
Outcome = Literal["reproduced", "differs", "failed"]


class RowRecord(Record):
    """One line of a demonstration: ours beside what the document prints."""

    says: str
    ours: str
    printed: str | None = Field(description="Null where the document prints nothing to compare.")
    agrees: bool | None = Field(description="Null where nothing is printed.")
    expected_to_differ: bool = Field(description="What is printed is known to be wrong.")


class DemonstrationRecord(Record):
    """A computation that a document shows, done again in our own code."""

    id: str
    title: str
    says: str = Field(description="What is computed, in words.")
    remark: str = Field(description="Why ours and theirs need not agree, in words; may be empty.")
    claims: tuple[str, ...]
    rows: tuple[RowRecord, ...]
    outcome: Outcome = Field(
        description="Every printed row agrees; some row does not; it could not be computed."
    )
    ok: bool = Field(description="Each printed row agrees, or differs where that is expected.")
    why: tuple[str, ...] = Field(description="What speaks against it, a line each.")
    traceback: str = Field(
        default="", description="Of an error of attnproof itself; empty where there was none."
    )
    seconds: float = Field(ge=0)
    stored: AwareDatetime | None = Field(
        default=None,
        description="When it was run, if it was found in the store; null if this run did.",
    )


class DocumentRecord(Record):
    """A document whose claims are in the ledger."""

    id: str
    title: str
    kind: str


class DecidingRecord(Record):
    """A statement on which the verdict of a claim rests."""

    id: str = Field(description="Of the theorem.")
    conclusion: str = Field(description="The conclusion that is meant; empty for the whole.")
    control: bool = Field(description="Whether it is the theorem's negative control that is meant.")
    role: Role = Field(
        description="printed: what the document says; disproof: its proof shows that false; "
        "corrected: what is right."
    )
    verdict: Verdict
    known: str = Field(description="How the verdict is known, in one line.")
    conditions: tuple[str, ...] = Field(
        default=(), description="Clauses of the verdict: for .., if .., where .."
    )


class ClaimRecord(Record):
    """A claim of a document; its verdict is derived from what decides it, never stored."""

    id: str
    document: str = Field(description="The id of its document.")
    place: str
    origin: Literal["document", "extension", "cross"]
    kind: Literal[
        "definition", "theorem", "property", "step", "example", "numeric-demo", "convention",
        "heuristic",
    ]  # fmt: skip
    says: str = Field(description="Restated, with every hypothesis.")
    verdict: ClaimVerdict
    expected: ClaimVerdict
    ok: bool = Field(description="The verdict is the expected one and no number speaks against it.")
    why: tuple[str, ...] = Field(description="What speaks against it, a line each.")
    evidence: str = Field(description="How the verdict is known, in one line.")
    statements: tuple[DecidingRecord, ...]
    demonstrations: tuple[str, ...] = Field(description="Ids of demonstrations of this record.")
    correction: str = Field(description="What is right, in words; may be empty.")
    mends: Literal["", "hypothesis", "type", "convention", "wording"] = Field(
        description="What the correction changes; empty if it replaces the conclusion."
    )
    unstated: str = Field(description="Why what is printed is no statement by itself.")
    reason: str = Field(description="Why it is not checkable or undecided, in words.")
