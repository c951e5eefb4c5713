"""Evidence: the parts of a record that say how a verdict is known.

The models are strict and frozen, refuse unknown fields, and refuse NaN and infinity.  What is
measured, or exact, is recorded as :mod:`attnproof.numeric.results` has it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from ..numeric.results import ExactEvidence, MeasuredEvidence
from .document import Shown
from .verdict_line import Condition

Verdict = Literal["proved", "refuted", "ill-typed", "misread", "undecided", "internal error"]
Traceback = Annotated[
    str, Field(description="Traceback of an error of attnproof itself; empty if there was none.")
]


class Record(BaseModel):
    """The base of every record."""

    model_config = ConfigDict(
        strict=True, frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True
    )

    @classmethod
    def of(cls, found: object, **more: object) -> Self:
        """Return the record of what was found; each field is read by name, or given in ``more``."""
        if more:
            there = (name for name in cls.model_fields if name not in more)
            found = {name: getattr(found, name) for name in there if hasattr(found, name)} | more
        return cls.model_validate(found, from_attributes=True)

    @classmethod
    def read(cls, told: object) -> Self:
        """Return the record from plain data, in which lists stand for tuples."""
        return cls.model_validate(told, strict=False)


class ShownRecord(Shown, Record):
    """A record that displays itself, as Python returns it; its fields are those of the record."""

    @classmethod
    def showing(cls, record: Record) -> Self:
        """Return the same record as an instance of this class, which has the same fields."""
        fields = {name: getattr(record, name) for name in type(record).model_fields}
        return cls.model_construct(record.model_fields_set, **fields)

    def to_json(self) -> str:
        """Return the record as JSON."""
        return self.model_dump_json(indent=1) + "\n"


def schema_text(kind: type[BaseModel]) -> str:
    """Return the JSON schema of a record, as ``attnproof schema`` prints it."""
    schema = kind.model_json_schema(mode="serialization")
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def write_json(record: BaseModel, file: Path) -> Path:
    """Write the record as JSON; a reader sees the old file or the new one, never half of it."""
    text = record.model_dump_json(indent=1) + "\n"
    if file.exists() and not file.is_file():  # a pipe or a device must not be replaced
        file.write_text(text, encoding="utf-8")
        return file
    partial = file.with_name(f".{file.name}.partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(file)
    return file


class Formula(Record):
    """A formula twice: LaTeX for a page, one line of plain text for a terminal."""

    latex: str
    text: str


class UseRecord(Record):
    """A fact that a proof rests on: a law or an earlier conclusion, at the values used."""

    formula: Formula
    source: str = Field(description="The conclusion that it comes from; empty for a hypothesis.")


class ProvedEvidence(Record):
    """The kernel replayed every step, for all sizes."""

    kind: Literal["proved"] = "proved"
    says: str
    instance: Formula | None = Field(
        default=None, description="For an existence statement: the array that satisfies it."
    )
    uses: tuple[UseRecord, ...] = ()
    steps: int = Field(ge=0)
    rules: dict[str, int]
    assumptions: tuple[str, ...]
    readings: tuple[str, ...] = Field(
        default=(),
        description="Conditions under which its expressions have their usual meaning, phrases "
        'that follow "if", '
        "such as divisors that are not 0; part of the verdict.",
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
    gap: str = Field(description="A certified lower bound on |left - right|.")
    certified_by: str


class RefutedEvidence(Record):
    """A witness with a certified gap."""

    kind: Literal["refuted"] = "refuted"
    says: str
    witness: WitnessRecord
    seconds: float = Field(ge=0)


class IllTypedEvidence(Record):
    """The shapes do not fit: what is written has no meaning, at any size."""

    kind: Literal["ill-typed"] = "ill-typed"
    says: str
    error: str = Field(description="The two axes of different lengths that should be equal.")
    seconds: float = Field(ge=0)


class MisreadEvidence(Record):
    """The code, run on numpy, differs from its term: nothing is known about either.

    Numbers are text, as numpy prints them.
    """

    kind: Literal["misread"] = "misread"
    says: str = Field(
        description="The conclusion in which they differ; empty for a hypothesis too."
    )
    part: str = Field(description="The side, step or hypothesis.")
    sizes: dict[str, int]
    values: dict[str, str]
    place: tuple[int, ...]
    code: str = Field(description="The value of the code there.")
    term: str = Field(description="The value of its term there.")
    text: str = Field(description="The whole of it in one line.")
    seconds: float = Field(ge=0)


class SidesRecord(Record):
    """One conclusion at small sizes: both sides as SymPy expressions."""

    says: str
    relation: str
    left: Formula
    right: Formula


class DerivedEvidence(Record):
    """What SymPy derived independently, from the code, at explicit sizes; no term is used."""

    kind: Literal["derived"] = "derived"
    says: str = ""
    status: Literal["derived", "refused", "not derived"]
    why: str = Field(description="Why it was not derived, or where it is known to fail.")
    sizes: tuple[dict[str, int], ...] = Field(
        description="The sizes at which every conclusion was derived, or at which one was refused."
    )
    cases: int = Field(
        ge=0,
        description="Number of choices of permutations, maps, masks, indices and natural numbers.",
    )
    all_cases: int = Field(ge=0, description="Number of such choices at these sizes.")
    natural: bool = Field(description="Whether natural numbers were restricted to 0 to 3.")
    sides: tuple[SidesRecord, ...] = Field(
        default=(), description="The conclusions at the first sizes, if they are short."
    )
    seconds: float = Field(ge=0)


class UndecidedEvidence(Record):
    """Neither proved nor refuted, or not measured because something failed."""

    kind: Literal["undecided"] = "undecided"
    says: str
    why: str
    seconds: float = Field(ge=0)


class InternalErrorEvidence(Record):
    """Code of attnproof raised: nothing is known from there, and attnproof must be fixed."""

    kind: Literal["internal error"] = "internal error"
    says: str
    why: str = Field(description="The side that stopped, the exception, and where it was raised.")
    traceback: str
    seconds: float = Field(ge=0)


def limits(evidence: Iterable[Evidence], assumed: Iterable[Formula] = ()) -> tuple[Condition, ...]:
    r"""Return the conditions of a proof: the hypotheses, then what each conclusion needs.

    What all conclusions need appears once; what one needs, with its name.

    >>> x = Formula(latex=r"x \ne 0", text="x ≠ 0")
    >>> proof = ProvedEvidence(says="", steps=1, rules={}, assumptions=(), readings=("n ≥ m",),
    ...     seconds=0.0)
    >>> [one.text for one in limits([proof], [x])]
    ['x ≠ 0', 'n ≥ m']
    """
    proofs = [e for e in evidence if isinstance(e, ProvedEvidence)]
    found = [Condition(hypothesis.text) for hypothesis in assumed]
    for proof in proofs:
        for reading in proof.readings:
            everywhere = all(reading in other.readings for other in proofs)
            found.append(Condition(reading, of="" if everywhere else proof.says))
    return tuple(dict.fromkeys(found))


Evidence = Annotated[
    ProvedEvidence
    | RefutedEvidence
    | IllTypedEvidence
    | MisreadEvidence
    | MeasuredEvidence
    | ExactEvidence
    | DerivedEvidence
    | UndecidedEvidence
    | InternalErrorEvidence,
    Field(discriminator="kind"),
]
