"""Records of kernels at scale and of sharded theorems; how errors grow; how each is shown.

At each number of tokens and in each dtype, one measurement represents all: the one with the largest
error relative to its bound, whatever its implementation, conclusion and input distribution; one
that speaks against the statement takes precedence over all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from .. import __version__
from ..documents.document import SIGNS, Line, Part, headed, short
from ..documents.evidence import InternalErrorEvidence, Record
from ..numeric.results import MeasuredEvidence, Number, Status, WayRecord
from ..numeric.sharded import SIDES_DIFFER
from .records import SweepRecord, holds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from ..theorem_runs.records import ControlRecord, TheoremRecord


class ScaleRecord(Record):
    """All ways that one command tried."""

    version: Literal[2] = 2
    made: str = Field(description="Date and time of creation, in ISO format.")
    attnproof: str
    torch: str
    threads: int = Field(ge=1)
    ways: tuple[WayRecord, ...]
    unfinished: tuple[str, ...] = Field(
        default=(), description="Ways that an interrupted run did not reach."
    )
    errors: tuple[InternalErrorEvidence, ...] = Field(
        default=(), description="Errors of attnproof itself that ended the run."
    )

    @property
    def ok(self) -> bool:
        """Whether something was checked, and nothing was violated."""
        states = {way.status for way in self.ways}
        return "held" in states and not self.errors and not states & {"violated", "non-finite"}


def scale_record(
    found: Sequence[WayRecord],
    torch: str,
    threads: int,
    unfinished: Sequence[str] = (),
    errors: Sequence[InternalErrorEvidence] = (),
) -> ScaleRecord:
    """Return the record of what was found."""
    return ScaleRecord(
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        attnproof=__version__,
        torch=torch,
        threads=threads,
        ways=tuple(found),
        unfinished=tuple(unfinished),
        errors=tuple(errors),
    )


class SharedEquation(Record):
    """One conclusion of a theorem or of its negative control, and what is expected of it."""

    control: bool
    expected: Literal["proved", "refuted"]
    measured: MeasuredEvidence

    @property
    def against(self) -> bool:
        """Whether it is violated, unless the sides are expected to differ, and do."""
        if self.measured.status in ("held", "skipped"):
            return False
        return self.expected == "proved" or not self.measured.reason.endswith(SIDES_DIFFER)


class ShardedRecord(Record):
    """A theorem, evaluated by several processes together."""

    version: Literal[2] = 2
    made: str = Field(description="Date and time of creation, in ISO format.")
    attnproof: str
    torch: str
    theorem: str
    processes: int = Field(ge=1)
    equations: tuple[SharedEquation, ...]

    @property
    def ok(self) -> bool:
        """Whether some equation was compared, and none speaks against what is expected."""
        states = {e.measured.status for e in self.equations}
        return states != {"skipped"} and not any(e.against for e in self.equations)


def sharded_record(
    theorem: str, found: Iterable[tuple[str, bool, MeasuredEvidence]], torch: str, processes: int
) -> ShardedRecord:
    """Return the record; each found item has what is expected, and whether it is the control."""
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
                measured=m,
            )
            for expected, control, m in found
        ),
    )


def sharded_lines(record: ShardedRecord) -> Iterator[str]:
    """Yield a line for each conclusion."""
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
    """Yield the table, what was compared and could be missed, and what went wrong."""
    if record.ways:
        yield _scale_table(record)
    yield from map(Line, scale_lines(record))


def _scale_table(record: ScaleRecord) -> Table:
    """Return a row for each way: error and bound, what it cost, what memory it held."""
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
        caption="share: of a policy's limit, violated above 1; MiB: beyond the inputs",
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


def scale_lines(record: ScaleRecord) -> list[str]:
    """Return what was compared and could be missed, once for each way; and what went wrong."""
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


CONTROL = ", negative control"
"""Suffix of the name of a theorem that denotes its negative control."""


@dataclass(frozen=True)
class Point:
    """The measurement that represents one number of tokens."""

    tokens: int
    status: Status
    error: Number
    bound: Number
    by: str
    sampled: str
    seconds: float

    @property
    def share(self) -> float:
        """The error in units of its bound; infinite if either is not a number."""
        error, bound = self.error, self.bound
        if isinstance(error, str) or isinstance(bound, str):
            return float("inf")
        return error / bound if bound else float("inf") if error else 0.0


@dataclass(frozen=True)
class Growth:
    """The measurements of one statement, or of one way of checking a kernel, on one device.

    ``lines`` has the points of each dtype, by tokens; ``control`` says that the sides are expected
    to differ.
    """

    about: str
    device: str
    lines: dict[str, tuple[Point, ...]]
    control: bool = False

    @property
    def tokens(self) -> tuple[int, ...]:
        """Every number of tokens at which something was measured."""
        return tuple(sorted({p.tokens for points in self.lines.values() for p in points}))

    @property
    def summary(self) -> str:
        """How far it was measured, in one sentence.

        >>> point = Point(65_536, "held", 1e-7, 1e-6, "eager", "all places", 0.1)
        >>> Growth("softmax", "cpu", {"float32": (point,)}).summary
        'Measured to 65,536 tokens on cpu: float32.'
        """
        far: dict[int, list[str]] = {}
        for dtype, points in self.lines.items():
            far.setdefault(points[-1].tokens, []).append(dtype)
        told = "; ".join(
            f"to {n:,} tokens on {self.device}: {', '.join(far[n])}"
            for n in sorted(far, reverse=True)
        )
        return f"Measured {told}."


def growths(record: SweepRecord | ScaleRecord) -> list[Growth]:
    """Return what a record says about growth: one for each statement or way, and device."""
    found: dict[tuple[str, str, bool], dict[str, list[Point]]] = {}
    for about, device, control, dtype, point in _points(record):
        found.setdefault((about, device, control), {}).setdefault(dtype, []).append(point)
    return [
        Growth(about, device, {dtype: _worst(points) for dtype, points in lines.items()}, control)
        for (about, device, control), lines in found.items()
    ]


def _points(record: SweepRecord | ScaleRecord) -> Iterator[tuple[str, str, bool, str, Point]]:
    if not isinstance(record, SweepRecord):
        for w in record.ways:
            if w.status != "skipped" and w.error is not None and w.tolerance is not None:
                about = f"{w.kernel}{', causal' * w.causal}: {w.way}"
                by = f"{w.heads} heads of {w.width}"
                point = Point(w.tokens, w.status, w.error, w.tolerance, by, w.looked, w.seconds)
                yield about, w.device, False, w.dtype, point
        return
    for cell in record.cells:
        control = not holds(record.expected, cell)
        for m in cell.measured:
            if m.status != "skipped" and m.error is not None and m.tolerance is not None:
                inputs = "" if m.distribution == "normal" else m.distribution
                by = ", ".join(filter(None, (m.implementation, inputs, m.says)))
                most = max(m.sizes.values(), default=1)
                tokens = most if cell.tokens is None else min(cell.tokens, most)
                point = Point(tokens, m.status, m.error, m.tolerance, by, m.sampled, m.seconds)
                about = cell.theorem + CONTROL * cell.control
                yield about, cell.device, control, cell.dtype, point


def _worst(points: Iterable[Point]) -> tuple[Point, ...]:
    at: dict[int, Point] = {}
    for point in points:
        if point.tokens not in at or _weight(point) > _weight(at[point.tokens]):
            at[point.tokens] = point
    return tuple(at[tokens] for tokens in sorted(at))


def _weight(point: Point) -> tuple[bool, float]:
    return point.status != "held", point.share


def growth_table(growth: Growth) -> Table:
    """Return a row for each dtype and number of tokens."""
    table = headed("", "dtype", "tokens", "error", "bound", "share", "s", "in", title=growth.about)
    for dtype, points in growth.lines.items():
        for k, p in enumerate(points):
            sign = "" if growth.control and p.status == "violated" else SIGNS[p.status]
            table.add_row(
                sign,
                "" if k else dtype,
                f"{p.tokens:,}",
                short(p.error),
                short(p.bound),
                short(p.share) if p.share < float("inf") else "–",
                f"{p.seconds:.2f}",
                p.by,
            )
    return table


def reach(statement: TheoremRecord | ControlRecord) -> str:
    """Return how far the measurements of a run went: the longest axis, the devices and dtypes."""
    held = [e for e in statement.evidence if isinstance(e, MeasuredEvidence)]
    held = [e for e in held if e.status != "skipped" and e.sizes]
    if not held:
        return ""
    sizes = [(n, name) for e in held for name, n in e.sizes.items() if " " not in name]
    if not sizes:
        return ""
    most, name = max(sizes)
    devices, dtypes = dict.fromkeys(e.device for e in held), dict.fromkeys(e.dtype for e in held)
    return f"to {name} = {most:,} on {', '.join(devices)} in {', '.join(dtypes)}"
