"""The command ``trials``: false alarms and planted faults, in two tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .encoding_commands import cores
from .interrupt import Interrupted, held_back
from .options import DeviceOption, Dtypes, JsonFile, Seed
from .terminal_text import bar
from .usage import UsageError, require_device, require_file, require_known

if TYPE_CHECKING:
    from .numeric.trials.judging import Batch, Case
    from .trials import Asked, Tell

__all__ = ["register"]

CASES, SEEDS = 10_000, 5


def register(app: typer.Typer) -> None:
    """Give the command to the command line."""
    app.command()(trials)


def trials(
    cases: Annotated[int, typer.Option(min=0, help="Correct programs that are run.")] = CASES,
    fault_seeds: Annotated[
        int, typer.Option(min=0, help="Draws of each planted fault in each design.")
    ] = SEEDS,
    dtype: Dtypes = None,
    design: Annotated[
        list[str] | None, typer.Option("--design", help="This input design only; repeatable.")
    ] = None,
    device: DeviceOption = "cpu",
    seed: Seed = 0,
    jobs: Annotated[
        int, typer.Option(min=0, help="Draws tried at once; 0: one for each core.")
    ] = 0,
    json: JsonFile = None,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write both tables as Markdown.")
    ] = None,
) -> int:
    """How often each policy refuses correct programs, and which planted faults it catches.

    Beside attnproof's policies stand the usual rules for comparing a kernel with a reference.
    """
    for file in (json, markdown):
        if file is not None:
            require_file(file)
    require_device(device)
    wanted = [one.value for one in dtype or ()]
    asked = _asked(cases, fault_seeds, wanted, design or [], device, seed, jobs or cores())

    from rich.console import Console

    from .trial_tables import grids, shown, summary
    from .trial_tables import markdown as written
    from .trials import run_trials

    with _progress(asked) as tell:
        record = run_trials(asked, tell)
    if record.unfinished and not record.cases + record.fault_cases:
        raise Interrupted("interrupted before any draw was tried; nothing written")
    console = Console()
    for grid in grids(record):
        console.print(shown(grid))
    print(summary(record))
    if markdown is not None:
        markdown.write_text(written(record), encoding="utf-8")
        print(f"wrote {markdown}")
    if json is not None:
        from .output import write_json

        print(f"wrote {write_json(record, json)}")
    if record.unfinished:
        return 130
    return 0 if record.ok else 1


def _asked(
    cases: int, fault_seeds: int, dtypes: list[str], designs: list[str], device: str, seed: int,
    jobs: int,
) -> Asked:  # fmt: skip
    """What is asked for, with defaults filled in; torch is loaded here."""
    try:
        with held_back():
            import_module(".numeric.trials.judging", __package__)
    except ImportError as error:
        told = f"trials need torch ({error}); install it"
        raise UsageError(told) from None
    from .numeric.designs import DESIGNS
    from .numeric.devices import DTYPES, DeviceAbsent, chosen
    from .trials import Asked

    require_known(designs, tuple(DESIGNS), "an input design", f"{', '.join(DESIGNS)}")
    try:
        place = str(chosen(device))
    except DeviceAbsent as absent:
        raise UsageError(str(absent)) from None
    known = [name for name in DTYPES if place != "mps" or name != "float64"]
    command = f"attnproof trials --cases {cases} --fault-seeds {fault_seeds} --seed {seed}"
    command += "".join(f" --dtype {name}" for name in dtypes)
    command += "".join(f" --design {name}" for name in designs)
    command += f" --device {place} --jobs {jobs}"
    return Asked(
        cases, fault_seeds, tuple(dtypes or known), tuple(designs or DESIGNS), place, seed, jobs,
        command,
    )  # fmt: skip


@contextmanager
def _progress(asked: Asked) -> Iterator[Tell]:
    """A bar of draws, with what is tried now."""
    with bar() as shown:
        task = shown.add_task("", total=len(asked.batches()))

        def tell(batch: Batch, cases: list[Case]) -> None:
            del cases
            shown.update(task, advance=1, description=f"{batch.name}, {batch.design}")

        yield tell
