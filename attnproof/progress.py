"""The progress of a run: a bar while it lasts, and a line for each outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .claim_records import DemonstrationRecord
from .records import BrokenFile, TheoremRecord
from .terminal import conditions, sign, style
from .terminal_text import bar

if TYPE_CHECKING:
    from rich.console import Console

    from .runner import Outcome


@contextmanager
def progress(
    console: Console, names: Sequence[str], *, lines: bool = True
) -> Iterator[Callable[[Outcome], None]]:
    """A bar while a run lasts and a line for each outcome; yields what to tell of one.

    ``names`` are told beside the bar, in the order of the outcomes.  Without ``lines`` only what
    is not as expected has one.
    """
    from rich.text import Text

    coming = iter((*names, ""))
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
            if lines or isinstance(outcome, BrokenFile) or not outcome.ok:
                shown.console.print(line, soft_wrap=True)
            shown.update(task, advance=1, description=next(coming, ""))

        yield tell


def _wrong(record: TheoremRecord | DemonstrationRecord) -> str:
    more = f" (and {len(record.why) - 1} more)" if len(record.why) > 1 else ""
    return "".join(record.why[:1]) + more
