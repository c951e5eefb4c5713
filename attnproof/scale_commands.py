"""The command ``scale``: a fused kernel at the size its users run."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer

from .interrupt import Interrupted, held_back
from .options import DeviceOption, Dtype, JsonFile, Seed
from .terminal_text import bar, headed
from .usage import UsageError, require_device, require_file, require_known

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from .evidence import InternalErrorEvidence
    from .numeric.at_scale.call import Call
    from .numeric.at_scale.comparison import Found
    from .scale_records import ScaleRecord

__all__ = ["calls_of", "register", "scale", "scale_table", "told_of"]

Tokens = Annotated[int, typer.Option(min=1, help="Rows and keys of each head.")]
Heads = Annotated[int, typer.Option(min=1, help="Heads.")]
Width = Annotated[int, typer.Option(min=1, help="Features of each head.")]
ScaleDtype = Annotated[
    list[Dtype] | None, typer.Option("--dtype", help="float32 if none is named; repeatable.")
]
Ways = Annotated[
    list[str] | None,
    typer.Option(
        "--way", metavar="WAY",
        help="sampled, clustered, alone, queries, keys or reach; by size if none; repeatable.",
    ),
]  # fmt: skip
KernelName = Annotated[str, typer.Option(metavar="auto|flash|efficient|cudnn|math")]
Causal = Annotated[bool, typer.Option("--causal", help="Each row sees keys up to its own place.")]
Compare = Annotated[
    int, typer.Option("--rounds", min=0, help="Time check against forward in so many rounds.")
]
Schema = Annotated[bool, typer.Option("--schema", help="Print the JSON schema of the record.")]


def register(app: typer.Typer) -> None:
    """Give the command to the command line."""
    app.command()(scale)


def scale(
    tokens: Tokens = 16_384,
    heads: Heads = 8,
    width: Width = 64,
    dtype: ScaleDtype = None,
    causal: Causal = False,
    way: Ways = None,
    kernel: KernelName = "auto",
    device: DeviceOption = "auto",
    seed: Seed = 0,
    rounds: Compare = 0,
    json: JsonFile = None,
    schema: Schema = False,
) -> int:
    """A fused attention kernel at the size its users run, against float64."""
    from .faults import exit_code, tell_faults
    from .scale_records import scale_record, scale_schema_text

    if schema:
        print(scale_schema_text(), end="")
        return 0
    require_device(device)
    if json is not None:
        require_file(json)
    calls = calls_of(tokens, heads, width, dtype or [Dtype.float32], causal, kernel, device, seed)
    if rounds:
        from .numeric.at_scale.methods import COUNTED, cost_at_scale

        require_known(way or (), COUNTED, "a way counted in forwards", ", ".join(COUNTED))
        for call in calls:
            for name in way or ("sampled", "clustered"):
                print(cost_at_scale(call, name, rounds))
        return 0
    found, missing, errors = _found(calls, way or ())
    if missing and not found and not errors:
        raise Interrupted("interrupted before any check was finished; nothing written")
    import torch
    from rich.console import Console

    record = scale_record(found, torch.__version__, torch.get_num_threads(), missing, errors)
    console = Console()
    if record.ways:
        console.print(scale_table(record))
    for line in told_of(record):
        console.print(line, soft_wrap=True, markup=False, highlight=False)
    if json is not None:
        from .output import write_json

        print(f"wrote {write_json(record, json)}")
    tell_faults(record, json)
    if missing and not errors:
        return 130
    return exit_code([record], 0 if record.ok else 1)


def calls_of(
    tokens: int, heads: int, width: int, dtypes: Sequence[Dtype], causal: bool, kernel: str,
    device: str, seed: int,
) -> list[Call]:  # fmt: skip
    """What is asked of the kernel, in each dtype; torch is loaded here.

    Raises :class:`UsageError` where torch, the kernel or the constants of rounding are not there.
    """
    try:
        with held_back():
            import_module(".numeric.at_scale.methods", __package__)
    except ImportError as error:
        raise UsageError(f"scale needs torch ({error}); install torch") from None
    from .numeric.at_scale.call import Call, kernel_named
    from .numeric.calibration.store import NotCalibrated
    from .numeric.devices import chosen, dtype_named

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
        raise UsageError(f"wanted constants of rounding for a tolerance: {reason}") from None
    return calls


def _found(
    calls: Sequence[Call], ways: Sequence[str]
) -> tuple[list[Found], list[str], list[InternalErrorEvidence]]:
    """What every way found, with a line of progress; the ways that were left out, and why."""
    from .evidence import InternalErrorEvidence
    from .numeric.at_scale.methods import WAYS, check_at_scale, chosen_ways
    from .symbolic.faults import fault_of

    require_known(ways, tuple(WAYS), "a way to check", "`attnproof scale --help`")
    wanted = [(call, way) for call in calls for way in ways or chosen_ways(call)]
    found: list[Found] = []
    with bar() as shown:
        task = shown.add_task("", total=len(wanted))

        def tell(way: str, _done: int, _all: int) -> None:
            shown.update(task, description=WAYS[way])

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
            says = told[0] if told else ""
            return found, told, [InternalErrorEvidence(
                says=says, why=fault.told, traceback=fault.traceback, seconds=0.0
            )]  # fmt: skip
    return found, [], []


SIGNS = {"held": "✓", "skipped": "–"}


def scale_table(record: ScaleRecord) -> Table:
    """A line for each way: error over tolerance, what it cost, what it held."""
    first = record.ways[0]
    table = headed(
        "", "way", "dtype", "error", "tolerance", "policy", "share", "s", "forwards", "MiB",
        title=f"{first.kernel} on {first.device}: {first.heads} × {first.tokens:,} tokens of "
        f"{first.width}{', causal' * first.causal}",
        caption="share: of a policy's limit, above 1 a no; MiB: beyond the inputs",
    )  # fmt: skip
    for way in record.ways:
        beyond = "" if way.bytes_beyond is None else f"{way.bytes_beyond / 2**20:.0f}"
        applied = [p for p in way.policies if p.status != "skipped"]
        for k, policy in enumerate(applied or [None]):
            sign = SIGNS.get(way.status, "✗")
            head = (sign, way.way, way.dtype, _short(way.error), _short(way.tolerance))
            cost = (f"{way.seconds:.2f}", f"{way.forwards:.2f}" if way.forwards else "", beyond)
            said = ("", "") if policy is None else (policy.policy, _short(policy.ratio))
            table.add_row(*(head if not k else [""] * len(head)), *said, *(cost if not k else ()))
    return table


def _short(x: float | str | None) -> str:
    return "" if x is None else x if isinstance(x, str) else f"{x:.2g}"


def told_of(record: ScaleRecord) -> list[str]:
    """What was looked at and what could be missed, once for each way; what went wrong."""
    lines = {
        f"{way.way}: {way.looked}{'; ' * bool(way.misses)}{way.misses}": None
        for way in record.ways
        if way.status != "skipped"
    }
    wrong = [
        f"! {way.way}, {way.dtype}: {way.status}: {way.reason}"
        + (f"; at head, row, column {way.worst}" if way.worst else "")
        for way in record.ways
        if way.status != "held"
    ]
    return [*lines, *wrong, *(f"! {error.says}: {error.why}" for error in record.errors)]
