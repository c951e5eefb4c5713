"""Text for a terminal: sections, filled paragraphs, formulas, tables without a frame, a bar."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import fill, wrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table

    from .evidence import Formula

WIDTH = 80


def section(title: str, parts: Sequence[Iterator[str]]) -> Iterator[str]:
    """An empty line, the title and the parts; nothing at all where the parts are empty."""
    lines = [line for part in parts for line in part]
    if lines:
        yield from ("", *wrap(title, WIDTH), *lines)


def filled(text: str, indent: int = 2, hang: int = 0) -> Iterator[str]:
    """Paragraphs at the width of the page; further lines stand ``hang`` deeper."""
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
    """A formula, indented."""
    for line in told.text.splitlines():
        yield from filled(line, 4, 4)


def bullets(texts: Sequence[str]) -> Iterator[str]:
    """A list."""
    for text in texts:
        yield from filled(f"- {text}", 2, 2)


def headed(*columns: str, title: str = "", caption: str = "", **more: Any) -> Table:
    """A table with these columns, whose cells are wrapped; others may be added to it.

    Title and caption stand at the left; ``more`` is as rich's ``Table`` takes it.  rich is loaded
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


def bar(console: Console | None = None) -> Progress:
    """A bar that is gone when it ends, on standard error if no console is named.

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
