"""Drawings with matplotlib: curves, heat maps and errors, as SVG that takes the page's colours.

matplotlib is imported when something is drawn, and not before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import escape
from io import StringIO
from math import log10
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from ..evidence import MeasuredEvidence

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .rounding import Line


# Colours that stand for those of the page, which change in the dark; put in when all is drawn.
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
    """Lines over one axis, each with its name if there are several."""
    with _figure() as (figure, axes):
        axes.grid(visible=True)
        for place, (says, values) in enumerate(lines.items()):
            axes.plot(across, values, label=says, color=LINES[place], linestyle=DASHES[place])
        if len(lines) > 1:
            _name_lines(axes)
        axes.set(xlabel=labels[0], ylabel=labels[1])
        return _svg(figure, name, title)


def heat(name: str, title: str, values: Any, start: int, labels: tuple[str, str]) -> Markup:
    """A table of numbers as colours; rows and columns both count from ``start``."""
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
            bar.solids.set_rasterized(True)  # an image, where else each shade were a path
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
    """Errors on two logarithmic scales, with their bounds dashed; circles at collisions.

    The first position that falls together with the one before is a full circle.  An error that is
    0 or no number is left out.  Of ``few`` places each has a mark and its number below the axis.
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
    """The values that a logarithmic scale has."""
    return np.where(np.isfinite(values) & (values > 0), values, np.nan)


def _name_lines(axes: Axes, columns: int = 4) -> None:
    """The names of the lines, above the drawing, where they hide nothing."""
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, borderaxespad=0.1)


def _power(value: float, _: object) -> str:
    """10⁻³ in letters, which need no formula inside the drawing."""
    return "10" + str(round(np.log10(value))).translate(_POWERS) if value > 0 else ""


def _svg(figure: Figure, name: str, title: str) -> Markup:
    """The drawing as part of a page: its own ids, the page's colours and font, no style sheet."""
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
    text = re.sub(r" font-family: [^;\"]*;", "", text)  # the page's own
    for drawn, meant in _INKS.items():
        text = text.replace(drawn, meant)
    text = re.sub(r' (?:d|x|y)="[^"]*"', _shorter, text)
    text = re.sub(r"\s*\n\s*", " ", text).replace("base64, ", "base64,").replace("> <", "><")
    head, _, body = text.partition(">")
    return Markup(f'{head} role="img"><title>{escape(title)}</title>{body}')


def _shorter(places: re.Match[str]) -> str:
    """Coordinates to a hundredth of a point."""
    return re.sub(r"(?<=\.\d{2})\d+", "", places[0])


_LOW, _HIGH = -4.0, 4.0


def ratio(m: MeasuredEvidence) -> float | None:
    """Error over tolerance; None where there is no such number."""
    error, bound = m.error, m.tolerance
    if not isinstance(error, float) or not isinstance(bound, float) or bound <= 0:
        return None
    return error / bound


def ratio_bar(m: MeasuredEvidence) -> Markup:
    """A bar as long as the error, and a line at the bound, on one logarithmic scale.

    The scale runs from a ten-thousandth of the bound to ten thousand times it; a bar with an open
    end stands for everything beyond.
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
