"""Drawings as SVG in the page's colours: curves, heat maps, errors; theorems as tiles; graphs.

Curves, heat maps and errors are drawn by matplotlib, which is imported only when something is
drawn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from io import StringIO
from math import log10
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from ..numeric.results import MeasuredEvidence

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .rounding import Line


# Placeholders for the page's colours, which change in dark mode; replaced after drawing.
SOFT, RULE = "#010203", "#040506"
LINES = ("#070809", "#0a0b0c", "#0d0e0f", "#101112")
DASHES = ("-", (0, (5, 2)), (0, (1, 1.6)), (0, (6, 2, 1, 2)))
MARKS = ("s", "^", "D", "v")
_INKS = {
    SOFT: "var(--soft)",
    RULE: "var(--rule)",
    **dict(
        zip(
            LINES,
            ("var(--link)", "var(--second)", "var(--undecided)", "var(--proved)"),
            strict=True,
        )
    ),
}
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "attnproof",
    "font.size": 9.5,
    "font.family": ["STIXGeneral", "DejaVu Sans"],
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "legend.frameon": False,
    "text.color": SOFT,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": SOFT,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.handlelength": 2.6,
}
_SIZE = (4.4, 3.0)
_TALL = (4.4, 3.9)
_POWERS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@contextmanager
def _figure(size: tuple[float, float] = _SIZE) -> Iterator[tuple[Figure, Axes]]:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_STYLE):
        figure = Figure(figsize=size, layout="constrained")
        yield figure, figure.subplots()


def curves(
    name: str, title: str, across: Any, lines: Mapping[str, Any], labels: tuple[str, str]
) -> Markup:
    """Draw lines over one axis, each with its name if there are several."""
    with _figure() as (figure, axes):
        axes.grid(visible=True)
        for place, (says, values) in enumerate(lines.items()):
            axes.plot(across, values, label=says, color=LINES[place], linestyle=DASHES[place])
        if len(lines) > 1:
            _name_lines(axes)
        axes.set(xlabel=labels[0], ylabel=labels[1])
        return _svg(figure, name, title)


def heat(name: str, title: str, values: Any, start: int, labels: tuple[str, str]) -> Markup:
    """Draw a table of numbers as colours; rows and columns both count from ``start``."""
    with _figure() as (figure, axes):
        low, high = start - 0.5, start + len(values) - 0.5
        shown = axes.imshow(
            values,
            interpolation="none",
            origin="lower",
            cmap="viridis",
            extent=(low, high, low, high),
        )
        bar = figure.colorbar(shown, shrink=0.9)
        if bar.solids is not None:
            bar.solids.set_rasterized(True)  # an image, or else each shade is a path
        axes.set(xlabel=labels[0], ylabel=labels[1])
        return _svg(figure, name, title)


def errors(
    name: str,
    title: str,
    across: Any,
    lines: Mapping[str, Line],
    labels: tuple[str, str],
    *,
    few: bool = False,
) -> Markup:
    """Draw errors on two logarithmic scales, with dashed bounds; circles mark collisions.

    The first position that coincides with the previous one gets a filled circle.  An error that is
    0 or not a number is left out.  With ``few`` places, each has a marker, and its number below the
    axis.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

    with _figure(_TALL) as (figure, axes):
        axes.grid(visible=True)
        for place, (says, line) in enumerate(lines.items()):
            colour, drawn = LINES[place], _positive(line.error)
            axes.plot(
                across,
                drawn,
                label=says,
                color=colour,
                marker=MARKS[place],
                markevery=None if few else (3 * place, 11),
                markersize=3.4,
            )
            for rings, fill in ((line.together, "none"), (across == line.first, colour)):
                axes.plot(
                    across,
                    np.where(rings, drawn, np.nan),
                    linestyle="none",
                    marker="o",
                    markersize=3.8,
                    color=colour,
                    markerfacecolor=fill,
                    markeredgewidth=0.9,
                )
            if line.bound is not None:
                axes.plot(
                    across,
                    _positive(line.bound),
                    color=colour,
                    linewidth=0.9,
                    linestyle=(0, (4, 2)),
                )
        if any(line.bound is not None for line in lines.values()):
            axes.plot([], [], color=SOFT, linewidth=0.9, linestyle=(0, (4, 2)), label="bound")
        axes.set(
            xscale="log",
            yscale="log",
            xlabel=labels[0],
            ylabel=labels[1],
            xlim=(across[0] / 1.4, across[-1] * 1.4),
        )
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(LogLocator(numticks=9))
            axis.set_major_formatter(FuncFormatter(_power))
            axis.set_minor_locator(NullLocator())
        if few:
            axes.xaxis.set_major_locator(FixedLocator(across))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{round(value):,}"))
        _name_lines(axes, columns=2)
        return _svg(figure, name, title)


