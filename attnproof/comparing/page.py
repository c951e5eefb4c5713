"""Two programs on a terminal page: the verdict, its conditions, the counterexample, the steps."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from ..document import COLOURS, SIGNS, short
from ..real_code.words import witness_lines
from .records import ClassesRecord, EqualRecord, PartedRecord, ProgramRecord, StepRecord

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


def classes_page(record: ClassesRecord, width: int = WIDEST) -> list[Line]:
    """The lines of a page of classes with their styles."""
    return list(_class_lines(record, min(width, WIDEST)))


def _class_lines(record: ClassesRecord, width: int) -> Iterator[Line]:
    count = sum(1 + len(each.others) for each in record.classes)
    yield f"{count} programs in {len(record.classes)} classes; {record.seconds:.1f} s", "bold"
    for number, each in enumerate(record.classes, 1):
        yield "", ""
        yield f"{number}  {each.first}", "bold"
        for one in each.others:
            sign = SIGNS[one.verdict]
            yield from _filled(f"   {sign} {one.target}: {one.line}", width, 7, COLOURS[sign])
    if record.apart:
        yield "", ""
        yield "between classes", "bold"
    for pair in record.apart:
        sign = SIGNS.get(pair.verdict, "✗" if pair.verdict == "counterexample" else "–")
        told = f"   {sign} {pair.first}, {pair.second}: {pair.verdict}, {pair.why}"
        yield from _filled(told, width, 7)
        if pair.parted is not None:
            yield from _parted(pair.parted, width)
