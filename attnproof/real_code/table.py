"""Code on a terminal page: what is broken, what is proved, the other laws, what the code is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from textwrap import fill
from typing import TYPE_CHECKING

from ..document import COLOURS, short
from .records import CodeRecord, IdentityRecord, LawOfCodeRecord
from .words import (
    SIGNS,
    broken_lines,
    card_lines,
    counted,
    declaring,
    how,
    outcome_told,
    part_told,
    printed_told,
    set_aside,
    unlike,
)

if TYPE_CHECKING:
    from rich.console import Group, OverflowMethod, RenderableType
    from rich.table import Table
    from rich.text import Text

NARROW, WIDE = 80, 100
FIRST = ("broken", "unchecked", "proved")  # these stand above the rest
FEW = 4  # lines of what the code printed


def code_page(record: CodeRecord, width: int = WIDE, *, verbose: bool = False) -> Group:
    """What ``attnproof check`` prints of one target.

    What is broken, with a witness; what is proved, with its conditions; the other laws, a line
    each; what the code is; and last how many laws have which verdict.  ``verbose``: the laws that
    were not asked as well, and no line is cut.
    """
    from rich.console import Group
    from rich.text import Text

    at = max(NARROW, min(width, WIDE))
    laws = [law for law in record.asked if law.law not in record.unfinished]
    proved = [law for law in laws if law.verdict == "proved"]
    rest = sorted((law for law in laws if law.verdict not in FIRST), key=_order)
    parts: list[RenderableType] = [*_lines(_head(record), at), *_lines(_failed(record), at)]
    if proved:
        parts += [Text(), _rows(proved, at, whole=True)]
    if rest:
        parts += [Text(), _rows(rest, at, whole=verbose, header=not proved)]
    parts += _lines(_below(record, verbose=verbose), at)
    if record.laws:
        told = f"{counted(record)}. {record.seconds:.1f} s"
        if record.stored is not None:
            told += f" (unchanged since {record.stored:%Y-%m-%d %H:%M} UTC)"
        parts += [Text(), *_lines(iter([(told, "bold")]), at)]
        if outcome := outcome_told(record):
            parts += _lines(iter([(outcome, "yellow")]), at)
    return Group(*parts)


def _order(law: LawOfCodeRecord) -> int:
    """What is not known to hold stands above what is."""
    return ("internal error", "undecided", "exact", "measured").index(law.verdict)


def identity_page(record: CodeRecord, width: int = WIDE) -> Group:
    """What ``attnproof identify`` prints of one target."""
    from rich.console import Group

    at = max(NARROW, min(width, WIDE))
    parts = [
        *_head(record),
        *_identity(record.identity),
        *_remarks(record),
        *_notes(record),
    ]
    return Group(*_lines(iter(parts), at))


Line = tuple[str, str]  # what is said, and its style


def _lines(lines: Iterator[Line], width: int) -> Iterator[Text]:
    """Lines filled to a width; further ones of each stand a little deeper."""
    from rich.text import Text

    for line, style in lines:
        if line.lstrip().startswith("again: "):
            yield Text(line, style, no_wrap=True, overflow="ignore")  # to be copied whole
            continue
        indent = " " * (len(line) - len(line.lstrip(" ")))
        told = fill(
            line.strip(),
            width,
            initial_indent=indent,
            subsequent_indent=f"{indent}  ",
            break_on_hyphens=False,
        )
        yield Text(told, style)


def _head(record: CodeRecord) -> Iterator[Line]:
    yield f"{record.name or record.target}  {record.kind}".rstrip(), "bold"
    if record.name:
        yield record.target, "dim"
    if record.adapted:
        yield record.adapted, "dim"
    if record.declared:
        yield f"declared: {record.declared}", "dim"
    if record.why:
        first, *more = record.why.splitlines()
        yield f"! cannot be run: {first}", "red"
        yield from ((f"  {line}", "") for line in more)


def _failed(record: CodeRecord) -> Iterator[Line]:
    """The first broken law in full, the others in a line each; what is declared and unchecked."""
    for number, law in enumerate(record.broken):
        yield "", ""
        if number == 0:
            yield from ((line, "") for line in broken_lines(law))
        else:
            yield f"✗ {law.law}: {law.why}", ""
            yield f"  again: {law.again}", ""
    for law in record.unchecked:
        yield "", ""
        yield f"✗ {law.law}: {law.why}", ""


def _rows(
    laws: Iterable[LawOfCodeRecord], width: int, *, whole: bool, header: bool = True
) -> Table:
    """One row a law: sign, law, verdict, how it is known, error and bound.

    Not ``whole``: a line each, cut where it is long.
    """
    from rich.table import Table
    from rich.text import Text

    shown = Table(
        box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim", show_header=header
    )
    shown.width = width
    shown.add_column("", width=1)
    shown.add_column("law", no_wrap=True)
    shown.add_column("verdict", no_wrap=True)
    cut: OverflowMethod = "fold" if whole else "ellipsis"
    shown.add_column("how it is known", ratio=1, overflow=cut, no_wrap=not whole)
    shown.add_column("error", justify="right", no_wrap=True)
    shown.add_column("bound", justify="right", no_wrap=True)
    for law in laws:
        sign = SIGNS[law.verdict]
        shown.add_row(
            Text(sign, COLOURS[sign]),
            Text(law.law),
            Text(law.verdict, COLOURS[sign]),
            Text(how(law)),
            Text(short(law.error)),
            Text(short(law.bound)),
        )
    return shown


def _below(record: CodeRecord, *, verbose: bool) -> Iterator[Line]:
    """Laws that were not reached, or not asked; what the code is; notes."""
    yield from ((line, "dim") for line in set_aside(record, verbose=verbose))
    if record.identity is not None:
        yield "", ""
        yield f"it is: {record.identity.sentence}", "bold"
    yield from _remarks(record)
    if record.card is not None:
        yield "", ""
        yield from ((line, "") for line in card_lines(record.card, verbose=verbose))
        yield "", ""
    yield from _notes(record)
    if told := declaring(record):
        yield told, "dim"


def _identity(identity: IdentityRecord | None) -> Iterator[Line]:
    """The sentence, then each part with its evidence, then answers."""
    if identity is None:
        return
    yield "", ""
    yield identity.sentence, "bold"
    for part in identity.parts:
        doubt = "" if part.certain else " (other values would fit as well)"
        yield f"  {part.name}: {part_told(part)}{doubt}; {part.evidence}", ""
    yield from ((answer, "") for answer in identity.answers)


def _remarks(record: CodeRecord) -> Iterator[Line]:
    """What is unusual of the code beside what it says of itself."""
    yield from ((f"remark: {one.sentence}", "yellow") for one in record.remarks)


def _notes(record: CodeRecord) -> Iterator[Line]:
    """What was traced, what did not come to an end, what the code printed."""
    traced = record.traced
    if traced is not None and traced.why:
        yield f"nothing was proved of it: {traced.why}", "dim"
    elif traced is not None:
        unread = f"; not read: {', '.join(traced.unread)}" if traced.unread else ""
        proved = any(law.verdict == "proved" for law in record.laws)
        told = "; proofs are of it in exact arithmetic, for all inputs and weights" * proved
        yield f"its graph has {traced.operations} operations{unread}{told}", "dim"
        apart = unlike(one for law in record.laws for one in law.findings)
        yield from ((f"! not proved: {why}", "yellow") for why in apart[:1])
    yield from (
        (f"! {method.method}: {method.why}", "yellow") for method in record.methods if method.why
    )
    if told := printed_told(record):
        yield told, "dim"
    if record.stopped:
        yield "", ""
        told, *again = record.stopped.split("\n")
        yield f"! {told}", "red"
        yield from ((f"  {line}", "") for line in again)
        said = record.said.splitlines()[-FEW:]
        if said:
            yield "  the last that it printed:", "dim"
        yield from ((f"    {line.strip()}", "dim") for line in said)
