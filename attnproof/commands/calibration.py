"""The command ``calibrate``, which measures this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import log2
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..documents.document import Grid, Line, bar
from ..documents.document import show as show_page
from ..errors import UsageError, require_device, require_file
from .options import DeviceOption, JsonFile, app, load, present_device

if TYPE_CHECKING:
    import torch

    from ..numeric.calibration.record import Calibration, Depth


@app.command()
def calibrate(
    device: DeviceOption = "auto",
    thorough: Annotated[
        bool,
        typer.Option(
            "--thorough", help="Measure summation orders in every dtype, with more terms."
        ),
    ] = False,
    show: Annotated[
        bool, typer.Option("--show", help="Show the stored calibration; measure nothing.")
    ] = False,
    json: JsonFile = None,
) -> int:
    """Measure this machine's rounding constants.

    These are the errors of functions, the orders of summation, and the rounding of attention
    kernels.  They are stored with the name and version of the backend; rounding bounds use them
    from then on.
    """
    require_file(json)
    require_device(device)
    load("calibrate needs", "numeric.calibration.store")
    from ..numeric.calibration.store import write

    where = present_device(device)
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
    from ..numeric.calibration.record import backend_of
    from ..numeric.calibration.store import folder, stored_calibration

    backend = backend_of(device)
    found = stored_calibration(backend)
    if found is None:
        raise UsageError(
            f"wanted the calibration of {backend.label}, found none in {folder()} or in the "
            f"package; run `attnproof calibrate --device {device.type}`"
        )
    return found


def _measured(device: torch.device, *, thorough: bool) -> Calibration:
    from ..numeric.calibration.measuring import calibrated

    with bar() as shown:
        task = shown.add_task("functions, sums, products and attention kernels", total=None)
        return calibrated(
            device, thorough=thorough, tell=lambda says: shown.update(task, description=says)
        )


KEPT = ("scores", "weights")
ORDERS = "roundings of one term: at most inner + n/outer + 1 of n terms; n: in any order"


def _depth(depth: Depth) -> str:
    return "n" if depth.outer == 1 else f"{depth.inner} + n/{depth.outer}"


def _grid(title: str, rows: Iterable[Any], columns: Mapping[str, Callable[[Any], str]]) -> Grid:
    """Return a table with a row for each item, and what each column says about it."""
    return Grid(title, (*columns,), tuple(tuple(of(x) for of in columns.values()) for x in rows))


def _constants(found: Calibration) -> Grid:
    return _grid(
        f"Constants ({ORDERS})",
        found.constants,
        {
            "dtype": lambda c: c.dtype,
            "function": lambda c: f"{c.function_error:.2f}",
            "power": lambda c: f"{c.power_error:.2f}",
            "digits": lambda c: f"{-log2(c.accumulate):.0f}",
            "product's": lambda c: f"{-log2(c.product):.0f}",
            "sums": lambda c: _depth(c.sums),
            "softmax": lambda c: _depth(c.softmax),
            "products": lambda c: _depth(c.products),
            "if wider": lambda c: "never" if c.narrow is None else str(c.narrow),
        },
    )


def _kernels(found: Calibration) -> Grid:
    seen = {(r.kernel, r.dtype): r for r in found.kernels}
    sampled = found.kernels[0].sampled if found.kernels else "none"
    return _grid(
        f"Attention kernels ({sampled} each)",
        [(c.dtype, k) for c in found.constants for k in c.kernels],
        {
            "dtype": lambda x: x[0],
            "kernel": lambda x: x[1].kernel,
            "exp, u": lambda x: f"{x[1].exponential_error:.2f}",
            "seen": lambda x: f"{seen[x[1].kernel, x[0]].error:.2f}",
            "any queries": lambda x: _depth(x[1].any_queries),
            "full blocks": lambda x: _depth(x[1].full_blocks),
            "stores": lambda x: (
                " and ".join(w for w in KEPT if getattr(x[1], f"{w}_stored")) or "nothing"
            ),
        },
    )


def _functions(found: Calibration) -> Grid:
    return _grid(
        "Functions",
        found.functions,
        {
            "function": lambda r: r.function,
            "dtype": lambda r: r.dtype,
            "error, u": lambda r: f"{r.error:.2f}",
            "with margin": lambda r: f"{r.used:.2f}",
            "sampled": lambda r: r.sampled,
        },
    )


def _orders(found: Calibration) -> Grid:
    def roundings(r: Any) -> str:
        return ", ".join(f"{d} at {n:,}" for n, d in zip(r.lengths, r.depths, strict=True))

    return _grid(
        "Orders of sums",
        found.orders,
        {
            "operation": lambda r: r.operation,
            "dtype": lambda r: r.dtype,
            "roundings at n terms": roundings,
            "digits": lambda r: f"{r.bits}" if r.nearest else f"{r.bits}, cut off",
            "model": lambda r: _depth(r.model),
        },
    )
