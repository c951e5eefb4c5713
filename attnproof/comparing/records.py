"""The record of two programs that were compared."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from pydantic import AwareDatetime, Field

from .. import __version__
from ..evidence import Record
from ..real_code.records import Real, SeenRecord
from ..verdict_line import Condition, verdict_line

if TYPE_CHECKING:
    from ..programs.equal.classes import Classes
    from ..programs.equal.deciding import Verdict
    from ..programs.equal.sides import Side, Told

SameVerdict = Literal[
    "proved", "exact", "measured", "undecided", "counterexample", "internal error"
]


class ProgramRecord(Record):
    """One of the two programs: where it stands and how it was called."""

    target: str
    name: str
    place: str = Field(description="File and line.")
    call: str = Field(description="How it was called, in axis letters.")
    arguments: dict[str, str] = Field(
        description="For each array that it takes, the shared array that it was given."
    )


class StepRecord(Record):
    """A step of a program that the other does not do."""

    operation: str
    place: str
    text: str

    def __str__(self) -> str:
        return f"{self.operation} at {self.place}: {self.text}" if self.place else self.operation


class PartedRecord(Record):
    """Where the two programs begin to do otherwise."""

    first: StepRecord | None
    second: StepRecord | None


class EqualRecord(Record):
    """Whether two programs are one function, how that is known, and under which conditions."""

    schema_version: Literal[1] = 1
    made: AwareDatetime
    attnproof: str
    python: str
    first: ProgramRecord
    second: ProgramRecord
    verdict: SameVerdict
    why: str
    line: str = Field(description="The line of the verdict, with every condition.")
    conditions: tuple[Condition, ...] = Field(description="Under which it is proved.")
    counterexample: SeenRecord | None
    parted: PartedRecord | None
    error: Real = Field(description="The largest difference that was met, beside its bound.")
    bound: Real = Field(description="What rounding allows there.")
    calls: int = Field(ge=0, description="How many calls of both were compared.")
    formats: tuple[str, ...]
    weights: tuple[str, ...] = Field(description="Parameters that both programs were given.")
    remarks: tuple[str, ...]
    seed: int
    seconds: float = Field(ge=0)
    again: str = Field(description="The command that shows it again.")
    traceback: str = Field(default="", description="Of an error of attnproof itself; else empty.")


class MemberRecord(Record):
    """A program of a class, and how it is known to be the same as the first."""

    target: str
    verdict: SameVerdict
    line: str = Field(description="The line of the verdict, with every condition.")


class ClassRecord(Record):
    """Programs that are one function."""

    first: str
    others: tuple[MemberRecord, ...]


class ApartRecord(Record):
    """Two programs that are not known to be one function."""

    first: str
    second: str
    verdict: SameVerdict | Literal["not comparable"]
    why: str
    counterexample: SeenRecord | None = None
    parted: PartedRecord | None = None


class ClassesRecord(Record):
    """Programs in classes of equal ones."""

    schema_version: Literal[1] = 1
    made: AwareDatetime
    attnproof: str
    classes: tuple[ClassRecord, ...]
    apart: tuple[ApartRecord, ...]
    seconds: float = Field(ge=0)


def classes_record(found: Classes, seconds: float) -> ClassesRecord:
    """The record of classes that were found."""
    return ClassesRecord(
        made=datetime.now(UTC),
        attnproof=__version__,
        seconds=seconds,
        classes=tuple(
            ClassRecord(
                first=each.first.name,
                others=tuple(
                    MemberRecord(target=told.name, verdict=one.verdict, line=line_of(one))
                    for told, one in each.others
                ),
            )
            for each in found.found
        ),
        apart=tuple(_apart(*one) for one in found.apart),
    )


def _apart(first: Told, second: Told, found: Verdict | str) -> ApartRecord:
    if isinstance(found, str):
        return ApartRecord(
            first=first.name, second=second.name, verdict="not comparable", why=found
        )
    seen = None if found.seen is None else SeenRecord.of(found.seen)
    return ApartRecord(
        first=first.name,
        second=second.name,
        verdict=found.verdict,
        why=found.why,
        counterexample=seen,
        parted=None if found.parted is None else PartedRecord.of(found.parted),
    )


def line_of(found: Verdict) -> str:
    """The line of a verdict, with every condition."""
    if found.verdict == "proved":
        return verdict_line("proved", found.assuming, how=found.why)
    return f"{found.verdict}: {found.why}"


def equal_record(found: Verdict, targets: tuple[str, str], again: str, seed: int) -> EqualRecord:
    """The record of what was found."""
    both, looked = found.two, found.looked
    return EqualRecord(
        made=datetime.now(UTC),
        attnproof=__version__,
        python=platform.python_version(),
        first=_program(both.first, targets[0]),
        second=_program(both.second, targets[1]),
        verdict=found.verdict,
        why=found.why,
        line=line_of(found),
        conditions=found.assuming,
        counterexample=None if found.seen is None else SeenRecord.of(found.seen),
        parted=None if found.parted is None else PartedRecord.of(found.parted),
        error=looked.error,
        bound=looked.bound,
        calls=looked.tried,
        formats=looked.formats,
        weights=both.weights,
        remarks=found.remarks,
        seed=seed,
        seconds=found.seconds,
        again=again,
        traceback=found.traceback,
    )


def _program(side: Side, target: str) -> ProgramRecord:
    arguments = {
        name: told if isinstance(told, str) else _written(told) for name, told in side.made.items()
    }
    arguments |= {name: told.text for name, told in side.weights.items()}
    return ProgramRecord(
        target=target, name=side.program.name, place=side.place, call=side.line, arguments=arguments
    )


def _written(told: object) -> str:
    if isinstance(told, tuple):
        parts, axis = told
        return f"{', '.join(parts)} joined along {axis}"
    return getattr(told, "text", str(told))
