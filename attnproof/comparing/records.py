"""The record of two programs that were compared, and its page on a terminal.

The verdict, its conditions, the counterexample, where they part.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from datetime import UTC, datetime
from textwrap import wrap
from typing import TYPE_CHECKING, Literal

from pydantic import AwareDatetime, Field

from .. import __version__
from ..document import COLOURS, SIGNS, short
from ..evidence import Record
from ..real_code.records import Real, SeenRecord
from ..real_code.words import witness_lines
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


SAYS = {
    "proved": "one function, for all inputs and all lengths of its conditions",
    "exact": "one function where it was run, without rounding in finite fields",
    "measured": "the same up to rounding where it was run; not known beyond",
    "undecided": "not known",
    "counterexample": "two functions",
    "internal error": "a fault of attnproof",
}
WIDEST = 100
Line = tuple[str, str]


def page(record: EqualRecord, width: int = WIDEST) -> list[Line]:
    """The lines of a page with their styles."""
    return list(_lines(record, min(width, WIDEST)))


def _lines(record: EqualRecord, width: int) -> Iterator[Line]:
    sign = SIGNS.get(record.verdict, "✗")
    for name, one in (("first", record.first), ("second", record.second)):
        yield f"{name:<7}{one.target}", "bold"
        yield from _filled(f"       --call '{one.call}'", width, 9, "dim")
        for told in _given(one):
            yield from _filled(f"       {told}", width, 9, "dim")
    yield "", ""
    head = f"{sign} {record.verdict}: {SAYS[record.verdict]}"
    yield head, f"bold {COLOURS[sign]}"
    told = record.line.removeprefix(f"{record.verdict}: ").removeprefix("proved, ")
    yield from _filled(f"  {told}", width, 2)
    if record.counterexample is not None:
        yield "", ""
        for line in witness_lines(record.counterexample):
            yield from _filled(f"  {line}", width, 4)
    if record.parted is not None:
        yield "", ""
        yield "  they part here:", ""
        yield from _parted(record.parted, width)
    for remark in record.remarks:
        yield from _filled(f"  remark: {remark}", width, 4, "yellow")
    yield "", ""
    if record.verdict != "proved":
        yield f"  again: {record.again}", "dim"
    error = f"; largest difference {short(record.error)}, allowed {short(record.bound)}"
    met = error if record.bound and record.verdict != "counterexample" else ""
    calls = "1 call" if record.calls == 1 else f"{record.calls} calls"
    yield f"  {calls} of both compared{met}; {record.seconds:.1f} s", "dim"


def _given(program: ProgramRecord) -> Iterator[str]:
    other = {name: told for name, told in program.arguments.items() if name != told}
    if other:
        yield "given " + ", ".join(f"{name} = {told}" for name, told in other.items())


def _parted(parted: PartedRecord, width: int) -> Iterator[Line]:
    for name, step in (("first", parted.first), ("second", parted.second)):
        yield from _filled(f"    {name:<7}{_step(step)}", width, 11)


def _step(step: StepRecord | None) -> str:
    return "no operation of torch that the other lacks" if step is None else str(step)


def _filled(text: str, width: int, deeper: int, style: str = "") -> Iterator[Line]:
    indent = " " * (len(text) - len(text.lstrip(" ")))
    lines = wrap(
        text.strip(),
        width,
        initial_indent=indent,
        subsequent_indent=" " * deeper,
        break_on_hyphens=False,
        break_long_words=False,
    )
    yield from ((line, style) for line in lines)


def classes_page(record: ClassesRecord) -> Iterator[Line]:
    """The lines of a page of classes with their styles."""
    count = sum(1 + len(each.others) for each in record.classes)
    yield f"{count} programs in {len(record.classes)} classes; {record.seconds:.1f} s", "bold"
    for number, each in enumerate(record.classes, 1):
        yield "", ""
        yield f"{number}  {each.first}", "bold"
        for one in each.others:
            sign = SIGNS[one.verdict]
            yield from _filled(f"   {sign} {one.target}: {one.line}", WIDEST, 7, COLOURS[sign])
    if record.apart:
        yield "", ""
        yield "between classes", "bold"
    for pair in record.apart:
        sign = SIGNS.get(pair.verdict, "✗" if pair.verdict == "counterexample" else "–")
        told = f"   {sign} {pair.first}, {pair.second}: {pair.verdict}, {pair.why}"
        yield from _filled(told, WIDEST, 7)
        if pair.parted is not None:
            yield from _parted(pair.parted, WIDEST)
