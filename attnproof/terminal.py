"""What the terminal shows of a run: the table of verdicts, what speaks against any, a summary."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from textwrap import shorten
from typing import TYPE_CHECKING

from .evidence import MeasuredEvidence, ProvedEvidence
from .evidence_words import derivation
from .records import ControlRecord, TheoremRecord
from .terminal_text import headed
from .verdict_line import clauses

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from .claim_records import DemonstrationRecord
    from .records import Results

SIGNS = {
    "proved": "✓", "refuted": "✗", "ill-typed": "✗", "misread": "≠", "undecided": "?",
    "internal error": "!",
    "true as written": "✓", "true under a stated correction": "~", "false as written": "✗",
    "not checkable": "–", "reproduced": "✓", "differs": "✗", "failed": "?",
}  # fmt: skip
LINE = 300  # characters of a line that speaks against something
STYLES = {
    "✓": "green", "✗": "magenta", "≠": "red", "?": "yellow", "!": "red", "~": "cyan", "–": "dim",
}  # fmt: skip


def sign(verdict: str) -> str:
    """A verdict with its sign.

    >>> sign("proved")
    '✓ proved'
    """
    return f"{SIGNS[verdict]} {verdict}"


def style(verdict: str) -> str:
    """The colour of a verdict."""
    return STYLES[SIGNS[verdict]]


def numbers(record: TheoremRecord | ControlRecord) -> str:
    """How many of all measurements held; of a statement said to be false, how many refused it.

    No measurement at all is a dash.
    """
    found = _statuses(record)
    wanted = ("held",) if record.expected == "proved" else ("violated", "non-finite")
    return f"{sum(status in wanted for status in found)}/{len(found)}" if found else "–"


def _statuses(record: TheoremRecord | ControlRecord) -> list[str]:
    return [e.status for e in record.evidence if isinstance(e, MeasuredEvidence)]


def table(results: Results, console: Console) -> None:
    """The verdicts, what speaks against any of them, and one line that sums up."""
    from rich.text import Text

    from .claims_table import claims_summary, counts

    if results.theorems:
        console.print(_verdicts(results))
        for line in _legend(results):
            console.print(Text(line, "dim"), soft_wrap=True)
    if results.claims:
        console.print()
        console.print(counts(results))
    for line in against(results):
        console.print(Text(line, "red"), soft_wrap=True)
    if results.claims:
        console.print(Text(claims_summary(results), "bold"), soft_wrap=True)
    console.print(Text(summary(results), "bold"), soft_wrap=True)
    if told := from_store(results):
        console.print(Text(told, "bold"), soft_wrap=True)


def _verdicts(results: Results) -> Table:
    from rich.text import Text

    shown = headed()
    shown.add_column("verdict", no_wrap=True)
    shown.add_column("control", no_wrap=True)
    shown.add_column("steps", justify="right", no_wrap=True)
    shown.add_column("SymPy", no_wrap=True)
    shown.add_column("numbers", justify="right", no_wrap=True)
    shown.add_column("theorem", overflow="ellipsis")  # in full in the progress
    for subject, records in groupby(results.theorems, lambda record: record.subject):
        shown.add_row("", "", "", "", "", Text(subject, "bold"))
        for record in records:
            cells = (Text(*_marked(found)) for found in (record, record.control))
            shown.add_row(*cells, _steps(record), _by_sympy(record), numbers(record), record.id)
            for line in conditions(record):
                shown.add_row("", "", "", "", "", Text(line, "dim", overflow="fold"))
    return shown


def conditions(record: TheoremRecord) -> Iterator[str]:
    """Under what a theorem is proved, or its negative control: a line each, part of the verdict."""
    for whose, found in (("", record), ("its negative control: ", record.control)):
        if told := clauses(found.conditions):
            yield f"{whose}{', '.join(told)}"


def _legend(results: Results) -> Iterator[str]:
    """What the columns mean, and how many measurements were skipped."""
    found = [status for record in results.theorems for status in _statuses(record)]
    held = "; numbers: held of all, or violated of all if it is false" if found else ""
    yield f"steps: of the kernel{held}"
    yield from _also(results)
    if skipped := found.count("skipped"):
        yield f"{skipped} of {len(found)} measurements skipped; `attnproof show ID` says why"


def _marked(found: TheoremRecord | ControlRecord) -> tuple[str, str]:
    """Verdict and colour; a theorem's own mark leaves out what speaks against its control."""
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
    """Everything that speaks against the run, a line each; `attnproof show` has it whole."""
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
    """One line: how many theorems, their verdicts, and how many are as expected in all parts."""
    counted = [record.verdict for record in results.theorems]
    verdicts = ", ".join(f"{counted.count(v)} {v}" for v in SIGNS if v in counted) or "none"
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
    """How many of the proved theorems SymPy derived as well, where it was asked."""
    proved = [record for record in results.theorems if record.verdict == "proved"]
    found = [derivation(record.evidence) for record in proved]
    count = sum(e is not None and e.status == "derived" for e in found)
    if any(found):
        yield f"SymPy: {count} of {len(proved)} proved theorems derived as well, at small sizes"


def compared(results: Results) -> str:
    """What of a theorem was compared with what is expected; numbers only where they were asked."""
    return "verdict, numbers and control" if results.options.numeric else "verdict and control"


def from_store(results: Results) -> str:
    """One line: how much of a run was found in the store, and when it was checked."""
    records: list[TheoremRecord | DemonstrationRecord] = [*results.theorems]
    records += results.demonstrations
    times = sorted(record.stored for record in records if record.stored is not None)
    if not times:
        return ""
    first, last = (f"{time.astimezone():%Y-%m-%d %H:%M}" for time in (times[0], times[-1]))
    when = first if first == last else f"from {first} to {last}"
    what = "theorems and demonstrations" if results.demonstrations else "theorems"
    told = f"{len(times)} of {len(records)} {what} found in the store, checked {when}"
    return f"{told}; --fresh checks anew"
