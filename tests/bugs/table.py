"""The table of public bugs for the documents: what each breaks, and where it shows.

``python -m tests.bugs.table > docs/bugs.md`` writes it; every word on a witness is the finding's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from attnproof.programs.execution.draw import Draw
from attnproof.programs.finding import Finding
from attnproof.programs.measure.examine import examine
from attnproof.programs.subjects import Subject

from .corpus import Bug, Control, all_bugs, all_controls

DRAW = Draw()
INTRODUCTION = (
    "Written by `python -m tests.bugs.table > docs/bugs.md`; a test compares the page with that"
    " output, numbers to two digits. Each bug is code of our own with the cause that its thread"
    " describes; beside it stands the same code without the bug, which obeys the law on the same"
    f" draw. The probe found the witness by itself, with seed {DRAW.seed}."
)


def asked(subject: Subject, law: str) -> Finding:
    """The finding of one law, with the draw that all of the corpus uses.

    Where more than one probe looks at the law, it is the first that found it broken, or else the
    first that asked it.

    Raises ``LookupError`` if no probe looks at it.
    """
    seen = examine(subject, (DRAW,), (law,))
    if not seen:
        raise LookupError(f"no probe looks at the law {law!r} of {subject.kind} code")
    order = ("broken", "undecided", "holds", "not asked")
    return min(seen, key=lambda finding: order.index(finding.verdict))


def found(one: Bug) -> Finding:
    """What is found of the mutant by the law that must catch it."""
    return asked(one.mutant(), one.law)


def _threads(one: Bug | Control) -> str:
    return ", ".join(f"[{t}](https://github.com/{t.replace('#', '/issues/')})" for t in one.threads)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def row(one: Bug, seen: Finding) -> str:
    """The row of a bug, with what was found of it."""
    return _row(one.id, one.title, f"`{one.law}`", _told(seen), _threads(one))


def markdown(rows: Callable[[Bug], str] = lambda one: row(one, found(one))) -> str:
    """The document: bugs with law and witness, then the claims that were no bugs."""
    bugs, controls = all_bugs(), all_controls()
    lines = [
        "# Public bugs, and the law that each breaks",
        "",
        INTRODUCTION,
        "",
        _row("bug", "what the code does", "law", "witness", "thread"),
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [
        *map(rows, bugs),
        "",
        "## Claims that were not bugs",
        "",
        "This code breaks no law.",
        "",
        _row("claim", "what was said", "what it is", "thread"),
        "| --- | --- | --- | --- |",
        *(_row(one.id, one.claim, one.verdict, _threads(one)) for one in controls),
    ]
    return "\n".join(lines) + "\n"


def stored_rows(root: Path) -> dict[Bug, str]:
    """By bug, the row that the document has."""
    lines = (root / "docs" / "bugs.md").read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| P")]
    return dict(zip(all_bugs(), rows, strict=True))


def _told(seen: Finding) -> str:
    if seen.verdict != "broken" or seen.witness is None:
        return f"not caught: {seen.verdict}: {seen.why}"
    here, there = seen.witness.here, seen.witness.there
    # Few digits, which any machine gives alike, but enough to tell the two sides apart.
    digits = next((d for d in (3, 5) if _number(here[1], d) != _number(there[1], d)), 3)
    told = "; ".join(f"{words}: {_number(value, digits)}" for words, value in (here, there))
    return f"{seen.why} ({told})"


def _number(value: Any, digits: int) -> str:
    """A number with so many digits; of a long vector the first three."""
    if isinstance(value, (list, tuple)):
        shown = [_number(v, digits) for v in value[:3]] + [".."] * (len(value) > 3)
        return f"[{', '.join(shown)}]"
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.stdout.write(markdown())
