"""What the terminal shows of a run: progress, verdicts, claims, and what speaks against any."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from textwrap import shorten, wrap
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..documents.document import Line, Part, bar, headed, sign, style, tally, when
from ..documents.evidence import ProvedEvidence
from ..documents.verdict_line import clauses
from ..numeric.results import MeasuredEvidence
from .evidence_words import derivation
from .ledger import VERDICTS
from .records import (
    BrokenFile,
    ClaimRecord,
    ControlRecord,
    DemonstrationRecord,
    Results,
    TheoremRecord,
)

if TYPE_CHECKING:
    from .runner import Outcome


LINE = 300  # characters of a line that speaks against something


def numbers(record: TheoremRecord | ControlRecord) -> str:
    """Return how many measurements held; for a statement expected to be false, were violated.

    Without any measurement it is a dash.
    """
    found = _statuses(record)
    wanted = ("held",) if record.expected == "proved" else ("violated", "non-finite")
    return f"{sum(status in wanted for status in found)}/{len(found)}" if found else "–"


def _statuses(record: TheoremRecord | ControlRecord) -> list[str]:
    return [e.status for e in record.evidence if isinstance(e, MeasuredEvidence)]


def run_page(results: Results) -> Iterator[Part]:
    """Yield the verdicts, what speaks against any of them, and a summary."""
    if results.theorems:
        yield _verdicts(results)
        yield from (Line(line, "dim") for line in _legend(results))
    if results.claims:
        yield ""
        yield counts(results)
    yield from (Line(line, "red") for line in against(results))
    if results.claims:
        yield Line(claims_summary(results), "bold")
    yield Line(summary(results), "bold")
    if told := from_store(results):
        yield Line(told, "bold")


def _verdicts(results: Results) -> Table:
    shown = headed()
    shown.add_column("verdict", no_wrap=True)
    shown.add_column("control", no_wrap=True)
    shown.add_column("steps", justify="right", no_wrap=True)
    shown.add_column("SymPy", no_wrap=True)
    shown.add_column("numbers", justify="right", no_wrap=True)
    shown.add_column("theorem", overflow="ellipsis")  # the progress shows it in full
    for subject, records in groupby(results.theorems, lambda record: record.subject):
        shown.add_row("", "", "", "", "", Text(subject, "bold"))
        for record in records:
            cells = (Text(*_marked(found)) for found in (record, record.control))
            shown.add_row(*cells, _steps(record), _by_sympy(record), numbers(record), record.id)
            for line in conditions(record):
                shown.add_row("", "", "", "", "", Text(line, "dim", overflow="fold"))
    return shown


def conditions(record: TheoremRecord) -> Iterator[str]:
    """Yield the conditions of a proved theorem, or of its negative control, one line each."""
    for whose, found in (("", record), ("its negative control: ", record.control)):
        if told := clauses(found.conditions):
            yield f"{whose}{', '.join(told)}"


def _legend(results: Results) -> Iterator[str]:
    """Yield what the columns mean, and how many measurements were skipped."""
    found = [status for record in results.theorems for status in _statuses(record)]
    held = "; numbers: held (violated, if the statement is false) of all" if found else ""
    yield f"steps: kernel steps{held}"
    yield from _also(results)
    if skipped := found.count("skipped"):
        yield f"{skipped} of {len(found)} measurements skipped; `attnproof show ID` says why"


def _marked(found: TheoremRecord | ControlRecord) -> tuple[str, str]:
    """Return verdict and colour; a theorem's own mark ignores what speaks against its control."""
    other = found.control.why if isinstance(found, TheoremRecord) else ()
    mark = " !" if len(found.why) > len(other) else ""
    return sign(found.verdict) + mark, style(found.verdict)


def _steps(record: TheoremRecord) -> str:
    steps = sum(e.steps for e in record.evidence if isinstance(e, ProvedEvidence))
    return str(steps) if record.verdict == "proved" else "–"


def _by_sympy(record: TheoremRecord) -> str:
    found = derivation(record.evidence)
    return found.status if found is not None else "–"


def against(results: Results) -> Iterator[str]:
    """Yield what speaks against the run, a line each; `attnproof show` has it in full."""
    told = [(record.id, record.why) for record in results.theorems]
    told += [(record.id, record.why) for record in results.demonstrations]
    told += [(record.id, record.why) for record in results.claims]
    for name, why in told:
        yield from (shorten(f"! {name}: {line}", LINE, placeholder=" …") for line in why)
    for broken in results.broken:
        yield f"! {broken.file}: {broken.error}"
    if results.unfinished:
        yield f"! interrupted; not reached: {', '.join(results.unfinished)}"


