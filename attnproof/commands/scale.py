"""The commands ``scale`` and ``sharded``: kernels and theorems at realistic sizes."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ..documents.document import Line, bar, show
from ..errors import (
    Interrupted,
    UsageError,
    require_device,
    require_file,
    require_known,
    require_writable,
)
from .options import (
    DeviceOption,
    Dtype,
    Folders,
    Fresh,
    JsonFile,
    Scale,
    ScaleOption,
    Seed,
    StoreFile,
    app,
    finish,
    load,
    load_statements,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import torch
    from torch.distributed.device_mesh import DeviceMesh

    from ..documents.evidence import InternalErrorEvidence
    from ..numeric.at_scale.call import Call
    from ..numeric.results import WayRecord
    from ..sweeping.records import SweepRecord
    from ..sweeping.scale import ScaleRecord
    from ..theorem_runs.records import Expected


DEFAULT_TOKENS = (1_024, 16_384, 131_072, 1_048_576)
"""The numbers of tokens at which theorems are measured by default."""

Tokens = Annotated[
    int, typer.Option(min=1, help="Number of tokens (queries and keys of each head).")
]
SomeTokens = Annotated[
    list[int] | None,
    typer.Option(
        "--tokens",
        min=2,
        help="Number of tokens; repeatable.  Default: 16384 for a kernel, "
        f"{', '.join(map(str, DEFAULT_TOKENS))} for theorems.",
    ),
]
Heads = Annotated[int, typer.Option(min=1, help="Number of heads.")]
Width = Annotated[int, typer.Option(min=1, help="Features per head.")]
ScaleDtype = Annotated[
    list[Dtype] | None,
    typer.Option("--dtype", help="Dtype of the inputs; repeatable; default: float32."),
]
Ways = Annotated[
    list[str] | None,
    typer.Option(
        "--way",
        metavar="WAY",
        help="Check: sampled, clustered, alone, queries, keys or reach; repeatable; default: by "
        "size.",
    ),
]
KernelName = Annotated[
    str, typer.Option(metavar="auto|flash|efficient|cudnn|math", help="Backend of the kernel.")
]
Causal = Annotated[bool, typer.Option("--causal", help="Apply a causal mask.")]
Schema = Annotated[
    bool, typer.Option("--schema", help="Print the JSON schema of the record and exit.")
]


@app.command()
def scale(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID or subject]...", help="Theorems; default: a kernel."),
    ] = None,
    tokens: SomeTokens = None,
    heads: Heads = 8,
    width: Width = 64,
    dtype: ScaleDtype = None,
    causal: Causal = False,
    way: Ways = None,
    kernel: KernelName = "auto",
    device: DeviceOption = "auto",
    seed: Seed = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Number of parallel workers (theorems).")] = 1,
    json: JsonFile = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write an HTML page with plots to this folder."),
    ] = None,
    store: StoreFile = None,
    fresh: Fresh = False,
    theorems: Folders = None,
    schema: Schema = False,
) -> int:
    """Check a fused kernel, or theorems, at realistic sizes.

    Without arguments, a fused attention kernel is compared with float64.  For theorems, error and
    rounding bound are shown for increasing numbers of tokens, on sampled rows.
    """
    if schema:
        from ..documents.evidence import schema_text
        from ..sweeping.scale import ScaleRecord

        print(schema_text(ScaleRecord), end="")
        return 0
    require_device(device)
    require_file(json)
    if html is not None:
        require_writable(html)
    dtypes = dtype or [Dtype.float32]
    if names:
        asked = (
            tuple(d.value for d in dtypes),
            tuple(tokens or DEFAULT_TOKENS),
            seed,
            device,
            jobs,
        )
        return _theorems(names, asked, theorems, store, json, html, fresh=fresh)
    calls = [
        call
        for n in dict.fromkeys(tokens or [16_384])
        for call in calls_of(n, heads, width, dtypes, causal, kernel, device, seed)
    ]
    found, missing, errors = _found(calls, way or ())
    if missing and not found and not errors:
        raise Interrupted("interrupted before any check was finished; nothing written")
    record = _recorded(found, missing, errors)
    _drawn(record, html)
    return finish(record, json, ok=record.ok)


def _theorems(
    names: list[str],
    asked: tuple[tuple[str, ...], tuple[int, ...], int, str, int],
    theorems: list[Path] | None,
    store: Path | None,
    json: Path | None,
    html: Path | None,
    *,
    fresh: bool,
) -> int:
    """Measure theorems at these numbers of tokens: a sweep, reported by tokens."""
    from ..sweeping.cells import Grid
    from ..sweeping.records import sweep_faults, sweep_summary
    from ..sweeping.scale import growth_table, growths
    from ..sweeping.sweep import Engine, SweepRequest
    from .sweep import run_sweep

    catalogue, _ = load_statements(theorems)
    require_known(names, catalogue.names, "the id or subject of a theorem")
    load("scale needs", "numeric.check")
    dtypes, tokens, seed, device, jobs = asked
    grid = Grid(dtypes, ("small",), tokens, ("normal",), (seed,), (device,))
    gpu = device.partition(":")[0] == "cuda"
    plan = SweepRequest(grid, (), False, Engine("loky", jobs, "", gpu), None, None, fresh)
    record = run_sweep(catalogue.select(names), plan, store)

    show(map(growth_table, growths(record)))
    show(map(Line, (*sweep_faults(record), sweep_summary(record))))
    _drawn(record, html)
    return finish(record, json, ok=record.ok)


def _drawn(record: ScaleRecord | SweepRecord, html: Path | None) -> None:
    """Draw what was found, if asked for."""
    if html is not None:
        from ..report.plots import write_growths

        print(f"wrote {write_growths([record], html)}")


def calls_of(
    tokens: int,
    heads: int,
    width: int,
    dtypes: Sequence[Dtype],
    causal: bool,
    kernel: str,
    device: str,
    seed: int,
) -> list[Call]:
    """Return the calls of the kernel, one per dtype; torch is loaded here.

    Raises :class:`UsageError` if torch, the kernel or the rounding constants are missing.
    """
    load("scale needs", "numeric.at_scale.methods")
    from ..numeric.at_scale.call import Call, kernel_named
    from ..numeric.calibration.store import NotCalibrated
    from ..numeric.devices import chosen, dtype_named

    try:
        where = chosen(device)
        code = kernel_named(kernel, where)
    except ValueError as error:
        raise UsageError(str(error)) from None
    calls = [
        Call(code, tokens, heads, width, dtype_named(d.value), where, causal, seed)
        for d in dict.fromkeys(dtypes)
    ]
    try:
        for call in calls:
            _ = call.profile  # looked up here, before anything is drawn or run
    except NotCalibrated as reason:
        raise UsageError(f"wanted rounding constants for a tolerance: {reason}") from None
    return calls


def _found(
    calls: Sequence[Call], ways: Sequence[str]
) -> tuple[list[WayRecord], list[str], list[InternalErrorEvidence]]:
    """Return what every way found, with a line of progress; the ways left out, and why."""
    from ..documents.evidence import InternalErrorEvidence
    from ..numeric.at_scale.methods import METHODS, check_at_scale, default_methods
    from ..symbolic.faults import fault_of

    require_known(ways, tuple(METHODS), "a way to check", "`attnproof scale --help`")
    wanted = [(call, way) for call in calls for way in ways or default_methods(call)]
    found: list[WayRecord] = []
    with bar() as shown:
        task = shown.add_task("", total=len(wanted))

        def tell(way: str) -> None:
            shown.update(task, description=METHODS[way])

        try:
            for call in calls:
                for one in check_at_scale(call, ways, tell):
                    found.append(one)
                    shown.update(task, advance=1)
        except (Exception, KeyboardInterrupt) as error:
            left = wanted[len(found) :]
            told = [f"{way}, {str(c.dtype).removeprefix('torch.')}" for c, way in left]
            fault = fault_of(error)
            if fault is None and not isinstance(error, KeyboardInterrupt):
                raise
            if fault is None:
                return found, told, []
            failed = InternalErrorEvidence(
                says=told[0] if told else "",
                why=fault.message,
                traceback=fault.traceback,
                seconds=0.0,
            )
            return found, told, [failed]
    return found, [], []


@app.command()
def sharded(
    name: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="A theorem; default: a kernel.")
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
    """Run one check distributed over several devices.

    Start it with torchrun: torchrun --nproc-per-node 2 -m attnproof sharded

    Heads or query rows are distributed; each process compares its own sampled rows with float64,
    and process 0 reports the worst result.  For a theorem, each equation is evaluated on shards.
    """
    require_device(device)
    require_file(json)
    if name is not None:
        return _theorem(name, scale, dtype, device, seed, json)
    (call,) = calls_of(tokens, heads, width, [dtype], causal, kernel, _own(device), seed)
    from ..numeric.sharded.attention import check_sharded

    with _together(call.device) as mesh:
        found = check_sharded(call, mesh)
        first = mesh.get_rank() == 0
    if first:
        finish(_recorded([found]), json, ok=True)
    return 0 if found.status == "held" else 1


def _theorem(
    name: str, scale: Scale, dtype: Dtype, device: str, seed: int, json: Path | None
) -> int:
    """Check every conclusion of a theorem and its negative control on shards; process 0 prints."""
    catalogue, _ = load_statements(None)
    require_known([name], catalogue.ids, "the id of a theorem")
    entries = catalogue.only(name).entries
    if not entries:
        told = f"`attnproof show {name}` tells why"
        raise UsageError(f"wanted a theorem that can be read, got {name!r}; {told}")
    from ..numeric.devices import chosen, dtype_named
    from ..numeric.sharded.statements import measure_sharded
    from ..theorem_runs.judgement import opposite

    claimed = [
        (statement, opposite(expected) if control else expected, control)
        for entry in entries
        for expected in [cast("Expected", entry.theorem.expected)]
        for statement in entry.statements
        for control in [statement is entry.theorem.control]
    ]
    where = chosen(_own(device))
    with _together(where) as mesh:
        found = [
            (expected, control, m)
            for statement, expected, control in claimed
            for m in measure_sharded(
                statement,
                mesh,
                scale=scale.value,
                device=where,
                dtype=dtype_named(dtype.value),
                seed=seed,
                expected=expected,
            )
        ]
        first, count = mesh.get_rank() == 0, mesh.size()
    import torch

    from ..sweeping.scale import sharded_lines, sharded_record

    record = sharded_record(name, found, torch.__version__, count)
    if first:
        print("\n".join(sharded_lines(record)))
        finish(record, json, ok=True)
    return 0 if record.ok else 1


def _own(device: str) -> str:
    """Return the device; on CUDA the GPU of this process."""
    rank = os.environ.get("LOCAL_RANK")
    if rank is None or device not in ("auto", "cuda"):
        return device
    from ..numeric.devices import devices

    return f"cuda:{rank}" if "cuda" in devices() else device


def _recorded(
    found: Sequence[WayRecord],
    missing: Sequence[str] = (),
    errors: Sequence[InternalErrorEvidence] = (),
) -> ScaleRecord:
    """Return the record of what was found, and print it."""
    import torch

    from ..sweeping.scale import scale_page, scale_record

    record = scale_record(found, torch.__version__, torch.get_num_threads(), missing, errors)
    show(scale_page(record))
    return record


@contextmanager
def _together(device: torch.device) -> Iterator[DeviceMesh]:
    """Yield the mesh of torchrun's processes.  Raises :class:`UsageError` if they cannot share."""
    from ..numeric.sharded.attention import CannotShare, processes

    try:
        with processes(device) as mesh:
            yield mesh
    except ValueError as error:
        if not isinstance(error, CannotShare) and "torchrun" not in str(error):
            raise
        raise UsageError(str(error)) from None
