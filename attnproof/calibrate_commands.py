"""The command ``calibrate``: the constants of rounding of this machine, measured and stored."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer

from .interrupt import held_back
from .options import DeviceOption, JsonFile
from .usage import UsageError, require_device, require_file

if TYPE_CHECKING:
    import torch

    from .numeric.calibration.record import Calibration

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Give the command to the command line."""
    app.command()(calibrate)


def calibrate(
    device: DeviceOption = "auto",
    thorough: Annotated[
        bool, typer.Option("--thorough", help="Orders of sums in every dtype, of more terms.")
    ] = False,
    show: Annotated[bool, typer.Option("--show", help="What is stored; measure nothing.")] = False,
    json: JsonFile = None,
) -> int:
    """Measure this machine's constants of rounding: functions, orders of sums, attention kernels.

    They are stored with the backend's name and version, and rounding bounds use them from then on.
    """
    if json is not None:
        require_file(json)
    require_device(device)
    with held_back():
        import_module(".numeric.calibration.store", __package__)
    from .numeric.calibration.store import write
    from .numeric.devices import DeviceAbsent, chosen

    try:
        where = chosen(device)
    except DeviceAbsent as absent:
        raise UsageError(str(absent)) from None
    found = _stored(where) if show else _measured(where, thorough=thorough)

    from rich.console import Console

    from .calibration_tables import tables

    console = Console()
    for part in tables(found):
        console.print(part)
    if not show:
        print(f"stored {write(found)}")
    if json is not None:
        print(f"wrote {write(found, json)}")
    return 0


def _stored(device: torch.device) -> Calibration:
    from .numeric.calibration.record import backend_of
    from .numeric.calibration.store import folder, stored

    backend = backend_of(device)
    found = stored(backend)
    if found is None:
        raise UsageError(
            f"wanted the calibration of {backend.label}, found none in {folder()} or in the "
            f"package; run `attnproof calibrate --device {device.type}`"
        )
    return found


def _measured(device: torch.device, *, thorough: bool) -> Calibration:
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from .numeric.calibration.measuring import calibrated

    columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("functions, sums, products and attention kernels", total=None)
        return calibrated(
            device, thorough=thorough, tell=lambda says: bar.update(task, description=says)
        )
