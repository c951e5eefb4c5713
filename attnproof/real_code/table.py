"""The terminal page of a check: what is broken, what is proved, other laws, what the code is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from rich.console import Console, ConsoleOptions, Group, OverflowMethod, RenderResult
from rich.table import Table
from rich.text import Text

from ..documents.document import COLOURS, EMPTY, Line, Part, laid_out, short
from ..documents.verdict_line import Condition, clauses
from .page_text import (
    SIGNS,
    broken_lines,
    card_lines,
    counted,
    declaring,
    how,
    left_uncompared,
    outcome_text,
    part_text,
    printed_text,
    unchecked_lines,
    unlike,
    without_proof,
)
from .records import CodeRecord, IdentityRecord, LawOfCodeRecord

NARROW, WIDE = 80, 100
FIRST = ("broken", "unchecked", "proved")  # shown above the others
LONG = 60  # shared conditions longer than this, in characters, get a note
OUTPUT_LINES = 4  # lines of the code's output that are shown


def code_page(record: CodeRecord, width: int = WIDE, *, verbose: bool = False) -> Group:
    """Return the page that ``attnproof check`` prints for one target.

    It shows what is broken, with a witness; what is proved, with its conditions; the other laws,
    one line each; what the code is; and a count of the verdicts.  ``verbose``: also the laws that
    were not asked, and no line is cut.
    """
    at = max(NARROW, min(width, WIDE))
    return laid_out(_code(record, at, verbose), at)


def _code(record: CodeRecord, width: int, verbose: bool) -> Iterator[Part]:
    laws = [law for law in record.asked if law.law not in record.unfinished]
    proved = [law for law in laws if law.verdict == "proved"]
    rest = sorted((law for law in laws if law.verdict not in FIRST), key=_order)
    yield from _head(record)
    yield from _failed(record)
    notes = 0
    for part in filter(None, (proved, rest)):
        shared = _shared(part)
        notes += bool(shared)
        whole, note = verbose or part is proved, f"[{notes}]"
        header = part is proved or not proved
        yield from (EMPTY, _rows(part, width, whole=whole, header=header, noted=shared, note=note))
        if shared:
            yield _line(f"  {note} {', '.join(clauses(shared))}")
    yield from _below(record, verbose=verbose)
    if record.laws:
        told = f"{counted(record)}. {record.seconds:.1f} s"
        if record.stored is not None:
            told += f" (unchanged since {record.stored:%Y-%m-%d %H:%M} UTC)"
        yield from (EMPTY, _line(told, "bold"))
        if outcome := outcome_text(record):
            yield _line(outcome, "yellow")


def _order(law: LawOfCodeRecord) -> int:
    """Return a sort key that puts laws not known to hold above the others."""
    return ("internal error", "undecided", "exact", "measured").index(law.verdict)


def identity_page(record: CodeRecord, width: int = WIDE) -> Group:
    """Return the page that ``attnproof identify`` prints for one target."""
    parts = (_head(record), _identity(record.identity), _remarks(record), _notes(record))
    return laid_out(chain(*parts), max(NARROW, min(width, WIDE)))


def _line(text: str, style: str = "") -> Line:
    """Return a line with a hanging indent; a command to be copied is not wrapped."""
    return Line(text, style, None if text.lstrip().startswith("again: ") else 2)


def _head(record: CodeRecord) -> Iterator[Line]:
    yield _line(f"{record.name or record.target}  {record.kind}".rstrip(), "bold")
    if record.name:
        yield _line(record.target, "dim")
    if record.adapted:
        yield _line(record.adapted, "dim")
    if record.declared:
        yield _line(f"declared: {record.declared}", "dim")
    if record.why:
        first, *more = record.why.splitlines()
        yield _line(f"! cannot be run: {first}", "red")
        yield from (_line(f"  {line}") for line in more)


def _failed(record: CodeRecord) -> Iterator[Line]:
    """Yield the first broken law in full, the others briefly, then unchecked declarations."""
    for number, law in enumerate(record.broken):
        yield EMPTY
        if number == 0:
            yield from (_line(line) for line in broken_lines(law))
        else:
            yield _line(f"✗ {law.law}: {law.why}")
            yield _line(f"  again: {law.again}")
    for law in record.unchecked:
        yield EMPTY
        yield _line(f"✗ {law.law}: {law.why}")


def _rows(
    laws: Iterable[LawOfCodeRecord],
    width: int,
    *,
    whole: bool,
    header: bool = True,
    noted: Sequence[Condition] = (),
    note: str = "",
) -> Table:
    """Return a table with a row per law: sign, law, verdict, how it is known, error and bound.

    Laws that hold under the same conditions are listed beside these, joined by a bar.  Unless
    ``whole``, a row is cut to one line if it has no conditions.  Conditions that are ``noted`` are
    replaced by the number of their ``note``.
    """
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
    for told, group in _alike(laws, noted, note):
        sign = SIGNS[group[0].verdict]
        own = set(group[0].assuming) - set(noted)
        text = Text(told, overflow="fold", no_wrap=False) if own else Text(told)
        shown.add_row(
            *(
                Text("\n".join(cell), style)
                for cell, style in (
                    ([sign for _ in group], COLOURS[sign]),
                    ([law.law for law in group], ""),
                    ([law.verdict for law in group], COLOURS[sign]),
                )
            ),
            _Beside(told, len(group)) if len(group) > 1 else text,
            Text("\n".join(short(law.error) for law in group)),
            Text("\n".join(short(law.bound) for law in group)),
        )
    return shown


class _Beside:
    """Conditions shared by several laws, as "each ..", behind a bar as high as both."""

    def __init__(self, told: str, laws: int) -> None:
        self.told, self.laws = told, laws

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = list(Text(f"each {self.told}").wrap(console, options.max_width - 2))
        lines += [Text()] * (self.laws - len(lines))
        yield from (Text("│ ", "dim").append_text(line) for line in lines)


def _shared(laws: Sequence[LawOfCodeRecord]) -> tuple[Condition, ...]:
    """Return the conditions common to all laws that have conditions, if they are long.

    If such laws all share one row, nothing is returned: the row states the conditions once anyway.
    """
    under = [group[0].assuming for _, group in _alike(laws) if group[0].assuming]
    if len(under) < 2:
        return ()
    found = tuple(one for one in under[0] if all(one in conditions for conditions in under))
    return found if len(", ".join(clauses(found))) > LONG else ()


def _alike(
    laws: Iterable[LawOfCodeRecord], noted: Sequence[Condition] = (), note: str = ""
) -> Iterator[tuple[str, list[LawOfCodeRecord]]]:
    """Yield how laws are known, with those laws; equal verdicts and conditions are grouped."""
    found: dict[tuple[str, ...], list[LawOfCodeRecord]] = {}
    for law in laws:
        alone = () if law.assuming else (law.law,)
        found.setdefault((how(law, noted, note), law.verdict, *alone), []).append(law)
    return ((told, group) for (told, *_), group in found.items())


def _below(record: CodeRecord, *, verbose: bool) -> Iterator[Line]:
    """Yield the laws not reached or not asked, what the code is, and notes."""
    yield from (_line(line, "dim") for line in unchecked_lines(record, verbose=verbose))
    if told := left_uncompared(record):
        yield _line(f"? {told}", "yellow")
    if record.identity is not None:
        yield EMPTY
        yield _line(f"it is: {record.identity.sentence}", "bold")
    yield from _remarks(record)
    if record.card is not None:
        yield EMPTY
        yield from (_line(line) for line in card_lines(record.card, verbose=verbose))
        yield EMPTY
    yield from _notes(record)
    if told := declaring(record):
        yield _line(told, "dim")


def _identity(identity: IdentityRecord | None) -> Iterator[Line]:
    """Yield the sentence, then each part with its evidence, then answers."""
    if identity is None:
        return
    yield EMPTY
    yield _line(identity.sentence, "bold")
    for part in identity.parts:
        doubt = "" if part.certain else " (other values would fit as well)"
        yield _line(f"  {part.name}: {part_text(part)}{doubt}; {part.evidence}")
    yield from (_line(answer) for answer in identity.answers)


def _remarks(record: CodeRecord) -> Iterator[Line]:
    """Yield what is unusual about the code, given what it says of itself."""
    yield from (_line(f"remark: {one.sentence}", "yellow") for one in record.remarks)


def _notes(record: CodeRecord) -> Iterator[Line]:
    """Yield what was traced, what did not finish, and what the code printed."""
    traced = record.traced
    findings = [one for law in record.laws for one in law.findings]
    proved = any(law.verdict == "proved" for law in record.laws)
    if traced is not None and (why := without_proof(traced, findings, proved=proved)):
        yield _line(why, "dim")
    if traced is not None and (proved or not traced.why):
        unread = f"; not read: {', '.join(traced.unread)}" if traced.unread else ""
        told = (
            "; proofs are about the graph in exact arithmetic, for all inputs and weights" * proved
        )
        yield _line(f"its graph has {traced.operations} operations{unread}{told}", "dim")
        apart = unlike(findings)
        yield from (_line(f"! not proved: {why}", "yellow") for why in apart[:1])
    yield from (
        _line(f"! {method.method}: {method.why}", "yellow")
        for method in record.methods
        if method.why
    )
    if told := printed_text(record):
        yield _line(told, "dim")
    if record.stopped:
        yield EMPTY
        told, *again = record.stopped.split("\n")
        yield _line(f"! {told}", "red")
        yield from (_line(f"  {line}") for line in again)
        said = record.said.splitlines()[-OUTPUT_LINES:]
        if said:
            yield _line("  its last output:", "dim")
        yield from (_line(f"    {line.strip()}", "dim") for line in said)
