"""Drawings and a page of how far something was measured: error and bound against tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..document import SIGNS, short
from ..growth import Growth, Point, growths
from ..scale import ScaleRecord
from . import drawing
from .page import rendered, slug, written
from .plots import Plot
from .rounding import Line

if TYPE_CHECKING:
    from ..sweeping.records import SweepRecord

    Measured = SweepRecord | ScaleRecord

READ = (
    "A line is the error at the entry where it is the largest part of its bound; of all "
    "implementations, conclusions and input distributions the worst stands for each number of "
    "tokens. An error of 0 is not drawn."
)
LABELS = ("tokens", "error")


def plots_of(records: Iterable[Measured]) -> dict[str, list[Plot]]:
    """A drawing of each statement or kernel of these records, by what it is about."""
    found: dict[str, list[Plot]] = {}
    for record in records:
        for growth in growths(record):
            name = f"scale-{slug(growth.about)}-{sum(map(len, found.values()))}"
            found.setdefault(growth.about, []).append(_plot(name, growth))
    return found


def _plot(name: str, growth: Growth) -> Plot:
    tokens = growth.tokens
    head, rows = ["tokens"], [[f"{n:,}"] for n in tokens]
    lines: dict[str, Line] = {}
    for dtype, points in growth.lines.items():
        at: Mapping[int, Point] = {p.tokens: p for p in points}
        values = [(_number(at, n, "error"), _number(at, n, "bound")) for n in tokens]
        error, bound = (np.array(column) for column in zip(*values, strict=True))
        lines[dtype] = Line(error, np.zeros(len(tokens), dtype=bool), bound, 0)
        head += [dtype, f"bound, {dtype}", "in", "looked at", "s"]
        for k, n in enumerate(tokens):
            rows[k] += _told(at[n]) if n in at else ["–"] * 5
    says = growth.told
    if growth.control:
        every = [p for held in growth.lines.values() for p in held]
        seen = sum(p.status != "held" for p in every)
        says += f" The statement is false; that is seen in {seen} of {len(every)} points."
    numbers = (tuple(head), tuple(map(tuple, rows)))
    if not any(_drawable(p) for points in growth.lines.values() for p in points):
        return Plot(name, growth.about, says, "", *numbers, why_not="every error and bound is 0")
    drawn = drawing.errors(name, growth.about, np.array(tokens), lines, LABELS, few=True)
    return Plot(name, growth.about, says, drawn, *numbers)


def _drawable(p: Point) -> bool:
    """Whether a logarithmic scale has its error or its bound."""
    return any(isinstance(x, float) and x > 0 for x in (p.error, p.bound))


def _told(p: Point) -> list[str]:
    error = f"{SIGNS[p.status]} {short(p.error)}"
    return [error, short(p.bound), p.by, p.sampled, f"{p.seconds:.2f}"]


def _number(at: Mapping[int, Point], tokens: int, name: str) -> float:
    value = getattr(at[tokens], name) if tokens in at else None
    return value if isinstance(value, float) else float("nan")


def render_growths(records: Sequence[Measured], *, led: bool = False) -> str:
    """The page of all of them; ``led``: it is part of a report, whose index leads to it."""
    drawn = [plot for held in plots_of(records).values() for plot in held]
    made = dict.fromkeys(map(_made, records))
    return rendered("growths.html.j2", "", plots=drawn, says=READ, made=list(made), led=led)


def _made(record: Measured) -> str:
    if isinstance(record, ScaleRecord):
        return f"Kernels: attnproof {record.attnproof}, {record.made}, torch {record.torch}."
    when = f"{record.created:%-d %B %Y, %H:%M %Z}"
    return (
        f"Theorems: attnproof {record.attnproof}, {when}, torch {record.machine.torch}, "
        f"{record.machine.platform}."
    )


def write_growths(records: Sequence[Measured], folder: Path) -> Path:
    """Write the page alone into a folder, as ``index.html``; its path.

    Raises :class:`~attnproof.report.ReportError` when the folder cannot be made or written to.
    """
    return written({"index.html": render_growths(records)}, folder)
