"""The command ``sweep``: statements in all implementations, dtypes, sizes and distributions."""

from __future__ import annotations

import sys
from enum import StrEnum
from importlib import import_module
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import Interrupted, UsageError, require_device, require_file, require_known
from .options import (
    Dtypes,
    Folders,
    Fresh,
    JsonFile,
    Scale,
    StoreFile,
    app,
    dtypes_on_device,
    finish,
    load,
    load_statements,
    store_in,
)

if TYPE_CHECKING:
    from ..sweeping.records import SweepRecord
    from ..sweeping.sweep import Engine, SweepRequest
    from ..theorem_runs.catalogue import Catalogue

MAX_CELLS = 1_000_000  # cells; more is a mistake in the command


class EngineChoice(StrEnum):
    """What runs the cells."""

    loky = "loky"
    threading = "threading"
    ray = "ray"


@app.command()
def sweep(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID or subject]...", help="Default: all theorems."),
    ] = None,
    controls: Annotated[
        bool, typer.Option("--controls", help="Also measure the negative controls.")
    ] = False,
    implementation: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Only this implementation; repeatable; default: all that apply."
        ),
    ] = None,
    dtype: Dtypes = None,
    scale: Annotated[
        list[Scale] | None, typer.Option(help="Size of the arrays; repeatable; default: small.")
    ] = None,
    tokens: Annotated[
        list[int] | None,
        typer.Option(min=2, help="Number of tokens, in place of that of the scale; repeatable."),
    ] = None,
    distribution: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME|all", help="Input distribution; repeatable; default: normal."),
    ] = None,
    design: Annotated[list[str] | None, typer.Option(hidden=True)] = None,
    seeds: Annotated[
        str, typer.Option(metavar="FIRST:END", help="Range of seeds; END is excluded.")
    ] = "0:1",
    device: Annotated[
        list[str] | None,
        typer.Option(metavar="auto|cpu|cuda|mps", help="Device; repeatable; default: auto."),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of parallel workers.")] = 2,
    engine: Annotated[
        EngineChoice, typer.Option(help="Run cells in processes, threads, or a Ray cluster.")
    ] = EngineChoice.loky,
    address: Annotated[
        str, typer.Option(help="Address of a Ray cluster; default: start Ray on this machine.")
    ] = "",
    limit: Annotated[
        float | None, typer.Option(min=0.01, metavar="SECONDS", help="Time limit for each cell.")
    ] = None,
    memory: Annotated[
        float | None,
        typer.Option(min=0.01, metavar="GiB", help="Additional memory that a cell may use."),
    ] = None,
    json: JsonFile = None,
    store: StoreFile = None,
    fresh: Fresh = False,
    theorems: Folders = None,
) -> int:
    """Measure statements in every combination of settings.

    A cell is one statement in one implementation, dtype, size, input distribution, seed and device.
    Finished cells are stored and not measured again.
    """
    catalogue, _ = load_statements(theorems)
    require_known(names or (), catalogue.names, "the id or subject of a theorem")
    chosen = catalogue.select(names or ())
    require_file(json)
    if address and engine is not EngineChoice.ray:
        told = f"--address is that of a Ray cluster; with it goes --engine ray, not {engine}"
        raise UsageError(told)
    if design:
        print("attnproof: --design is now called --distribution", file=sys.stderr)
    devices = tuple(dict.fromkeys(device or ["auto"]))
    for name in devices:
        require_device(name)
    first, end = _range(seeds)

    from ..sweeping.cells import Grid
    from ..sweeping.sweep import SweepRequest

    load("sweep needs", "numeric.check")
    usual = tuple(dict.fromkeys(d for name in devices for d in dtypes_on_device(name)))
    grid = Grid(
        tuple(d.value for d in dtype or ()) or usual,
        tuple(dict.fromkeys(s.value for s in scale or [Scale.small])),
        tuple(dict.fromkeys(tokens or [])) or (None,),
        _distributions([*(distribution or ()), *(design or ())] or ["normal"]),
        tuple(range(first, end)),
        devices,
    )
    least = prod(map(len, (grid.dtypes, grid.scales, grid.tokens, grid.distributions, devices)))
    if (least := least * (end - first) * len(chosen.entries)) > MAX_CELLS:
        raise UsageError(
            f"{least:,} cells and more were asked for; at most {MAX_CELLS:,} are swept"
        )
    gpus = any(name.partition(":")[0] == "cuda" for name in devices)
    asked = SweepRequest(
        grid,
        tuple(implementation or ()),
        controls,
        _engine(engine, jobs, address, gpus=gpus),
        limit,
        memory,
        fresh,
    )
    for fault in chosen.broken:
        print(f"attnproof: {fault.source.label}: {fault.error}", file=sys.stderr)
    record = run_sweep(chosen, asked, store)

    from ..documents.document import show
    from ..errors import FAULT
    from ..sweeping.records import sweep_page

    show(sweep_page(record))
    code = finish(record, json, ok=record.ok and not chosen.broken)
    ours = any(fault.traceback for fault in chosen.broken)
    return FAULT if ours and code != 130 else code


def _range(text: str) -> tuple[int, int]:
    first, colon, end = text.partition(":")
    try:
        numbers = (int(first), int(end)) if colon else (int(first), int(first) + 1)
    except ValueError:
        numbers = (0, 0)
    if not 0 <= numbers[0] < numbers[1]:
        raise UsageError(f"wanted seeds as FIRST:END or one of them, such as 0:100, got {text!r}")
    return numbers


def _distributions(asked: list[str]) -> tuple[str, ...]:
    from ..numeric.distributions import DISTRIBUTIONS

    for name in asked:
        if name != "all" and name not in DISTRIBUTIONS:
            known = ", ".join(DISTRIBUTIONS)
            raise UsageError(f"wanted an input distribution ({known}) or all, got {name!r}")
    return tuple(DISTRIBUTIONS) if "all" in asked else tuple(dict.fromkeys(asked))


def _engine(name: EngineChoice, jobs: int, address: str, *, gpus: bool) -> Engine:
    from ..sweeping.sweep import Engine

    if name is EngineChoice.ray:
        try:
            import_module("ray")
        except ImportError:
            raise UsageError(
                "--engine ray wants Ray, which is not installed; pip install 'attnproof[ray]'"
            ) from None
    return Engine(name.value, jobs, address, gpus)


def run_sweep(chosen: Catalogue, asked: SweepRequest, store: Path | None) -> SweepRecord:
    """Sweep with a progress bar; interrupted before any cell, leave nothing."""
    from rich.console import Console

    from ..numeric.devices import DeviceAbsent
    from ..numeric.implementations import UnknownImplementation
    from ..sweeping.records import sweep_progress
    from ..sweeping.sweep import planned
    from ..sweeping.sweep import sweep as sweep_cells

    try:
        plan = planned(chosen.entries, asked)
    except (DeviceAbsent, UnknownImplementation) as error:
        raise UsageError(str(error)) from None
    kept = store_in(store)
    heard: dict[str, None] = {}
    with sweep_progress(Console(stderr=True), len(plan.cells)) as tell:
        record = sweep_cells(plan, asked, kept, tell, lambda line: heard.update({line: None}))
    for line in heard:
        print(f"attnproof: {line}", file=sys.stderr)
    if record.unfinished and not record.cells:
        raise Interrupted("interrupted before any cell was measured; nothing written")
    return record