def summary(results: Results) -> str:
    """Return one line: how many theorems, their verdicts, and how many are entirely as expected."""
    counted = [record.verdict for record in results.theorems]
    verdicts = tally(counted) or "none"
    told = {
        "not as expected": sum(not record.ok for record in results.theorems),
        "claims not as expected": sum(not record.ok for record in results.claims),
        "demonstrations not as expected": sum(not record.ok for record in results.demonstrations),
        "broken": len(results.broken),
        "not reached": len(results.unfinished),
    }
    wrong = ", ".join(f"{count} {what}" for what, count in told.items() if count)
    if bool(wrong) == results.ok:
        raise ValueError(f"the results say ok = {results.ok}, and their parts say {wrong or 'ok'}")
    right = f"{sum(record.ok for record in results.theorems)} as expected in {compared(results)}"
    found = f"{len(counted)} theorem{'s' * (len(counted) != 1)}: {verdicts}"
    return f"{found}; {right}{', ' * bool(wrong)}{wrong}. {results.seconds:.1f} s"


def _also(results: Results) -> Iterator[str]:
    """Yield how many of the proved theorems SymPy derived as well, if it was asked."""
    proved = [record for record in results.theorems if record.verdict == "proved"]
    found = [derivation(record.evidence) for record in proved]
    count = sum(e is not None and e.status == "derived" for e in found)
    if any(found):
        yield f"SymPy: {count} of {len(proved)} proved theorems also derived, at small sizes"


def compared(results: Results) -> str:
    """Return what was compared with what is expected; numbers only if they were asked for."""
    return "verdict, numbers and control" if results.options.numeric else "verdict and control"


def from_store(results: Results) -> str:
    """Return one line: how much of a run was found in the store, and when it was checked."""
    records: list[TheoremRecord | DemonstrationRecord] = [*results.theorems]
    records += results.demonstrations
    times = [record.stored for record in records if record.stored is not None]
    if not times:
        return ""
    what = "theorems and demonstrations" if results.demonstrations else "theorems"
    told = f"{len(times)} of {len(records)} {what} found in the store, checked {when(times)}"
    return f"{told}; --fresh checks again"


WIDE = 110
VERDICT = 20  # "✗ false as written !"
GAP = 2  # between two columns: the padding and the box's own space


def claims_page(
    results: Results, width: int, verdicts: Collection[str] = VERDICTS
) -> Iterator[Part]:
    """Yield the claims with one of these verdicts, by document, then the counts of all."""
    for document in results.documents:
        claims = [c for c in results.claims if c.document == document.id and c.verdict in verdicts]
        if claims:
            yield Line(f"{document.id}  {document.title} ({document.kind})", "bold", 0)
            yield _wide(claims, width) if width >= WIDE else _narrow(claims, width)
            yield ""
    if results.claims:
        yield counts(results)
    yield from (Line(line, "red") for line in against(results))
    yield Line(f"{claims_summary(results)} {results.seconds:.1f} s", "bold")


def _table(headings: Sequence[str], widths: Sequence[int]) -> Table:
    shown = headed(padding=(0, 1, 0, 0), leading=1)
    for heading, width in zip(headings, widths, strict=True):
        shown.add_column(heading, width=width, overflow="fold")
    return shown


