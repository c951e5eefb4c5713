"""The parts of pages: lines and tables, one after the other, and the signs of verdicts.

A page is a function of a record that yields such parts.  :func:`laid_out` lays it out for a
terminal, :func:`show` prints it, and :func:`plain_text` gives the text of an error.  A notebook
displays what a command prints: :class:`Shown` is the base class of all results in Python.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import fill, wrap
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from datetime import datetime

    from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
    from rich.progress import Progress
    from rich.table import Table

    from .evidence import Formula


WIDTH = 80
WIDE = 100  # the width of what Python prints
SIGNS = {
    "proved": "✓",
    "refuted": "✗",
    "ill-typed": "✗",
    "measured": "≈",
    "misread": "≠",
    "undecided": "?",
    "does not apply": "·",
    "internal error": "!",
    "true as written": "✓",
    "true under a stated correction": "~",
    "false as written": "✗",
    "not checkable": "–",
    "reproduced": "✓",
    "differs": "✗",
    "failed": "?",
    "held": "✓",
    "violated": "✗",
    "non-finite": "!",
    "skipped": "–",
    "exact": "✓",
    "broken": "✗",
    "unchecked": "✗",
    "not asked": "–",
    "met": "✓",
    "not met": "✗",
    "open": "?",
}
COLOURS = {
    "✓": "green",
    "✗": "magenta",
    "≈": "cyan",
    "≠": "red",
    "?": "yellow",
    "!": "red",
    "~": "cyan",
    "–": "dim",
    "·": "dim",
}


def sign(verdict: str) -> str:
    """Return a verdict with its sign.

    >>> sign("proved")
    '✓ proved'
    """
    return f"{SIGNS[verdict]} {verdict}"


def style(verdict: str) -> str:
    """Return the colour of a verdict."""
    return COLOURS[SIGNS[verdict]]


def tally(found: Iterable[str], order: Iterable[str] = SIGNS) -> str:
    """Return how many there are of each verdict, in the given order.

    >>> tally(["refuted", "proved", "proved"])
    '2 proved, 1 refuted'
    """
    return ", ".join(f"{count} {word}" for word, count in counts(found, order) if count)


def counts(found: Iterable[str], order: Iterable[str] = SIGNS) -> list[tuple[str, int]]:
    """Return each verdict, in the given order, with its number."""
    count = Counter(found)
    return [(word, count[word]) for word in order]


def short(value: float | str | None, nothing: str = "") -> str:
    """Format a number with two digits.

    >>> short(1.25e-7), short(None), short(3.0), short("non-finite")
    ('1.2e-07', '', '3', 'non-finite')
    """
    return nothing if value is None else f"{value:.2g}" if isinstance(value, float) else value


def when(times: Collection[datetime]) -> str:
    """Format a time to the minute, or the first and the last of several."""
    first, last = (f"{one.astimezone():%Y-%m-%d %H:%M}" for one in (min(times), max(times)))
    return first if first == last else f"from {first} to {last}"


@dataclass(frozen=True)
class Grid:
    """A table: its title, its columns, the rows, and notes for the reader.

    ``numbers``: all columns but the first hold numbers, and are right-aligned.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    numbers: bool = False

    def shown(self) -> Group:
        """Return the table for a terminal; title and notes may be wider than it."""
        from rich.console import Group
        from rich.text import Text

        table = headed(*self.columns)
        for column in table.columns[1:]:
            column.justify = "right" if self.numbers else "left"
        for row in self.rows:
            table.add_row(*row)
        notes = (Text(note, "dim") for note in self.notes)
        return Group(Text(self.title, "bold"), table, *notes)


class Line(NamedTuple):
    r"""A paragraph of a page: its text, its style, and the extra indent of its further lines.

    Its own indent is that of the text.  Without a ``hang`` it is not wrapped, and can be copied
    whole.

    >>> Line("  so many words", hang=2).broken(10)
    '  so many\n    words'
    """

    text: str
    style: str = ""
    hang: int | None = None

    def broken(self, width: int) -> str:
        """Return the text wrapped to this width."""
        if self.hang is None:
            return self.text
        indent = " " * (len(self.text) - len(self.text.lstrip(" ")))
        return fill(
            self.text.strip(),
            width,
            initial_indent=indent,
            subsequent_indent=indent + " " * self.hang,
            break_on_hyphens=False,
            break_long_words=False,
        )


EMPTY = Line("")
Part: TypeAlias = "Line | Grid | RenderableType"


