"""The progress of a check: a bar of laws, and beside it the law that is looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from .collecting import Collected


@contextmanager
def code_progress(
    console: Console, target: str
) -> Iterator[Callable[[Collected, dict[str, Any]], None]]:
    """A bar while one target is looked at; yields what to tell of each event."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(20), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    quiet = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=quiet) as bar:
        task = bar.add_task(f"{target}: starting", total=None)
        begun = 0

        def tell(heard: Collected, event: dict[str, Any]) -> None:
            nonlocal begun
            if event["event"] != "begins":
                return
            leg, law = heard.at
            begun += bool(law)
            what = " ".join(filter(None, (leg, law))) or heard.does
            bar.update(
                task, total=heard.expected or None, completed=begun - 1 if law else begun,
                description=f"{target}: {what}",
            )  # fmt: skip

        yield tell
