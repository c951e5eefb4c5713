"""Code on a terminal page: a row for each law, the first broken one in full, what the code is."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import fill
from typing import TYPE_CHECKING

from .records import CodeRecord, IdentityRecord
from .words import (
    SIGNS,
    STYLES,
    broken_lines,
    counted,
    declaring,
    how,
    part_told,
    printed_told,
    set_aside,
    short,
    why_not_zero,
)

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table
    from rich.text import Text

__all__ = ["code_page", "identity_page"]

NARROW, WIDE = 80, 100
FEW = 4  # lines of what the code printed


def code_page(record: CodeRecord, width: int = WIDE) -> Group:
    """What ``attnproof check`` prints of one target."""
    from rich.console import Group
    from rich.text import Text

    at = max(NARROW, min(width, WIDE))
    asked = len(record.asked) > len(record.unfinished)
    parts: list[RenderableType] = [*_lines(_head(record), at)]
    if asked:
        parts += [Text(), _rows(record, at)]
    parts += _lines(_below(record), at)
    if record.laws:
        parts += [Text(), Text(f"{counted(record)}. {record.seconds:.1f} s", "bold")]
    return Group(*parts)


def identity_page(record: CodeRecord, width: int = WIDE) -> Group:
    """What ``attnproof identify`` prints of one target."""
    from rich.console import Group

    at = max(NARROW, min(width, WIDE))
    parts = [*_head(record), *_identity(record.identity), *_notes(record)]
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
            line.strip(), width, initial_indent=indent, subsequent_indent=f"{indent}  ",
            break_on_hyphens=False,
        )  # fmt: skip
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


def _rows(record: CodeRecord, width: int) -> Table:
    """One row a law: sign, law, verdict, how it is known, error and bound."""
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim")
    shown.width = width
    shown.add_column("", width=1)
    shown.add_column("law", no_wrap=True)
    shown.add_column("verdict", no_wrap=True)
    shown.add_column("how it is known", ratio=1, overflow="fold")
    shown.add_column("error", justify="right", no_wrap=True)
    shown.add_column("bound", justify="right", no_wrap=True)
    for law in record.asked:
        if law.law in record.unfinished:
            continue
        sign = SIGNS[law.verdict]
        shown.add_row(
            Text(sign, STYLES[sign]), Text(law.law), Text(law.verdict, STYLES[sign]),
            Text(how(law)), Text(short(law.error)), Text(short(law.bound)),
        )  # fmt: skip
    return shown


def _below(record: CodeRecord) -> Iterator[Line]:
    """Laws set aside, the first broken law, what the code is, notes."""
    yield from ((line, "dim") for line in set_aside(record))
    if record.broken:
        first, *more = record.broken
        yield "", ""
        yield from ((line, "") for line in broken_lines(first))
        if more:
            yield f"  broken as well: {', '.join(law.law for law in more)}", ""
    if record.identity is not None:
        yield "", ""
        yield f"it is: {record.identity.sentence}", "bold"
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
    yield from ((f"! {leg.leg}: {leg.why}", "yellow") for leg in record.legs if leg.why)
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
    if told := why_not_zero(record):
        yield told, "yellow"
