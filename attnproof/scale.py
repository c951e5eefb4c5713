"""Records of kernels checked at scale, and of theorems read on shares; how they are printed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, Self

from pydantic import AliasChoices, Field

from . import __version__
from .document import SIGNS, Line, Part, headed, short
from .evidence import (
    InternalErrorEvidence,
    MeasuredEvidence,
    Number,
    PolicyRecord,
    Record,
    Status,
)
from .numeric.sharded import SIDES_DIFFER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from .numeric.at_scale.comparison import Found
    from .numeric.measurement import Measurement


class WayRecord(Record):
    """One way of checking a kernel."""

    way: str
    kernel: str
    device: str
    dtype: str
    tokens: int = Field(ge=1)
    heads: int = Field(ge=1)
    width: int = Field(ge=1)
    causal: bool
    seed: int
    looked: str = Field(description="Which rows were compared, and with what.")
    misses: str = Field(description="What could pass all the same, with its probability.")
    status: Status
    error: Number | None = Field(description="The difference at the worst entry.")
    tolerance: Number | None = Field(description="The rounding bound there; 0 for equal bits.")
    worst: tuple[int, ...] = Field(description="Head, row and column of that entry.")
    reason: str
    rounding: str = Field(description="The model behind the tolerance.")
    policies: tuple[PolicyRecord, ...] = Field(validation_alias=AliasChoices("policies", "judged"))
    seconds: float = Field(ge=0, description="Of the check, the kernel included.")
    kernel_seconds: float = Field(ge=0)
    forwards: float = Field(ge=0, description="The seconds in forwards over all rows; 0: none.")
    bytes_of_inputs: int = Field(ge=0)
    bytes_beyond: int | None = Field(description="Peak memory beyond the inputs, where known.")

    @classmethod
    def of(cls, found: object) -> Self:
        """The record of one way; one that was skipped unseen has no error."""
        one = super().of(found)
        nothing = one.status == "skipped" and not one.worst
        return one.model_copy(update={"error": None, "tolerance": None}) if nothing else one


class ScaleRecord(Record):
    """All ways that one command tried."""

    version: Literal[2] = 2
    made: str = Field(description="When, as an ISO date and time.")
    attnproof: str
    torch: str
    threads: int = Field(ge=1)
    ways: tuple[WayRecord, ...]
    unfinished: tuple[str, ...] = Field(
        default=(), description="Ways that an interrupted run did not reach."
    )
    errors: tuple[InternalErrorEvidence, ...] = Field(
        default=(), description="Errors of attnproof itself, which ended the run."
    )

    @property
    def ok(self) -> bool:
        """Something was checked, and nothing was violated."""
        states = {way.status for way in self.ways}
        return "held" in states and not self.errors and not states & {"violated", "non-finite"}


def scale_record(
    found: Sequence[Found],
    torch: str,
    threads: int,
    unfinished: Sequence[str] = (),
    errors: Sequence[InternalErrorEvidence] = (),
) -> ScaleRecord:
    """The record of what was found."""
    return ScaleRecord(
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        attnproof=__version__,
        torch=torch,
        threads=threads,
        ways=tuple(map(WayRecord.of, found)),
        unfinished=tuple(unfinished),
        errors=tuple(errors),
    )


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

    version: Literal[2] = 2
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
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        attnproof=__version__,
        torch=torch,
        theorem=theorem,
        processes=processes,
        equations=tuple(
            SharedEquation(
                control=control,
                expected="refuted" if expected == "refuted" else "proved",
                measured=MeasuredEvidence.of(m),
            )
            for expected, control, m in found
        ),
    )


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


def scale_page(record: ScaleRecord) -> Iterator[Part]:
    """The table, what was looked at and could be missed, and what went wrong."""
    if record.ways:
        yield _scale_table(record)
    yield from map(Line, told_of(record))


def _scale_table(record: ScaleRecord) -> Table:
    """A line for each way: error and bound, what it cost, what it held."""
    first = record.ways[0]
    several = len({way.tokens for way in record.ways}) > 1
    tokens = "" if several else f" × {first.tokens:,} tokens"
    table = headed(
        "",
        "way",
        *["tokens"] * several,
        "dtype",
        "error",
        "bound",
        "policy",
        "share",
        "s",
        "forwards",
        "MiB",
        title=f"{first.kernel} on {first.device}: {first.heads} heads{tokens} of {first.width} "
        f"features{', causal' * first.causal}",
        caption="share: of a policy's limit, above 1 a no; MiB: beyond the inputs",
    )
    for way in record.ways:
        beyond = "" if way.bytes_beyond is None else f"{way.bytes_beyond / 2**20:.0f}"
        applied = [p for p in way.policies if p.status != "skipped"]
        for k, policy in enumerate(applied or [None]):
            sign = SIGNS[way.status]
            size = [f"{way.tokens:,}"] * several
            head = (sign, way.way, *size, way.dtype, short(way.error), short(way.tolerance))
            cost = (f"{way.seconds:.2f}", f"{way.forwards:.2f}" if way.forwards else "", beyond)
            said = ("", "") if policy is None else (policy.policy, short(policy.ratio))
            table.add_row(*(head if not k else [""] * len(head)), *said, *(cost if not k else ()))
    return table


def told_of(record: ScaleRecord) -> list[str]:
    """What was looked at and what could be missed, once for each way; what went wrong."""
    lines = {
        f"{way.way}: {way.looked}{'; ' * bool(way.misses)}{way.misses}": None
        for way in record.ways
        if way.status != "skipped"
    }
    wrong = [
        f"! {way.way}, {way.dtype}: {way.status}: {way.reason}"
        + (f"; at head, row, column {way.worst}" if way.worst else "")
        for way in record.ways
        if way.status != "held"
    ]
    return [*lines, *wrong, *(f"! {error.says}: {error.why}" for error in record.errors)]
