"""The bar of a command that takes a while: how much is done, for how long, and what is next."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

__all__ = ["bar"]


def bar(console: Console | None = None) -> Progress:
    """A bar that is gone when it ends, on standard error if no console is named.

    rich is loaded here, so that commands without a bar start without it.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"),
        console=console or Console(stderr=True), transient=True,
    )  # fmt: skip
