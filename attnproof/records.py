"""The record of a run: what was claimed, what was found, and how it is known.

Everything a report shows stands here, and nothing else does.  The models are strict and frozen,
refuse fields they do not know, and refuse NaN and infinity: an error that is not a number is the
word ``"non-finite"``, so it cannot be mistaken for an error that was never measured.
"""

from __future__ import annotations

import json
from typing import Annotated, Final, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

__all__ = [
    "SCHEMA_VERSION", "BrokenFile", "DefinitionRecord", "Evidence", "Formula",
    "GivenRecord", "LinkRecord", "Machine", "MeasuredEvidence", "MeetingRecord", "OptionsRecord",
    "ProvedEvidence", "RefutedEvidence", "Results",
    "SizeRecord", "TheoremRecord", "TwinRecord", "UndecidedEvidence", "Verdict", "WitnessRecord",
    "schema_text",
]  # fmt: skip

SCHEMA_VERSION: Final = 1

Verdict = Literal["proved", "refuted", "undecided"]
Expected = Literal["proved", "refuted"]
Status = Literal["held", "violated", "non-finite", "skipped"]
Number = float | Literal["non-finite"]


class Record(BaseModel):
    """The base of every record."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)


class Formula(Record):
    """A formula twice: LaTeX for a page, one line of plain text for a terminal."""

    latex: str
    text: str


class DefinitionRecord(Record):
    """A named definition that a statement uses."""

    name: str
    formula: Formula = Field(description="The name, applied, = what it stands for.")
    words: str = Field(description="What it is, in words; may be empty.")


class SizeRecord(Record):
    """A quantified axis length: the statement is about every value from 1 on."""

    name: str
    role: str = Field(description="What it counts: tokens, features, heads, blocks, layers, size.")


class GivenRecord(Record):
    """One given of a statement."""

    name: str
    kind: str
    shape: tuple[str, ...] = Field(description="Its axis lengths, empty for a number.")
    below: str = Field(default="", description="For indices: the length they stay below.")
    says: str = Field(description="What it is, in words.")


class MeetingRecord(Record):
    """What both sides of a link are at one index pattern: their common normal form."""

    entry: str = Field(description="The index pattern, in LaTeX; empty for a number.")
    value: Formula


class LinkRecord(Record):
    """One link of a chain: left = right (or left > 0), and the reason for it."""

    says: str = Field(description="The conclusion it belongs to; empty if there is only one.")
    reason: str
    left: Formula
    relation: Literal["=", ">"] = "="
    right: Formula
    steps: int = Field(ge=0, description="Kernel steps that were replayed.")
    rules: dict[str, int] = Field(description="How often each kernel rule was used.")
    seconds: float = Field(ge=0)
    proved: bool
    why_not: str = ""
    meeting: tuple[MeetingRecord, ...] = Field(
        default=(), description="Where both sides meet, one for each index pattern."
    )


class ProvedEvidence(Record):
    """The kernel replayed every step, for all sizes."""

    kind: Literal["proved"] = "proved"
    says: str
    instance: Formula | None = Field(
        default=None, description="For an existence: the array that does it."
    )
    steps: int = Field(ge=0)
    rules: dict[str, int]
    assumptions: tuple[str, ...]
    readings: tuple[str, ...] = Field(
        default=(), description="Where it means what it says: divisors not 0, and the like."
    )
    seconds: float = Field(ge=0)


class WitnessRecord(Record):
    """Small inputs for which a claim fails; every number is exact and written as text."""

    sizes: dict[str, int]
    values: dict[str, str]
    text: str
    place: tuple[int, ...]
    left: str
    right: str
    gap: str = Field(description="A number that |left - right| certainly reaches.")
    certified_by: str


class RefutedEvidence(Record):
    """A witness, its gap certified."""

    kind: Literal["refuted"] = "refuted"
    says: str
    witness: WitnessRecord
    seconds: float = Field(ge=0)


class MeasuredEvidence(Record):
    """One implementation, on one device and dtype, against the statement."""

    kind: Literal["measured"] = "measured"
    says: str
    implementation: str
    device: str
    dtype: str
    sizes: dict[str, int]
    seed: int
    sampled: str = Field(description="What was looked at, in words.")
    error: Number | None = Field(description="The difference there; null only when skipped.")
    tolerance: Number | None = Field(description="The rounding bound at that place.")
    worst: tuple[int, ...] = Field(description="The entry where error over tolerance is largest.")
    seconds: float = Field(ge=0)
    status: Status
    reason: str
    rounding: str = Field(default="", description="The model behind the tolerance, in words.")


class UndecidedEvidence(Record):
    """Neither proved nor refuted, or not measured because something failed."""

    kind: Literal["undecided"] = "undecided"
    says: str
    why: str
    seconds: float = Field(ge=0)


Evidence = Annotated[
    ProvedEvidence | RefutedEvidence | MeasuredEvidence | UndecidedEvidence,
    Field(discriminator="kind"),
]


class Checked(Record):
    """A statement with what was found out about it."""

    says: str = Field(description="In words.")
    statement: Formula
    verdict: Verdict = Field(description="Of the symbolic side; never rounded up.")
    expected: Expected
    ok: bool = Field(description="The verdict is the expected one and no number speaks against it.")
    why: tuple[str, ...] = Field(description="What speaks against it, a line each.")
    chain: tuple[LinkRecord, ...]
    evidence: tuple[Evidence, ...]


class TwinRecord(Checked):
    """The nearby statement with the opposite verdict."""


class TheoremRecord(Checked):
    """One theorem; ``says`` is its statement in words, ``ok`` counts its twin as well."""

    id: str
    title: str
    subject: str
    file: str = Field(description="Its file: subject folder and name.")
    claims: tuple[str, ...] = Field(description="Claims of the sources that it settles.")
    sources: tuple[str, ...]
    sizes: tuple[SizeRecord, ...] = Field(description="Quantified sizes: all of them, from 1 on.")
    givens: tuple[GivenRecord, ...]
    assumed: tuple[Formula, ...] = Field(description="Hypotheses of the statement.")
    twin: TwinRecord


class BrokenFile(Record):
    """A theorem file that could not be read."""

    file: str
    error: str


class Machine(Record):
    """Where it ran."""

    python: str
    platform: str
    processors: int = Field(ge=1)
    torch: str = Field(description="Its version; empty when no numbers were asked for.")
    devices: tuple[str, ...]


class OptionsRecord(Record):
    """How it was asked for."""

    selection: tuple[str, ...] = Field(description="Ids and subjects; empty for the catalogue.")
    numeric: bool
    scale: Literal["small", "default", "large"]
    device: str
    dtypes: tuple[str, ...]
    seed: int
    jobs: int = Field(ge=1)


class Results(Record):
    """One run."""

    schema_version: Literal[1] = SCHEMA_VERSION
    attnproof: str = Field(description="The version that wrote it.")
    created: AwareDatetime
    seconds: float = Field(ge=0)
    machine: Machine
    options: OptionsRecord
    definitions: tuple[DefinitionRecord, ...] = Field(
        default=(), description="What the names in the statements stand for."
    )
    theorems: tuple[TheoremRecord, ...]
    broken: tuple[BrokenFile, ...]
    unfinished: tuple[str, ...] = Field(description="Ids that an interrupted run did not reach.")
    ok: bool = Field(description="Every theorem is ok, no file is broken, nothing is unfinished.")


def schema_text() -> str:
    """The JSON schema of :class:`Results`, as it is stored in ``attnproof/schema.json``."""
    schema = Results.model_json_schema(mode="serialization")
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
