"""The record of a run: what was claimed, what was found, and how it is known.

It contains everything that a report shows, and nothing else; how a verdict is known is in
``evidence``.
"""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Final, Literal, Self

from pydantic import AwareDatetime, Field

from ..documents.evidence import Evidence, Formula, Record, Traceback, Verdict, limits
from ..documents.verdict_line import Condition
from .ledger import ClaimVerdict, Document, Kind, Mends, Origin, Role

Outcome = Literal["reproduced", "differs", "failed"]


class RowRecord(Record):
    """One line of a demonstration: our result beside what the document prints."""

    says: str
    ours: str
    printed: str | None = Field(description="Null if the document prints nothing to compare.")
    agrees: bool | None = Field(description="Null if nothing is printed.")
    expected_to_differ: bool = Field(description="Whether the printed value is known to be wrong.")


class DemonstrationRecord(Record):
    """A computation that a document shows, repeated in our own code."""

    id: str
    title: str
    says: str = Field(description="What is computed, in words.")
    remark: str = Field(description="Why the results need not agree, in words; may be empty.")
    claims: tuple[str, ...]
    rows: tuple[RowRecord, ...]
    outcome: Outcome = Field(
        description="reproduced: every printed row agrees; differs: some row does not; failed: it "
        "could not be computed."
    )
    ok: bool = Field(
        description="Whether each printed row agrees, or differs where that is expected."
    )
    why: tuple[str, ...] = Field(description="What contradicts it, one line each.")
    traceback: Traceback = ""
    seconds: float = Field(ge=0)
    stored: AwareDatetime | None = Field(
        default=None,
        description="When it was run, if taken from the store; null if run in this run.",
    )