def _wide(claims: Sequence[ClaimRecord], width: int) -> Table:
    """Return five columns: id, place, claim, verdict, how it is known."""
    left = width - (7 + 15 + VERDICT) - 4 * GAP
    widths = (7, 15, left - left // 2, VERDICT, left // 2)
    shown = _table(("claim", "place", "statement", "verdict", "how it is known"), widths)
    for claim in claims:
        shown.add_row(
            Text(claim.id, "bold"),
            claim.place,
            claim.says,
            _verdict(claim),
            Text(_known(claim, widths[-1]), "dim"),
        )
    return shown


def _narrow(claims: Sequence[ClaimRecord], width: int) -> Table:
    """Return three columns: id and place, claim and how it is known, verdict."""
    widths = (14, width - (14 + VERDICT) - 2 * GAP, VERDICT)
    shown = _table(("claim", "statement, and how it is known", "verdict"), widths)
    for claim in claims:
        says = Text(claim.says)
        says.append(f"\n{_known(claim, widths[1])}", "dim")
        head = Text(claim.id, "bold")
        head.append(f"\n{claim.place}", "not bold")
        shown.add_row(head, says, _verdict(claim))
    return shown


def _verdict(claim: ClaimRecord) -> Text:
    return Text(sign(claim.verdict) + " !" * (not claim.ok), style(claim.verdict))


def _known(claim: ClaimRecord, width: int) -> str:
    """Return how the verdict is known, with the first witness or mismatch, and what is right.

    It is wrapped to this width; a long id is cut at its hyphens.
    """
    parts = [claim.evidence] if claim.reason else _parts(claim)
    parts += [f"right: {claim.correction}"] * bool(claim.correction)
    return "\n".join(line for part in parts for line in wrap(part, width))


def _parts(claim: ClaimRecord) -> list[str]:
    unstated = f"not a statement by itself: {claim.unstated}" if claim.unstated else ""
    parts = [part for part in claim.evidence.removeprefix(unstated).split("; ") if part]
    words = {"refuted": "witness", "ill-typed": "shapes"}
    shown = [f"{words[s.verdict]}: {s.known}" for s in claim.statements if s.verdict in words]
    return [*[unstated] * bool(unstated), *parts, *shown[:1]]


def counts(results: Results) -> Table:
    """Return a table of how many claims of each document have each verdict."""
    told = [v for v in VERDICTS if any(c.verdict == v for c in results.claims)]
    shown = headed(padding=(0, 1, 0, 0))
    shown.add_column("document", no_wrap=True)
    for heading in (*told, "all", "as expected"):
        shown.add_column(heading, justify="right", max_width=12, vertical="bottom")
    groups = [(d.id, [c for c in results.claims if c.document == d.id]) for d in results.documents]
    for name, claims in (*groups, *[("all", list(results.claims))] * (len(groups) > 1)):
        verdicts: list[str] = [claim.verdict for claim in claims]
        numbers = [*(verdicts.count(v) for v in told), len(claims), sum(c.ok for c in claims)]
        shown.add_row(name, *(str(number) if number else "–" for number in numbers))
    return shown


def claims_summary(results: Results) -> str:
    """Return one line: the number of claims, their verdicts, and how many are as expected."""
    found = [claim.verdict for claim in results.claims]
    parts = tally(found, VERDICTS) or "none"
    right = sum(claim.ok for claim in results.claims)
    return f"{len(found)} claim{'s' * (len(found) != 1)}: {parts}; {right} as expected."


@contextmanager
def progress(
    console: Console, names: Sequence[str], *, lines: bool = True
) -> Iterator[Callable[[Outcome], None]]:
    """Show a bar during a run and a line per outcome; yield the function to call with each.

    ``names`` appear beside the bar, in the order of the outcomes.  A theorem that comes again with
    its numbers gets another line only if these speak against it.  Without ``lines``, only what is
    not as expected gets one.
    """
    coming, fine = iter((*names, "")), set[str]()
    with bar(console) as shown:
        task = shown.add_task(next(coming), total=len(names))

        def tell(outcome: Outcome) -> None:
            if isinstance(outcome, BrokenFile):
                line = Text(f"! broken     {outcome.file}: {outcome.error}", "red")
            else:
                found = outcome.verdict if isinstance(outcome, TheoremRecord) else outcome.outcome
                mark = "" if outcome.ok else f"  ! {_wrong(outcome)}"
                known = "" if outcome.stored is None else "  (from the store)"
                told = [*conditions(outcome)] if isinstance(outcome, TheoremRecord) else []
                under = "".join(f", {line}" for line in told)
                line = Text(f"{sign(found):<12} {outcome.id}{under}{known}{mark}")
                line.stylize(style(found), 0, 12)
            if (
                isinstance(outcome, BrokenFile)
                or not outcome.ok
                or (lines and outcome.id not in fine)
            ):
                shown.console.print(line, soft_wrap=True)
            if not isinstance(outcome, BrokenFile) and outcome.ok:
                fine.add(outcome.id)
            shown.update(task, advance=1, description=next(coming, ""))

        yield tell


def _wrong(record: TheoremRecord | DemonstrationRecord) -> str:
    more = f" (and {len(record.why) - 1} more)" if len(record.why) > 1 else ""
    return "".join(record.why[:1]) + more
