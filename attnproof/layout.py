"""Plain text for a terminal: sections, filled paragraphs, formulas; 80 columns wide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import fill, wrap

from .records import Formula

__all__ = ["WIDTH", "bullets", "filled", "formula", "section"]

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
                " ".join(paragraph.split()), WIDTH, initial_indent=first, subsequent_indent=rest,
                break_on_hyphens=False,
            )  # fmt: skip


def formula(told: Formula) -> Iterator[str]:
    """A formula, indented."""
    for line in told.text.splitlines():
        yield from filled(line, 4, 4)


def bullets(texts: Sequence[str]) -> Iterator[str]:
    """A list."""
    for text in texts:
        yield from filled(f"- {text}", 2, 2)
