"""The record of a theorem whose equations were read on shares, and its lines on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from . import __version__
from .evidence import MeasuredEvidence, Record
from .numeric.sharded import SIDES_DIFFER
from .translate import measured

if TYPE_CHECKING:
    from .numeric.measurement import Measurement


class SharedEquation(Record):
    """One conclusion of a theorem or of its negative control, and what it is held to be."""

    control: bool
    expected: Literal["proved", "refuted"]
    measured: MeasuredEvidence

    @property
    def against(self) -> bool:
        """A violation, but for sides that differ where that is expected."""
        if self.measured.status in ("held", "skipped"):
            return False
        return self.expected == "proved" or not self.measured.reason.endswith(SIDES_DIFFER)


class ShardedRecord(Record):
    """A theorem, read by several processes together."""

    version: Literal[1] = 1
    made: str = Field(description="When, as an ISO date and time.")
    attnproof: str
    torch: str
    theorem: str
    processes: int = Field(ge=1)
    equations: tuple[SharedEquation, ...]

    @property
    def ok(self) -> bool:
        """Some equation was compared, and none speaks against what is expected."""
        states = {e.measured.status for e in self.equations}
        return states != {"skipped"} and not any(e.against for e in self.equations)


def sharded_record(
    theorem: str, found: Iterable[tuple[str, bool, Measurement]], torch: str, processes: int
) -> ShardedRecord:
    """The record of what was found: for each, what is expected, and whether of the control."""
    return ShardedRecord(
        made=datetime.now(UTC).isoformat(timespec="seconds"), attnproof=__version__, torch=torch,
        theorem=theorem, processes=processes,
        equations=tuple(
            SharedEquation(
                control=control,
                expected="refuted" if expected == "refuted" else "proved",
                measured=one,
            )
            for expected, control, m in found
            for one in measured([m])
        ),
    )  # fmt: skip


def lines_of(record: ShardedRecord) -> Iterator[str]:
    """A line for each conclusion."""
    for e in record.equations:
        m = e.measured
        name = f"{'control' if e.control else 'theorem'}{', ' * bool(m.says)}{m.says}"
        if m.status == "skipped":
            yield f"skipped    {name}: {m.reason}"
            continue
        error, tolerance = (x if isinstance(x, str) else f"{x:.2g}" for x in (m.error, m.tolerance))
        expected = ", as expected" * (m.status == "violated" and not e.against)
        yield (
            f"{m.status:<10} {name}: error {error} of {tolerance}, {m.sampled}"
            f"{'; ' * bool(m.reason)}{m.reason}{expected}"
        )
