"""Drawings with the numbers behind them: what an encoding looks like, and how errors grow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from ..documents.document import SIGNS, short
from ..encoding.base import Encoding, in_numbers
from ..sweeping.scale import Growth, Point, ScaleRecord, growths
from . import drawing
from .page import rendered, slug, written
from .rounding import SEED, Line, at, content, reach, rounding, scores

if TYPE_CHECKING:
    from ..sweeping.records import SweepRecord

    Measured = SweepRecord | ScaleRecord


SPAN = 64  # positions in a heat map, and offsets to either side
LISTED = 8  # every eighth row and column of a heat map is listed as numbers
CONTENT = f"Query and key have the same content, drawn at random (seed {SEED})."


@dataclass(frozen=True)
class Plot:
    """A drawing with the numbers behind it; or why there is none."""

    id: str
    title: str
    says: str
    drawn: Markup | str = ""
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    why_not: str = ""
    thinned: bool = False


def plots(kind: type[Encoding]) -> list[Plot]:
    """Return the drawings of an encoding with its default numbers.

    If its code raises, a note says what it raised, and the other drawings are made.
    """
    try:
        numeric = in_numbers(kind)
    except Exception as error:  # noqa: BLE001 (whatever its code raises is reported)
        return [Plot("numbers", "In numbers", "", why_not=_told(error))]
    found = []
    for name, (title, make) in _KINDS.items():
        if name == "plane" and kind.axes < 2:
            continue
        try:
            with np.errstate(all="ignore"):
                found.append(make(numeric, name, title))
        except Exception as error:  # noqa: BLE001 (as above)
            found.append(Plot(name, title, "", why_not=_told(error)))
    return found


def _told(error: Exception) -> str:
    return f"its code raised {type(error).__name__}: {error}"


def _offsets(numeric: Encoding, name: str, title: str) -> Plot:
    """Draw the score against the offset for two queries: equal if only the offset counts."""
    end, _ = reach(numeric, 5 * SPAN)
    span = min(SPAN, max(end // 2, 1))
    first, second = span, max(min(4 * span, end - span), span)
    offsets = np.arange(-span, span + 1)
    every = at(numeric, np.arange(second + span + 1))  # other tokens and their positions may count
    table = scores(numeric, every, every)
    found = {f"query at {m}": table[m, m + offsets] for m in dict.fromkeys((first, second))}
    one, *others = found.values()
    alike = all(np.allclose(one, other, rtol=1e-9, atol=1e-9, equal_nan=True) for other in others)
    says = CONTENT
    if others:
        told = "coincide" if alike else "differ"
        says += f" The scores of queries at {first} and at {second} {told}."
    if np.isnan(one).any():
        says += " Where the mask hides the key, there is no score."
    lines = {"score": one} if alike else found
    drawn = drawing.curves(name, title, offsets, lines, ("offset of the key, n − m", "score"))
    rows = [
        (_whole(offset), *map(_number, told))
        for offset, *told in zip(offsets, *lines.values(), strict=True)
    ]
    return Plot(name, title, says, drawn, ("offset", *lines), tuple(rows))


def _map(numeric: Encoding, name: str, title: str) -> Plot:
    places = np.arange(min(SPAN, reach(numeric, SPAN - 1)[0] + 1))
    found = scores(numeric, at(numeric, places), at(numeric, places))
    hidden = " Where the mask hides the key, nothing is drawn." if np.isnan(found).any() else ""
    return _heat(name, title, CONTENT + hidden, found, 0, ("key at n", "query at m"))


def _codes(numeric: Encoding, name: str, title: str) -> Plot:
    places = np.arange(min(SPAN, reach(numeric, SPAN - 1)[0] + 1))
    if numeric.defines("add"):
        says, codes = "Dot products of the vectors added at each position.", numeric.add
    elif numeric.defines("rotate", "key"):
        says = f"Dot products of one key, encoded at each position. {CONTENT}"
        codes = lambda p: numeric.key(content(numeric, len(places)), p)  # noqa: E731
    else:
        return Plot(
            name,
            title,
            "",
            why_not="it does not change tokens, queries or keys, "
            "so that there are no codes to compare",
        )
    made = np.asarray(codes(at(numeric, places)), dtype=float)
    found = made @ made.mT
    return _heat(name, title, says, found, 0, ("position", "position"))


def _plane(numeric: Encoding, name: str, title: str) -> Plot:
    """Draw the score by the offset along the first two axes."""
    half = SPAN // 4
    steps = np.arange(-half, half + 1)
    across, up = np.meshgrid(steps, steps)
    rest = [0 * across] * (numeric.axes - 2)
    keys = half + np.stack((across, up, *rest), axis=-1).reshape(-1, numeric.axes)
    query = np.full((1, numeric.axes), half)
    kind = np.int64 if numeric.whole else np.float64
    found = scores(numeric, query.astype(kind), keys.astype(kind)).reshape(across.shape)
    return _heat(name, title, CONTENT, found, -half, ("offset along axis 0", "offset along axis 1"))


def _heat(
    name: str, title: str, says: str, found: Any, start: int, labels: tuple[str, str]
) -> Plot:
    told = range(0, len(found), LISTED)
    head = (labels[1], *(_whole(start + k) for k in told))
    rows = tuple((_whole(start + j), *(_number(found[j, k]) for k in told)) for j in told)
    drawn = drawing.heat(name, title, found, start, labels)
    return Plot(name, title, says, drawn, head, rows, thinned=True)


def _rounding(numeric: Encoding, name: str, title: str) -> Plot:
    """Draw the error of the score of a query with the key one position before it, by format."""
    found = rounding(numeric)
    labels = ("position of the query", "error of the score")
    drawn = drawing.errors(name, title, found.places, found.lines, labels)
    bounded = {says for says, line in found.lines.items() if line.bound is not None}
    head = ["position"]
    for says in found.lines:
        head += [says, f"bound, {says}"] if says in bounded else [says]
    rows = []
    for j, place in enumerate(found.places):
        row = [_whole(place)]
        for line in found.lines.values():
            row.append(_number(line.error[j]) + " ○" * bool(line.together[j]))
            row += [_number(line.bound[j])] if line.bound is not None else []
        rows.append(tuple(row))
    return Plot(name, title, found.says, drawn, tuple(head), tuple(rows))


def _whole(value: Any) -> str:
    return str(int(value)).replace("-", "−")


def _number(value: Any) -> str:
    """Format with four digits; a dash if there is no number."""
    return f"{value:.4g}".replace("-", "−") if np.isfinite(value) else "–"


_KINDS: dict[str, tuple[str, Callable[[Encoding, str, str], Plot]]] = {
    "offsets": ("Score against offset", _offsets),
    "map": ("Scores of positions", _map),
    "plane": ("Score against offset in the plane", _plane),
    "codes": ("Gram matrix of the codes", _codes),
    "rounding": ("Rounding against position", _rounding),
}


READ = (
    "Each line shows the error at the entry where it is largest relative to its bound. For each "
    "number of tokens, the worst of all implementations, conclusions and input distributions is "
    "shown. An error of 0 is not drawn."
)
LABELS = ("tokens", "error")


def plots_of(records: Iterable[Measured]) -> dict[str, list[Plot]]:
    """Return the drawings for each statement or kernel of these records, by its name."""
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
        values = [(_value(at, n, "error"), _value(at, n, "bound")) for n in tokens]
        error, bound = (np.array(column) for column in zip(*values, strict=True))
        lines[dtype] = Line(error, np.zeros(len(tokens), dtype=bool), bound, 0)
        head += [dtype, f"bound, {dtype}", "in", "looked at", "s"]
        for k, n in enumerate(tokens):
            rows[k] += _cells(at[n]) if n in at else ["–"] * 5
    says = growth.summary
    if growth.control:
        every = [p for held in growth.lines.values() for p in held]
        seen = sum(p.status != "held" for p in every)
        says += f" The statement is false, which shows at {seen} of {len(every)} points."
    numbers = (tuple(head), tuple(map(tuple, rows)))
    if not any(_drawable(p) for points in growth.lines.values() for p in points):
        return Plot(name, growth.about, says, "", *numbers, why_not="every error and bound is 0")
    drawn = drawing.errors(name, growth.about, np.array(tokens), lines, LABELS, few=True)
    return Plot(name, growth.about, says, drawn, *numbers)


def _drawable(p: Point) -> bool:
    """Whether a logarithmic scale can show its error or its bound."""
    return any(isinstance(x, float) and x > 0 for x in (p.error, p.bound))


def _cells(p: Point) -> list[str]:
    error = f"{SIGNS[p.status]} {short(p.error)}"
    return [error, short(p.bound), p.by, p.sampled, f"{p.seconds:.2f}"]


def _value(at: Mapping[int, Point], tokens: int, name: str) -> float:
    value = getattr(at[tokens], name) if tokens in at else None
    return value if isinstance(value, float) else float("nan")


def render_growths(records: Sequence[Measured], *, led: bool = False) -> str:
    """Return the page of all of them; ``led``: it is part of a report, with a link back."""
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
    """Write only this page into a folder, as ``index.html``; return its path.

    Raises :class:`~attnproof.report.ReportError` if the folder cannot be created or written to.
    """
    return written({"index.html": render_growths(records)}, folder)
