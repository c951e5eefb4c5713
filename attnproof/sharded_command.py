"""The command ``sharded``: one check shared out over the processes of torchrun."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, cast

import typer

from .options import DeviceOption, Dtype, JsonFile, Scale, ScaleOption, Seed, loaded
from .scale_commands import Causal, Heads, KernelName, Tokens, Width, calls_of, scale_table, told_of
from .usage import UsageError, require_device, require_file, require_known

if TYPE_CHECKING:
    from pathlib import Path

    from .numeric.at_scale.comparison import Found
    from .records import Expected

__all__ = ["register", "sharded"]


def register(app: typer.Typer) -> None:
    """Give the command to the command line."""
    app.command()(sharded)


def sharded(
    name: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="A theorem; a kernel, if none.")
    ] = None,
    scale: ScaleOption = Scale.small,
    tokens: Tokens = 16_384,
    heads: Heads = 8,
    width: Width = 64,
    dtype: Dtype = Dtype.float32,
    causal: Causal = False,
    kernel: KernelName = "auto",
    device: DeviceOption = "auto",
    seed: Seed = 0,
    json: JsonFile = None,
) -> int:
    """One check over several devices: torchrun --nproc-per-node 2 -m attnproof sharded.

    Heads, or rows of the queries, are shared out; every process compares its own sampled rows with
    float64; process 0 tells the worst of all.  Of a theorem, each equation is read on shares.
    """
    require_device(device)
    if json is not None:
        require_file(json)
    if name is not None:
        return _theorem(name, scale, dtype, device, seed, json)
    (call,) = calls_of(tokens, heads, width, [dtype], causal, kernel, _own(device), seed)
    from .numeric.sharded.attention import CannotShare, check_sharded, processes

    try:
        with processes(call.device) as mesh:
            found = check_sharded(call, mesh)
            first = mesh.get_rank() == 0
    except CannotShare as reason:
        raise UsageError(str(reason)) from None
    except ValueError as error:
        if "torchrun" not in str(error):
            raise
        raise UsageError(str(error)) from None
    if first:
        _tell(found, json)
    return 0 if found.status == "held" else 1


def _theorem(
    name: str, scale: Scale, dtype: Dtype, device: str, seed: int, json: Path | None
) -> int:
    """Every conclusion of a theorem and its negative control on shares; process 0 prints each."""
    catalogue, _ = loaded(None)
    require_known([name], catalogue.ids, "the id of a theorem")
    entries = catalogue.only(name).entries
    if not entries:
        told = f"`attnproof show {name}` tells why"
        raise UsageError(f"wanted a theorem that can be read, got {name!r}; {told}")
    from .judgement import opposite
    from .numeric.devices import chosen, dtype_named
    from .numeric.sharded.attention import processes
    from .numeric.sharded.statements import measure_sharded

    claimed = [
        (statement, opposite(expected) if control else expected, control)
        for entry in entries
        for expected in [cast("Expected", entry.theorem.expected)]
        for statement in entry.statements
        for control in [statement is entry.theorem.control]
    ]
    where = chosen(_own(device))
    try:
        with processes(where) as mesh:
            found = [
                (expected, control, m)
                for statement, expected, control in claimed
                for m in measure_sharded(
                    statement, mesh, scale=scale.value, device=where,
                    dtype=dtype_named(dtype.value), seed=seed, expected=expected,
                )
            ]
            first, count = mesh.get_rank() == 0, mesh.size()
    except ValueError as error:
        if "torchrun" not in str(error):
            raise
        raise UsageError(str(error)) from None
    import torch

    from .sharded_records import lines_of, sharded_record

    record = sharded_record(name, found, torch.__version__, count)
    if first:
        for line in lines_of(record):
            print(line)
        if json is not None:
            from .output import write_json

            print(f"wrote {write_json(record, json)}")
    return 0 if record.ok else 1


def _own(device: str) -> str:
    """On CUDA the GPU of this process."""
    rank = os.environ.get("LOCAL_RANK")
    if rank is None or device not in ("auto", "cuda"):
        return device
    from .numeric.devices import devices

    return f"cuda:{rank}" if "cuda" in devices() else device


def _tell(found: Found, json: Path | None) -> None:
    import torch
    from rich.console import Console

    from .scale_records import scale_record

    record = scale_record([found], torch.__version__, torch.get_num_threads())
    console = Console()
    console.print(scale_table(record))
    for line in told_of(record):
        console.print(line, soft_wrap=True, markup=False, highlight=False)
    if json is not None:
        from .output import write_json

        print(f"wrote {write_json(record, json)}")