def _positive(values: Any) -> Any:
    """Return the values that a logarithmic scale can show; NaN for others."""
    return np.where(np.isfinite(values) & (values > 0), values, np.nan)


def _name_lines(axes: Axes, columns: int = 4) -> None:
    """Put the names of the lines above the drawing, where they hide nothing."""
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, borderaxespad=0.1)


def _power(value: float, _: object) -> str:
    """Format a power of ten as 10⁻³, without a formula inside the drawing."""
    return "10" + str(round(np.log10(value))).translate(_POWERS) if value > 0 else ""


def _svg(figure: Figure, name: str, title: str) -> Markup:
    """Return the drawing as part of a page: with ids of its own, the page's colours and font."""
    written = StringIO()
    figure.savefig(written, format="svg", metadata={"Date": None})
    text = written.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(
        r"<metadata>.*?</metadata>|<defs>\s*<style.*?</style>\s*</defs>", "", text, flags=re.DOTALL
    )
    text = re.sub(r' xmlns:xlink="[^"]*"| transform="rotate\(-0 [^)]*\)"', "", text)
    text = re.sub(r'<g id="[^"]*"', "<g", text)
    text = re.sub(r'\bid="', f'id="{escape(name)}-', text)
    text = re.sub(r'xlink:href="#', f'href="#{escape(name)}-', text).replace("xlink:href", "href")
    text = text.replace("url(#", f"url(#{escape(name)}-")
    text = re.sub(r" font-family: [^;\"]*;", "", text)  # use the page's font
    for drawn, meant in _INKS.items():
        text = text.replace(drawn, meant)
    text = re.sub(r' (?:d|x|y)="[^"]*"', _shorter, text)
    text = re.sub(r"\s*\n\s*", " ", text).replace("base64, ", "base64,").replace("> <", "><")
    head, _, body = text.partition(">")
    return Markup(f'{head} role="img"><title>{escape(title)}</title>{body}')


def _shorter(places: re.Match[str]) -> str:
    """Round coordinates to a hundredth of a point."""
    return re.sub(r"(?<=\.\d{2})\d+", "", places[0])


_LOW, _HIGH = -4.0, 4.0


def ratio(m: MeasuredEvidence) -> float | None:
    """Return error over tolerance; None if there is no such number."""
    error, bound = m.error, m.tolerance
    if not isinstance(error, float) or not isinstance(bound, float) or bound <= 0:
        return None
    return error / bound


def ratio_bar(m: MeasuredEvidence) -> Markup:
    """Draw a bar as long as the error, and a line at the bound, on one logarithmic scale.

    The scale runs from a ten-thousandth of the bound to ten thousand times it; a bar with an open
    end stands for anything beyond.
    """
    value = ratio(m)
    if value is None:
        return Markup("")
    power = _LOW if value <= 0 else log10(value)
    held = min(max(power, _LOW), _HIGH)
    long = max(1.5, 92 * (held - _LOW) / (_HIGH - _LOW))
    kind = "in" if m.status == "held" else "out"
    beyond = " beyond" if held != power or value <= 0 else ""
    told = escape(f"the error is {value:.2g} times its bound")
    middle = 4 + 92 * -_LOW / (_HIGH - _LOW)
    return Markup(
        f'<svg class="ratio" viewBox="0 0 100 14" width="100" height="14" role="img">'
        f"<title>{told}</title>"
        f'<line class="axis" x1="4" y1="12" x2="96" y2="12"/>'
        f'<rect class="{kind}{beyond}" x="4" y="4" width="{long:.1f}" height="6"/>'
        f'<line class="bound" x1="{middle:g}" y1="1" x2="{middle:g}" y2="13"/></svg>'
    )


WIDE, HIGH, STEP = 13, 22, 18  # size of a tile, and the step to the next
ROW, LETTER, PAD, GAP = 30, 7.4, 9, 54  # of the graph: a row, a letter, a margin, between columns
FALSE = ("refuted", "ill-typed")


@dataclass(frozen=True)
class Tile:
    """A theorem in the overview: its link, title, verdict, and what the evidence says."""

    href: str
    title: str
    word: str
    states: tuple[str, ...]


def tiles(held: Sequence[Tile], title: str) -> Markup:
    """Draw the theorems of one subject as tiles in a row."""
    wide = STEP * len(held)
    count = f"{len(held)} theorem{'' if len(held) == 1 else 's'}"
    drawn = "".join(
        f'<a href="{escape(tile.href)}"><title>{escape(f"{tile.word}: {tile.title}")}</title>'
        f'<g transform="translate({STEP * place} 0)" class="{escape(tile.word)}">'
        f"{_inside(tile.word, tile.states)}</g></a>"
        for place, tile in enumerate(held)
    )
    return Markup(
        f'<svg class="tiles" viewBox="0 0 {wide} {HIGH}" width="{wide}" height="{HIGH}" '
        f'role="group" aria-label="{escape(f"{title}: {count}")}">{drawn}</svg>'
    )


