"""Two programs compared: the record, its page, and an assertion for your own tests.

The record has the verdict, its conditions, a counterexample, and where the programs part.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from pydantic import AwareDatetime, Field

from .. import __version__
from ..documents.document import COLOURS, EMPTY, SIGNS, Line, plain_text, short
from ..documents.evidence import Record, Traceback
from ..documents.verdict_line import Condition, clauses, verdict_line
from ..symbolic.faults import Fault
from .page_text import witness_lines
from .records import Real, SeenRecord

if TYPE_CHECKING:
    from ..programs.equal.deciding import Classes, Verdict
    from ..programs.equal.sides import Operand, Side

SameVerdict = Literal[
    "proved", "exact", "measured", "undecided", "counterexample", "internal error"
]


class ProgramRecord(Record):
    """One of the two programs: where it is defined, and how it was called."""

    target: str
    name: str
    place: str = Field(description="File and line.")
    call: str = Field(description="How it was called, in axis letters.")
    arguments: dict[str, str] = Field(
        description="The shared array that is passed for each array argument."
    )


class StepRecord(Record):
    """A step of one program that the other does not have."""

    operation: str
    place: str
    text: str

    def __str__(self) -> str:
        return f"{self.operation} at {self.place}: {self.text}" if self.place else self.operation


class PartedRecord(Record):
    """The first steps in which the two programs differ."""

    first: StepRecord | None
    second: StepRecord | None


class EqualRecord(Record):
    """Whether two programs are the same function, how that is known, and its conditions."""

    schema_version: Literal[1] = 1
    made: AwareDatetime
    attnproof: str
    python: str
    first: ProgramRecord
    second: ProgramRecord
    verdict: SameVerdict
    why: str
    line: str = Field(description="The line of the verdict, with every condition.")
    conditions: tuple[Condition, ...] = Field(description="The conditions of the proof.")
    counterexample: SeenRecord | None
    parted: PartedRecord | None
    error: Real = Field(description="The difference that is largest relative to its bound.")
    bound: Real = Field(description="The rounding bound there.")
    calls: int = Field(ge=0, description="Number of calls of both programs that were compared.")
    formats: tuple[str, ...]
    weights: tuple[str, ...] = Field(description="Parameters that were given to both programs.")
    remarks: tuple[str, ...]
    seed: int
    seconds: float = Field(ge=0)
    again: str = Field(description="The command that reproduces it.")
    traceback: Traceback = ""


class MemberRecord(Record):
    """A program of a class, and how it is known to equal the first."""

    target: str
    verdict: SameVerdict
    line: str = Field(description="The line of the verdict, with every condition.")


class ClassRecord(Record):
    """Programs that are the same function."""

    first: str
    others: tuple[MemberRecord, ...]


class ApartRecord(Record):
    """Two programs that are not known to be the same function."""

    first: str
    second: str
    verdict: SameVerdict | Literal["not comparable"]
    why: str
    counterexample: SeenRecord | None = None
    parted: PartedRecord | None = None
    traceback: str = Field(
        default="", description="Traceback of an error of attnproof itself; otherwise empty."
    )


class ClassesRecord(Record):
    """Programs sorted into classes of equal ones."""

    schema_version: Literal[1] = 1
    made: AwareDatetime
    attnproof: str
    classes: tuple[ClassRecord, ...]
    apart: tuple[ApartRecord, ...]
    seconds: float = Field(ge=0)


def classes_record(found: Classes, seconds: float) -> ClassesRecord:
    """Return the record of the classes that were found."""
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


def _apart(first: Operand, second: Operand, found: Verdict | str | Fault) -> ApartRecord:
    if isinstance(found, Fault):
        return ApartRecord(
            first=first.name,
            second=second.name,
            verdict="internal error",
            why=found.message,
            traceback=found.traceback,
        )
    if isinstance(found, str):
        return ApartRecord(
            first=first.name, second=second.name, verdict="not comparable", why=found
        )
    return ApartRecord.of(
        found, first=first.name, second=second.name, counterexample=found.counterexample
    )


def line_of(found: Verdict) -> str:
    """Return the line of a verdict, with every condition."""
    if found.verdict == "proved":
        return verdict_line("proved", found.assuming, how=found.why)
    how, but, why_not = found.why.partition("; not proved: ")
    return f"{found.verdict}: {', '.join((how, *clauses(found.assuming)))}{but}{why_not}"


def equal_record(found: Verdict, targets: tuple[str, str], again: str, seed: int) -> EqualRecord:
    """Return the record of a comparison."""
    both, compared = found.programs, found.comparison
    return EqualRecord.of(
        found,
        made=datetime.now(UTC),
        attnproof=__version__,
        python=platform.python_version(),
        first=_program(both.first, targets[0]),
        second=_program(both.second, targets[1]),
        line=line_of(found),
        conditions=found.assuming,
        counterexample=found.counterexample,
        error=compared.error,
        bound=compared.bound,
        calls=compared.tried,
        formats=compared.formats,
        weights=both.weights,
        seed=seed,
        again=again,
    )


def _program(side: Side, target: str) -> ProgramRecord:
    arguments = {
        name: told if isinstance(told, str) else _written(told)
        for name, told in side.bindings.items()
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
    "proved": "the same function, for all inputs and all lengths that satisfy its conditions",
    "exact": "the same function where it was run, without rounding in finite fields",
    "measured": "the same function up to rounding where it was run; not known beyond",
    "undecided": "not known",
    "counterexample": "different functions",
    "internal error": "an error of attnproof itself",
}
MAX_WIDTH = 100


def page(record: EqualRecord) -> Iterator[Line]:
    """Yield what ``attnproof equal`` prints."""
    sign = SIGNS.get(record.verdict, "✗")
    for name, one in (("first", record.first), ("second", record.second)):
        yield Line(f"{name:<7}{one.target}", "bold")
        yield Line(f"       --call '{one.call}'", "dim", 2)
        yield from (Line(f"       {told}", hang=2) for told in _given(one))
    yield EMPTY
    yield Line(f"{sign} {record.verdict}: {SAYS[record.verdict]}", f"bold {COLOURS[sign]}")
    told = record.line.removeprefix(f"{record.verdict}: ").removeprefix("proved, ")
    yield Line(f"  {told}", hang=0)
    if record.counterexample is not None:
        yield EMPTY
        yield from (Line(f"  {line}", hang=2) for line in witness_lines(record.counterexample))
    if record.parted is not None:
        yield EMPTY
        what = "they differ" if record.counterexample is not None else "their steps differ"
        yield Line(f"  {what} from here:")
        yield from _parted(record.parted)
    yield from (Line(f"  remark: {remark}", "yellow", 2) for remark in record.remarks)
    yield EMPTY
    if record.verdict != "proved":
        yield Line(f"  again: {record.again}", "dim")
    error = f"; largest difference {short(record.error)}, allowed {short(record.bound)}"
    met = error if record.bound and record.verdict != "counterexample" else ""
    calls = "1 call" if record.calls == 1 else f"{record.calls} calls"
    yield Line(f"  {calls} of both compared{met}; {record.seconds:.1f} s", "dim")


def _given(program: ProgramRecord) -> Iterator[str]:
    other = {name: told for name, told in program.arguments.items() if name != told}
    if other:
        yield "given " + ", ".join(f"{name} = {told}" for name, told in other.items())


def _parted(parted: PartedRecord) -> Iterator[Line]:
    for name, step in (("first", parted.first), ("second", parted.second)):
        told = "no torch operation that the other lacks" if step is None else str(step)
        yield Line(f"    {name:<7}{told}", hang=7)


def classes_page(record: ClassesRecord) -> Iterator[Line]:
    """Yield what ``attnproof classes`` prints."""
    count = sum(1 + len(each.others) for each in record.classes)
    yield Line(f"{count} programs in {len(record.classes)} classes; {record.seconds:.1f} s", "bold")
    for number, each in enumerate(record.classes, 1):
        yield EMPTY
        yield Line(f"{number}  {each.first}", "bold")
        for one in each.others:
            sign = SIGNS[one.verdict]
            yield Line(f"   {sign} {one.target}: {one.line}", COLOURS[sign], 4)
    if record.apart:
        yield EMPTY
        yield Line("between classes", "bold")
    for pair in record.apart:
        sign = SIGNS.get(pair.verdict, "✗" if pair.verdict == "counterexample" else "–")
        told = f"   {sign} {pair.first}, {pair.second}: {pair.verdict}, {pair.why}"
        yield Line(told, hang=4)
        if pair.parted is not None:
            yield from _parted(pair.parted)


class NotEqual(AssertionError):
    """Two programs differ, or are not known to be equal; ``record`` has what was found."""

    def __init__(self, text: str, record: EqualRecord) -> None:
        super().__init__(text)
        self.record = record


def check_equal(
    first: Any,
    second: Any,
    call: str = "",
    other: str = "",
    *,
    where: str = "",
    weights: str = "",
    seed: int = 0,
    seconds: float = 20.0,
) -> EqualRecord:
    """Compare two programs, and return the record of whether they are the same function.

    Each is a function or module, or its target, ``"FILE.py::NAME"``; ``second`` may be a
    specification, such as ``"attention:causal"``.  ``call`` says how both are called, in axis
    letters, and ``other`` how the second is (:mod:`attnproof.programs.signatures.signature`);
    ``where`` and ``weights`` say what stands for its arguments and parameters.

    Raises :class:`~attnproof.programs.signatures.signature.SignatureError` if the two cannot be
    called on the same arrays, and ``ValueError`` for a target that cannot be loaded.

    >>> found = check_equal(lambda x: 2 * x, lambda x: x + x, "x: B n E -> B n E")
    >>> found.verdict
    'proved'
    """
    from ..programs.equal.deciding import compare
    from ..programs.equal.sides import Operand
    from ..programs.equal.specification import is_specification
    from .loading import CannotLoad

    names = tuple(_name(one) for one in (first, second))
    specified = isinstance(second, str) and is_specification(second)
    try:
        told = (
            load_program(first, names[0], call),
            Operand(second, second) if specified else load_program(second, names[1], other or call),
        )
    except CannotLoad as error:
        raise ValueError(str(error)) from None
    found = compare(*told, where=where, weights=weights, seed=seed, seconds=seconds)
    more = [f", call={call!r}"] * bool(call) + [f", other={other!r}"] * bool(other)
    shown = [
        repr(one) if isinstance(one, str) else name
        for one, name in zip((first, second), names, strict=True)
    ]
    more += [f", where={where!r}"] * bool(where) + [f", weights={weights!r}"] * bool(weights)
    again = f"attnproof.testing.check_equal({shown[0]}, {shown[1]}{''.join(more)}, seed={seed})"
    return equal_record(found, (names[0], names[1]), again, seed)


def assert_equal(
    first: Any, second: Any, call: str = "", other: str = "", *, strict: bool = False, **more: Any
) -> EqualRecord:
    """Fail unless two programs are the same function; ``strict``: also unless that is proved.

    Raises :class:`NotEqual` with the page of what was found.

    >>> record = assert_equal(lambda x: x * x, lambda x: x**2, "x: B n E -> B n E")
    """
    __tracebackhide__ = True
    record = check_equal(first, second, call, other, **more)
    if record.verdict in ("counterexample", "internal error") or (
        strict and record.verdict != "proved"
    ):
        raise NotEqual(plain_text(page(record), MAX_WIDTH), record)
    return record


def load_program(thing: Any, name: str, line: str, settings: Iterable[str] = ()) -> Operand:
    """Return a program, or the one at a target.  Raises ``CannotLoad`` and ``ValueError``."""
    from ..programs.equal.sides import Operand
    from .loading import load
    from .request import settings_of

    found = load(thing).thing if isinstance(thing, str) else thing
    return Operand(found, name, line, settings_of(settings))


def _name(thing: Any) -> str:
    return thing if isinstance(thing, str) else getattr(thing, "__name__", type(thing).__name__)
