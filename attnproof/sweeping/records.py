"""The record of a sweep, with every cell and how it ended; and what the terminal shows of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from textwrap import shorten
from typing import TYPE_CHECKING, Final, Literal

from pydantic import AwareDatetime, Field

from ..documents.document import Line, Part, bar, headed, short, tally, when
from ..documents.evidence import Record, Traceback
from ..numeric.results import MeasuredEvidence, Number
from ..theorem_runs.records import Machine

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console


SWEEP_SCHEMA_VERSION: Final = 3

CellStatus = Literal[
    "held", "violated", "non-finite", "skipped", "out of memory", "out of time", "died", "failed"
]
BAD: Final = ("violated", "non-finite")
"""Statuses that contradict a statement that is expected to hold."""
LOST: Final = ("out of memory", "out of time", "died", "failed")
"""Statuses of cells that did not finish; these are not stored, so that they are tried again."""


class CellRecord(Record):
    """One statement in one implementation, dtype, size, distribution, seed and device."""

    theorem: str
    control: bool = Field(description="Whether it is the theorem's negative control.")
    implementation: str
    dtype: str
    scale: str
    tokens: int | None = Field(
        description="The requested number of tokens; null for that of the scale."
    )
    distribution: str
    seed: int
    device: str = Field(description="The requested device, and its name.")
    status: CellStatus = Field(
        description="The worst outcome of its conclusions, or how the cell ended without one; "
        "held if "
        "some conclusion held and none was violated."
    )
    reason: str = Field(description="Why it was skipped or lost; otherwise empty.")
    traceback: Traceback = ""
    ratio: Number | None = Field(
        description="The largest ratio of error to bound, or of |z| to its limit; null if there "
        "is none."
    )
    policy: str = Field(description="The policy with that ratio; empty if there is none.")
    says: str = Field(description="The conclusion with that ratio; empty if there is only one.")
    measured: tuple[MeasuredEvidence, ...] = Field(description="Each conclusion.")
    seconds: float = Field(ge=0)
    stored: AwareDatetime | None = Field(
        default=None,
        description="When it was measured, if taken from the store; null if measured in this "
        "sweep.",
    )


class UnusableRecord(Record):
    """A statement of the sweep that has no cells, and why."""

    theorem: str
    control: bool
    why: str
    broken: bool = Field(description="Whether cells were expected for it.")
    traceback: Traceback = ""


class SweepRecord(Record):
    """The record of one sweep."""

    schema_version: Literal[3] = SWEEP_SCHEMA_VERSION
    attnproof: str = Field(description="The version of attnproof that wrote it.")
    created: AwareDatetime
    seconds: float = Field(ge=0)
    machine: Machine
    engine: Literal["loky", "threading", "ray"]
    jobs: int = Field(ge=1)
    limit: float | None = Field(description="Time limit per cell, in seconds.")
    memory: float | None = Field(description="Memory limit per cell, in GiB.")
    expected: dict[str, Literal["proved", "refuted"]] = Field(
        description="The expected verdict of each theorem; its negative control has the opposite "
        "one. "
        "An ill-typed theorem is not listed; its negative control is expected to hold."
    )
    cells: tuple[CellRecord, ...]
    unusable: tuple[UnusableRecord, ...]
    unfinished: int = Field(ge=0, description="Cells that an interrupted sweep did not reach.")
    ok: bool = Field(
        description="No cell contradicts a statement that is expected to hold, no cell was lost, "
        "no "
        "statement is unusable, and nothing is unfinished."
    )


def holds(expected: dict[str, Literal["proved", "refuted"]], cell: CellRecord) -> bool:
    """Whether the statement of a cell is expected to hold.

    For a negative control it is the opposite of the theorem; the control of a theorem with nothing
    to measure is expected to hold.
    """
    return (
        expected.get(cell.theorem) != "refuted"
        if not cell.control
        else (expected.get(cell.theorem) != "proved")
    )


def is_against(expected: dict[str, Literal["proved", "refuted"]], cell: CellRecord) -> bool:
    """Whether a cell was lost, or speaks against a statement that is expected to hold."""
    return cell.status in LOST or (cell.status in BAD and holds(expected, cell))


LINE, LINES = 300, 20


def sweep_page(record: SweepRecord) -> Iterator[Part]:
    """Yield the table, what speaks against it or was lost, and a summary."""
    shown = headed()
    shown.add_column("statement", overflow="ellipsis", no_wrap=True, ratio=1)
    shown.add_column("dtype", no_wrap=True)
    for name in ("held", "violated", "skipped", "lost"):
        shown.add_column(name, justify="right", no_wrap=True)
    shown.add_column("worst", justify="right", no_wrap=True)
    shown.add_column("in", overflow="ellipsis", no_wrap=True, ratio=1)
    for (name, dtype), cells in _grouped(record.cells):
        worst = max(cells, key=_ratio)
        told = short(worst.ratio, "–")
        spoke = ", ".join(filter(None, (worst.distribution, worst.policy, worst.implementation)))
        counts = [
            sum(c.status == "held" for c in cells),
            sum(c.status in BAD for c in cells),
            sum(c.status == "skipped" for c in cells),
            sum(c.status in LOST for c in cells),
        ]
        spoke = "" if worst.ratio is None else spoke
        shown.add_row(name, dtype, *map(str, counts), told, spoke)
    if record.cells:
        yield shown
        yield Line("worst: the largest error over its bound, or |z| over its limit", "dim")
    yield from (Line(line, "red") for line in sweep_faults(record))
    yield Line(sweep_summary(record), "bold")


def sweep_faults(record: SweepRecord) -> list[str]:
    """Return what speaks against a statement or was lost, abridged."""
    lines = [shorten(line, LINE, placeholder=" …") for line in _against(record)]
    more = [f"! and {len(lines) - LINES} more; --json FILE has all of them"]
    return lines[:LINES] + more * (len(lines) > LINES)


def _grouped(cells: Sequence[CellRecord]) -> Iterator[tuple[tuple[str, str], list[CellRecord]]]:
    places: dict[tuple[str, str], list[CellRecord]] = {}
    for cell in cells:
        places.setdefault((cell.theorem + "#control" * cell.control, cell.dtype), []).append(cell)
    for _, rows in groupby(places.items(), lambda item: item[0][0]):
        yield from rows


def _ratio(cell: CellRecord) -> float:
    if cell.ratio is None:
        return -1.0
    return float("inf") if cell.ratio == "non-finite" else cell.ratio


def _against(record: SweepRecord) -> Iterator[str]:
    for statement in record.unusable:
        mark = "!" if statement.broken else "–"
        yield f"{mark} {statement.theorem}{'#control' * statement.control}: {statement.why}"
    for c in record.cells:
        if is_against(record.expected, c):
            where = f"{c.implementation}, {c.dtype}, {c.distribution}, seed {c.seed}, {c.device}"
            told = c.reason or f"{c.policy} bound, {short(c.ratio)} times"
            yield f"! {c.theorem}{'#control' * c.control}, {where}: {c.status}: {told}"


def sweep_summary(record: SweepRecord) -> str:
    """Return a summary: how many cells, how they ended, and how many came from the store."""
    counted = [cell.status for cell in record.cells]
    told = tally(counted, sorted(set(counted))) or "none"
    times = [cell.stored for cell in record.cells if cell.stored is not None]
    line = f"{len(counted)} cell{'s' * (len(counted) != 1)}: {told}. {record.seconds:.1f} s"
    if record.unfinished:
        line += f"; interrupted, {record.unfinished} not reached"
    if not times:
        return line
    found = f"{len(times)} of {len(counted)} found in the store, measured {when(times)}"
    return f"{line}\n{found}; --fresh measures again"


@contextmanager
def sweep_progress(console: Console, total: int) -> Iterator[Callable[[CellRecord], None]]:
    """Show a bar during a sweep; yield the function to call with each cell."""
    with bar(console) as shown:
        task = shown.add_task("", total=total)

        def tell(cell: CellRecord) -> None:
            told = f"{cell.theorem}, {cell.dtype}, {cell.distribution}"
            shown.update(task, advance=1, description=told)

        yield tell