class DecidingRecord(Record):
    """A statement on which the verdict of a claim rests."""

    id: str = Field(description="Of the theorem.")
    conclusion: str = Field(description="The conclusion meant; empty for the whole statement.")
    control: bool = Field(description="Whether the theorem's negative control is meant.")
    role: Role = Field(
        description="printed: the statement of the document; disproof: its proof refutes that; "
        "corrected: the correct statement."
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
    origin: Origin
    kind: Kind
    says: str = Field(description="Restated, with every hypothesis.")
    verdict: ClaimVerdict
    expected: ClaimVerdict
    ok: bool = Field(
        description="Whether the verdict is as expected and no measurement contradicts it."
    )
    why: tuple[str, ...] = Field(description="What contradicts it, one line each.")
    evidence: str = Field(description="How the verdict is known, in one line.")
    statements: tuple[DecidingRecord, ...]
    demonstrations: tuple[str, ...] = Field(description="Ids of demonstrations of this record.")
    correction: str = Field(description="The correction, in words; may be empty.")
    mends: Literal["", Mends] = Field(
        description="The part that the correction changes; empty if it replaces the conclusion."
    )
    unstated: str = Field(
        description="Why the printed text is not a statement by itself; otherwise empty."
    )
    reason: str = Field(description="Why it is not checkable or undecided, in words.")


SCHEMA_VERSION: Final = 7

Expected = Literal["proved", "refuted", "ill-typed"]
Relation = Literal["=", ">", ">=", "!="]


class DefinitionRecord(Record):
    """A named definition that a statement uses."""

    name: str
    formula: Formula = Field(description="The name, applied to its arguments, = its definition.")
    words: str = Field(description="Description in words; may be empty.")
    uses: tuple[str, ...] = Field(default=(), description="Other definitions in its formula.")


class SizeRecord(Record):
    """A quantified axis length: the statement is about every value from 1 on."""

    name: str
    role: str = Field(description="What it counts: tokens, features, heads, blocks, layers, size.")


class GivenRecord(Record):
    """One given of a statement."""

    name: str
    kind: str
    shape: tuple[str, ...] = Field(description="Its axis lengths; empty for a number.")
    below: str = Field(default="", description="For indices: the length that bounds them.")
    says: str = Field(description="What it is, in words.")


class MeetingRecord(Record):
    """The common normal form of both sides of a link at one index pattern."""

    entry: str = Field(description="The index pattern, in LaTeX; empty for a number.")
    value: Formula


class StepRecord(Record):
    """One kernel step: a rule, the part that it was applied to, and what that became."""

    rule: str
    at: str = Field(
        description="The position in the term, as argument numbers from the root; empty for the "
        "whole."
    )
    inside: tuple[str, ...] = Field(default=(), description="The bound indices in scope.")
    backwards: bool = Field(
        default=False, description="Whether the rule was applied from right to left."
    )
    before: str
    after: str


class LinkRecord(Record):
    """One link of a chain: left, its relation to right, and the reason for it."""

    says: str = Field(description="The conclusion that it belongs to; empty if there is only one.")
    opens: str = Field(
        default="", description="Text that introduces a part of the proof beginning here."
    )
    reason: str
    left: Formula
    relation: Relation = "="
    right: Formula
    steps: int = Field(ge=0, description="Number of kernel steps that were replayed.")
    rules: dict[str, int] = Field(description="How often each kernel rule was used.")
    seconds: float = Field(ge=0)
    proved: bool
    why_not: str = ""
    meeting: tuple[MeetingRecord, ...] = Field(
        default=(), description="The common normal form, one for each index pattern."
    )
    kernel: tuple[StepRecord, ...] = Field(
        default=(), description="The first kernel steps in order; `steps` counts all of them."
    )


class Checked(Record):
    """A statement with what was found about it."""

    says: str = Field(description="In words.")
    statement: Formula = Field(description="If it is ill-typed, the source line, without LaTeX.")
    verdict: Verdict = Field(description="Verdict of the symbolic side.")
    expected: Expected
    ok: bool = Field(
        description="Whether the verdict is as expected and no measurement contradicts it."
    )
    why: tuple[str, ...] = Field(description="What contradicts it, one line each.")
    assumed: tuple[Formula, ...] = Field(description="Its hypotheses.")
    chain: tuple[LinkRecord, ...]
    evidence: tuple[Evidence, ...]

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions of the proof, which are part of the verdict."""
        return limits(self.evidence, self.assumed) if self.verdict == "proved" else ()


class ControlRecord(Checked):
    """The nearby statement with the opposite verdict."""


class StatementRecord(Checked):
    """A statement with its givens; ``ok`` covers its control too, if it has one."""

    title: str
    sizes: tuple[SizeRecord, ...] = Field(description="Quantified sizes, each from 1 on.")
    givens: tuple[GivenRecord, ...]


class ProofRecord(StatementRecord):
    """What ``attnproof.prove`` found about a statement, which need not have a control."""

    schema_version: Literal[1] = 1
    control: ControlRecord | None
    attnproof: str
    created: AwareDatetime
    seconds: float = Field(ge=0)


class TheoremRecord(StatementRecord):
    """One theorem; ``says`` is its statement in words."""

    id: str
    subject: str
    file: str = Field(description="Its file: subject folder and name.")
    claims: tuple[str, ...] = Field(description="Claims of the sources that it decides.")
    sources: tuple[str, ...]
    control: ControlRecord
    code: str = Field(
        default="",
        description="Source code of the functions that state it and its negative control.",
    )
    uses: tuple[str, ...] = Field(
        default=(), description="The definitions that its statement names directly."
    )
    stored: AwareDatetime | None = Field(
        default=None,
        description="When it was checked, if taken from the store; null if checked in this run.",
    )


class BrokenFile(Record):
    """A theorem file, demonstration or ledger that could not be read."""

    file: str
    error: str
    traceback: Traceback = ""


def processor() -> str:
    """Return the model of the processor: kernels are chosen by it, and round differently."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()


class Machine(Record):
    """Where a run took place."""

    python: str
    platform: str
    processors: int = Field(ge=1)
    torch: str = Field(description="Its version; empty if nothing was measured.")
    devices: tuple[str, ...]

    @classmethod
    def here(cls, *, numeric: bool = True) -> Self:
        """Return the machine that this runs on; torch is loaded only if there are numbers."""
        if numeric:
            from ..numeric.devices import devices
        return cls(
            python=platform.python_version(),
            platform=f"{processor()}, {platform.system()} {platform.machine()}",
            processors=os.cpu_count() or 1,
            torch=metadata.version("torch") if numeric else "",
            devices=devices() if numeric else (),
        )


class OptionsRecord(Record):
    """The options of a run."""

    selection: tuple[str, ...] = Field(
        description="Selected ids, subjects, claims and documents; empty for all."
    )
    numeric: bool
    scale: Literal["small", "default", "large"]
    device: str
    dtypes: tuple[str, ...]
    seed: int
    jobs: int = Field(ge=1)


class Results(Record):
    """The record of one run."""

    schema_version: Literal[7] = SCHEMA_VERSION
    attnproof: str = Field(description="The version of attnproof that wrote it.")
    created: AwareDatetime
    seconds: float = Field(ge=0)
    machine: Machine
    options: OptionsRecord
    definitions: tuple[DefinitionRecord, ...] = Field(
        default=(), description="Definitions of the names in the statements."
    )
    theorems: tuple[TheoremRecord, ...]
    documents: tuple[Document, ...] = ()
    claims: tuple[ClaimRecord, ...] = Field(
        default=(), description="In the order of the documents."
    )
    demonstrations: tuple[DemonstrationRecord, ...] = ()
    broken: tuple[BrokenFile, ...]
    unfinished: tuple[str, ...] = Field(description="Ids that an interrupted run did not reach.")
    ok: bool = Field(
        description="Whether every theorem, claim and demonstration is ok, no file is broken, and "
        "nothing is unfinished."
    )
