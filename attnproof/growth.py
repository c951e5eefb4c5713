"""How error and bound grow with the number of tokens, read off the record of a sweep or of kernels.

At each number of tokens and in each dtype one measurement stands for all: the one whose error is
the largest part of its bound, whichever implementation, conclusion and input distribution that was;
one that speaks against the statement comes before all that do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .document import SIGNS, headed, short
from .evidence import MeasuredEvidence, Number, Status
from .sweeping.records import SweepRecord, holds

if TYPE_CHECKING:
    from rich.table import Table

    from .records import ControlRecord, TheoremRecord
    from .scale import ScaleRecord


CONTROL = ", negative control"
"""What the name of a theorem ends in, where its negative control is meant."""


@dataclass(frozen=True)
class Point:
    """The measurement that stands for one number of tokens."""

    tokens: int
    status: Status
    error: Number
    bound: Number
    by: str
    sampled: str
    seconds: float

    @property
    def share(self) -> float:
        """The error in units of its bound; infinite where either is no number."""
        error, bound = self.error, self.bound
        if isinstance(error, str) or isinstance(bound, str):
            return float("inf")
        return error / bound if bound else float("inf") if error else 0.0


@dataclass(frozen=True)
class Growth:
    """What was measured of one statement, or by one way of checking a kernel, on one device.

    ``lines`` has for each dtype its points by tokens; ``control`` says that sides which differ are
    expected.
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
    def told(self) -> str:
        """How far it was measured, in one sentence.

        >>> point = Point(65_536, "held", 1e-7, 1e-6, "eager", "all places", 0.1)
        >>> Growth("softmax", "cpu", {"float32": (point,)}).told
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
    """What a record says of growth: one of each statement or way, and device."""
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
    """A line for each dtype and number of tokens."""
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
    """How far the measurements of a run went: the longest axis, the devices and dtypes."""
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
