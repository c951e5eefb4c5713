"""The command that measures this machine: calibrate."""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING, Annotated

import typer

from .document import Grid, Line, bar
from .document import show as show_page
from .options import DeviceOption, JsonFile, app, load, present
from .usage import UsageError, require_device, require_file

if TYPE_CHECKING:
    import torch

    from .numeric.calibration.record import Calibration, Depth


@app.command()
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
    require_file(json)
    require_device(device)
    load("calibrate needs", "numeric.calibration.store")
    from .numeric.calibration.store import write

    where = present(device)
    found = _stored(where) if show else _measured(where, thorough=thorough)

    backend = found.backend
    told = (
        f"{backend.device}: {backend.name}, {backend.capability}, torch {backend.torch}, "
        f"{found.threads} threads, measured {found.created:%Y-%m-%d} in {found.seconds:.0f} s"
    )
    grids = (grid(found) for grid in (_constants, _kernels, _functions, _orders))
    show_page([Line(told, hang=0), *grids])
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
    from .numeric.calibration.measuring import calibrated

    with bar() as shown:
        task = shown.add_task("functions, sums, products and attention kernels", total=None)
        return calibrated(
            device, thorough=thorough, tell=lambda says: shown.update(task, description=says)
        )


KEPT = ("scores", "weights")
ORDERS = "roundings of one term: at most inner + n/outer + 1 of n terms; n: in any order"


def _depth(depth: Depth) -> str:
    return "n" if depth.outer == 1 else f"{depth.inner} + n/{depth.outer}"


def _constants(found: Calibration) -> Grid:
    columns = (
        "dtype",
        "function",
        "power",
        "digits",
        "product's",
        "sums",
        "softmax",
        "products",
        "if wider",
    )
    return Grid(
        f"Constants ({ORDERS})",
        columns,
        tuple(
            (
                c.dtype,
                f"{c.function_error:.2f}",
                f"{c.power_error:.2f}",
                f"{-log2(c.accumulate):.0f}",
                f"{-log2(c.product):.0f}",
                _depth(c.sums),
                _depth(c.softmax),
                _depth(c.products),
                "never" if c.narrow is None else str(c.narrow),
            )
            for c in found.constants
        ),
    )


def _kernels(found: Calibration) -> Grid:
    seen = {(r.kernel, r.dtype): r for r in found.kernels}
    columns = ("dtype", "kernel", "exp, u", "seen", "any queries", "full blocks", "stores")
    sampled = found.kernels[0].sampled if found.kernels else "none"
    return Grid(
        f"Attention kernels ({sampled} each)",
        columns,
        tuple(
            (
                c.dtype,
                k.kernel,
                f"{k.exponential_error:.2f}",
                f"{seen[k.kernel, c.dtype].error:.2f}",
                _depth(k.any_queries),
                _depth(k.full_blocks),
                " and ".join(w for w in KEPT if getattr(k, f"{w}_stored")) or "nothing",
            )
            for c in found.constants
            for k in c.kernels
        ),
    )


def _functions(found: Calibration) -> Grid:
    return Grid(
        "Functions",
        ("function", "dtype", "error, u", "with margin", "sampled"),
        tuple(
            (r.function, r.dtype, f"{r.error:.2f}", f"{r.used:.2f}", r.sampled)
            for r in found.functions
        ),
    )


def _orders(found: Calibration) -> Grid:
    columns = ("operation", "dtype", "roundings at n terms", "digits", "model")
    return Grid(
        "Orders of sums",
        columns,
        tuple(
            (
                r.operation,
                r.dtype,
                ", ".join(f"{d} at {n:,}" for n, d in zip(r.lengths, r.depths, strict=True)),
                f"{r.bits}" if r.nearest else f"{r.bits}, cut off",
                _depth(r.model),
            )
            for r in found.orders
        ),
    )