def laid_out(page: Iterable[Part], width: int) -> Group:
    """Return a page as a terminal of this width displays it."""
    from rich.console import Group
    from rich.text import Text

    def part(one: Part) -> RenderableType:
        if isinstance(one, Grid):
            return one.shown()
        if not isinstance(one, Line):
            return one
        return Text(one.broken(width), one.style, no_wrap=True, overflow="ignore")

    return Group(*map(part, page))


def show(page: Iterable[Part], console: Console | None = None, width: int = 0) -> None:
    """Print a page, with lines of a given width, by default that of the terminal."""
    from rich.console import Console

    console = console or Console()
    console.print(laid_out(page, width or console.width), highlight=False, crop=False)


def plain_text(lines: Iterable[Line], width: int) -> str:
    """Return the lines of a page as plain text."""
    return "\n".join(line.broken(width) for line in lines)


def section(title: str, parts: Sequence[Iterator[str]]) -> Iterator[str]:
    """Yield an empty line, the title and the parts; nothing at all if the parts are empty."""
    lines = [line for part in parts for line in part]
    if lines:
        yield from ("", *wrap(title, WIDTH), *lines)


def filled(text: str, indent: int = 2, hang: int = 0) -> Iterator[str]:
    """Yield paragraphs wrapped to the page width; further lines are indented ``hang`` deeper."""
    first, rest = " " * indent, " " * (indent + hang)
    for paragraph in text.split("\n\n"):
        if paragraph.strip():
            yield fill(
                " ".join(paragraph.split()),
                WIDTH,
                initial_indent=first,
                subsequent_indent=rest,
                break_on_hyphens=False,
            )


def formula(told: Formula) -> Iterator[str]:
    """Yield a formula, indented."""
    for line in told.text.splitlines():
        yield from filled(line, 4, 4)


def bullets(texts: Sequence[str]) -> Iterator[str]:
    """Yield the items of a list."""
    for text in texts:
        yield from filled(f"- {text}", 2, 2)


def headed(*columns: str, title: str = "", caption: str = "", **more: Any) -> Table:
    """Return a table with these columns, whose cells are wrapped; more columns may be added.

    Title and caption are left-aligned; ``more`` are arguments of rich's ``Table``.  rich is loaded
    here, so that commands without a table start without it.

    >>> table = headed("law", "verdict", title="Two laws")
    >>> [column.header for column in table.columns]
    ['law', 'verdict']
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    plain = {"box": SIMPLE_HEAD, "show_edge": False, "pad_edge": False, "padding": 0}
    table = Table(
        title=title or None,
        title_justify="left",
        caption=caption or None,
        caption_justify="left",
        **{**plain, **more},
    )
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


class Shown(ABC):
    """A result that displays itself: as text, as the page of its command, and in a notebook.

    >>> class Two(Shown):
    ...     def page(self, width):
    ...         return "two <laws>"
    ...     def to_json(self):
    ...         return "{}"
    >>> print(Two())
    two <laws>
    >>> "two &lt;laws&gt;" in Two()._repr_html_()
    True
    """

    @abstractmethod
    def page(self, width: int) -> RenderableType:
        """Return what a terminal of this width displays."""

    @abstractmethod
    def to_json(self) -> str:
        """Return the record as JSON."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        del console
        yield self.page(options.max_width)

    def __str__(self) -> str:
        """Return plain text, 100 columns wide."""
        console = _console()
        console.print(self.page(WIDE), highlight=False, crop=False)
        told = console.export_text().splitlines()
        return "\n".join(line.rstrip() for line in told)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Return the same page for a notebook, in the colours of a terminal."""
        console = _console()
        console.print(self.page(WIDE), highlight=False, crop=False)
        frame = '<pre style="font-family: monospace; line-height: 1.25">{code}</pre>'
        return console.export_html(inline_styles=True, code_format=frame)

    def __bool__(self) -> bool:
        """Refuse: a verdict has conditions, so a result is not simply true or false."""
        raise TypeError(
            f"{type(self).__name__} is neither true nor false: ask for its verdict, such as "
            "found.verdict == 'proved'"
        )


def _console() -> Console:
    """Return a console that prints nowhere, and records its output."""
    from io import StringIO

    from rich.console import Console

    return Console(file=StringIO(), width=WIDE, record=True, force_jupyter=False)


def bar(console: Console | None = None) -> Progress:
    """Return a progress bar that disappears when it ends, by default on standard error.

    rich is loaded here, so that commands without a bar start without it.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        BarColumn(20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
        console=console or Console(stderr=True),
        transient=True,
    )
