"""The command on rotary encoding in short formats: ``precision``."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .interrupt import held_back
from .options import JsonFile, Seed
from .usage import UsageError, require_device, require_file

if TYPE_CHECKING:
    from .precision_records import PrecisionRecord

MarkdownFile = Annotated[
    Path | None, typer.Option("--markdown", metavar="FILE", help="Write the tables as a document.")
]
Device = Annotated[str, typer.Option(metavar="cpu|cuda|mps", help="Where vectors are turned.")]


def register(app: typer.Typer) -> None:
    """Give the command to the command line."""
    app.command()(precision)


def precision(
    json: JsonFile = None, markdown: MarkdownFile = None, device: Device = "cpu", seed: Seed = 0
) -> int:
    """Rotary encoding in short formats: errors with their bounds, where it breaks and drifts."""
    for file in (json, markdown):
        if file is not None:
            require_file(file)
    require_device(device)
    try:
        with held_back():
            import_module(".numeric.rotary_precision.survey", __package__)
    except ImportError as error:
        raise UsageError(f"precision needs torch ({error}); install torch") from None
    record = _surveyed(device, seed)

    from rich.console import Console

    from .precision_tables import markdown as written
    from .precision_tables import sheets, shown

    console = Console()
    for sheet in sheets(record):
        console.print(f"[bold]{sheet.title}[/]", shown(sheet), sheet.says, "", sep="\n")
    if json is not None:
        from .output import write_json

        print(f"wrote {write_json(record, json)}")
    if markdown is not None:
        markdown.write_text(written(record), encoding="utf-8")
        print(f"wrote {markdown}")
    return 1 if record.violations else 0


def _surveyed(device: str, seed: int) -> PrecisionRecord:
    from datetime import UTC, datetime

    from rich.console import Console
    from rich.progress import Progress

    from . import __version__
    from .machine import machine
    from .numeric.rotary_precision.survey import survey
    from .precision_records import recorded

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def tell(says: str, done: int, total: int) -> None:
            bar.update(task, description=says, completed=done, total=total)

        found = survey(device=device, seed=seed, tell=tell)
    return recorded(found, datetime.now(UTC), __version__, machine(numeric=True))