def drawn_tile(word: str) -> Markup:
    """Draw one tile by itself, twice as large, for a legend."""
    inside = _inside(word, ("for",) * 4 if word != "wrong" else ("against", "for", "none", "none"))
    return Markup(
        f'<svg class="tiles" viewBox="0 0 {WIDE} {HIGH}" width="{2 * WIDE}" height="{2 * HIGH}" '
        f'aria-hidden="true"><g class="{word}">{inside}</g></svg>'
    )


def _inside(word: str, states: Sequence[str]) -> str:
    """Draw a block for the verdict, marked without colour too, and a bar for each other kind."""
    mark = ""
    if word in FALSE:
        mark = '<path d="M3.5 2l6 6m0-6l-6 6"/>'
    elif word == "wrong":
        mark = '<path d="M6.5 1.5v4.4m0 1.3v1.4"/>'
    bars = "".join(
        f'<rect class="{state}" x="0.5" y="{11.5 + 4 * k:g}" width="{WIDE - 1}" height="2"/>'
        for k, state in enumerate(states[1:])
    )
    return f'<rect x="0" y="0" width="{WIDE}" height="10"/>{mark}{bars}'


@dataclass(frozen=True)
class Node:
    """A box with a word in it."""

    name: str
    href: str
    x: float
    y: float
    wide: float
    kind: str


def uses_drawn(
    uses: Mapping[str, Sequence[str]],
    direct: Sequence[str],
    places: Mapping[str, str],
    claims: Mapping[str, str],
) -> Markup:
    """Draw a theorem between the definitions it uses and the claims that rest on it.

    ``uses`` has, for each definition, those inside it; an arrow points to the user.
    """
    if not uses and not claims:
        return Markup("")
    depth: dict[str, int] = {}
    for word in uses:
        _depth(word, uses, depth)
    deepest = max(depth.values(), default=-1)
    columns: list[list[tuple[str, str, str]]] = [[] for _ in range(deepest + 1)]
    for word in uses:
        columns[depth[word]].append((word, places[word], "definition"))
    columns.append([("this theorem", "", "this")])
    if claims:
        columns.append([(claim, href, "claim") for claim, href in claims.items()])
    high = ROW * max(map(len, columns)) + 4
    nodes: dict[tuple[str, str], Node] = {}
    x = 2.0
    for column in columns:
        wide = max(LETTER * len(word) for word, _, _ in column) + 2 * PAD
        top = (high - ROW * len(column)) / 2
        for place, (word, href, kind) in enumerate(sorted(column, key=lambda c: c[2] == "this")):
            nodes[kind, word] = Node(word, href, x, top + ROW * place + 4, wide, kind)
        x += wide + GAP
    this = nodes["this", "this theorem"]
    pairs = [(nodes["definition", a], nodes["definition", b]) for b in uses for a in uses[b]]
    pairs += [(nodes["definition", word], this) for word in direct]
    pairs += [(this, nodes["claim", claim]) for claim in claims]
    told = f"It uses {', '.join(direct) or 'no definition'}; "
    told += f"claims that rest on it: {', '.join(claims)}." if claims else "no claim rests on it."
    wide = x - GAP + 2
    return Markup(
        f'<svg class="graph" viewBox="0 0 {wide:g} {high:g}" width="{wide:g}" height="{high:g}" '
        f'role="img"><title>{escape(told)}</title>'
        '<defs><marker id="tip" viewBox="0 0 6 6" refX="6" refY="3" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L6 3L0 6z"/></marker></defs>'
        f"{''.join(_arrow(a, b) for a, b in pairs)}{''.join(map(_box, nodes.values()))}</svg>"
    )


def _depth(word: str, uses: Mapping[str, Sequence[str]], found: dict[str, int]) -> int:
    """Return how deeply definitions are nested in it; one inside itself counts once."""
    if word not in found:
        found[word] = 0
        inner = [_depth(part, uses, found) for part in uses[word]]
        found[word] = 1 + max(inner) if inner else 0
    return found[word]


def _arrow(a: Node, b: Node) -> str:
    x, y, to, down = a.x + a.wide, a.y + 11, b.x - 1, b.y + 11
    bend = (to - x) / 2
    return (
        f'<path class="arrow" marker-end="url(#tip)" '
        f'd="M{x:g} {y:g}C{x + bend:g} {y:g} {to - bend:g} {down:g} {to:g} {down:g}"/>'
    )


def _box(node: Node) -> str:
    box = (
        f'<rect class="{node.kind}" x="{node.x:g}" y="{node.y:g}" width="{node.wide:g}" '
        f'height="22" rx="3"/><text x="{node.x + node.wide / 2:g}" y="{node.y + 15:g}" '
        f'text-anchor="middle">{escape(node.name)}</text>'
    )
    return f'<a href="{escape(node.href)}">{box}</a>' if node.href else box
