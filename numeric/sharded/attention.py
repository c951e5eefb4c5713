"""Sampled rows of a kernel whose heads or rows are shared out over processes.

Every process runs the kernel on its share and compares the sampled rows it has with its own
float64 reference; the worst of all is the result.  Head by head, the reference of a row does not
depend on how the rest is shared out: the result is that of one process, to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh

from ..at_scale.call import Call
from ..at_scale.comparison import Worst, against, judged, worse
from ..at_scale.results import Found, chance
from ..at_scale.sampled import ENDS, ROWS, places
from ..at_scale.streaming import Reference, streamed
from ..devices import called, synchronize
from .shares import Shared, share

__all__ = ["check_sharded"]


@dataclass(frozen=True)
class _Part:
    """What one process found: its worst entry, how many rows it compared, its device, its time."""

    worst: Worst | None
    rows: int
    device: str
    kernel_seconds: float


def check_sharded(call: Call, mesh: DeviceMesh, rows: int = ROWS) -> Found:
    """The same record in every process; its reason names the process whose rows were worst."""
    started = perf_counter()
    x = share(call, mesh)
    at = places(call, rows)
    synchronize(call.device)
    begun = perf_counter()
    local = call.run(x.query.to_local(), x.key.to_local(), x.value.to_local())
    synchronize(call.device)
    seconds = perf_counter() - begun
    output = x.output(local, mesh)
    wanted = (call.heads, call.tokens, call.width)
    if tuple(output.shape) != wanted:
        raise ValueError(f"wanted shares of {wanted}, got {tuple(output.shape)} from the kernel")
    mine = _compared(call, x, output.to_local(), at)
    part = _Part(*mine, called(call.device), seconds)
    parts: list[_Part | None] = [None] * mesh.size()
    dist.all_gather_object(parts, part)
    return _joined(call, x, at, parts, perf_counter() - started)


def _compared(
    call: Call, x: Shared, output: torch.Tensor, at: torch.Tensor
) -> tuple[Worst | None, int]:
    """The sampled rows of this share against float64; the place is in the whole."""
    query = x.query.full_tensor() if x.by == "rows" else x.query.to_local()
    key, value = x.key.to_local(), x.value.to_local()
    worst, compared = None, 0
    for k, head in enumerate(x.heads):
        every = at[head]
        last = every.to(call.device) if call.causal else None
        reference = streamed(
            query[k : k + 1, every], key[k : k + 1], value[k : k + 1], call.profile,
            call.bound(call.tokens), last,
        )  # fmt: skip
        own = [i for i, row in enumerate(every.tolist()) if row in x.rows]
        if not own:
            continue
        rows = every[own] - x.rows.start
        exact = Reference(reference.output[:, own], reference.radius[:, own])
        one = against(output[k : k + 1, rows.to(output.device)], exact, call.profile)
        _, row, column = one.place
        worst = worse(worst, replace(one, place=(head, int(every[own[row]]), column)))
        compared += len(own)
    return worst, compared


def _joined(
    call: Call, x: Shared, at: torch.Tensor, parts: list[_Part | None], seconds: float
) -> Found:
    worst: Worst | None = None
    known = [part for part in parts if part is not None]
    for k, part in enumerate(known):
        if part.worst is None:
            continue
        wrong = part.worst.status != "held"
        reason = f"process {k}: {part.worst.reason}" if wrong else part.worst.reason
        worst = worse(worst, replace(part.worst, reason=reason))
    assert worst is not None
    devices = ", ".join(f"{k}: {part.device}" for k, part in enumerate(known))
    looked = f"{at.numel()} of {call.heads * call.tokens:,} rows against float64, {x.by} shared "
    looked += f"out over {len(known)} processes, of which each compared "
    looked += ", ".join(str(part.rows) for part in known)
    ends = min(ENDS * call.heads, at.numel())
    misses = chance(at.numel() - ends, ends) if at.numel() < call.heads * call.tokens else ""
    return Found(
        "sampled", call.kernel.name, devices, str(call.dtype).removeprefix("torch."),
        call.tokens, call.heads, call.width, call.causal, call.seed, looked, misses,
        worst.status, worst.error, worst.tolerance, worst.place, worst.reason,
        str(call.profile), (judged(worst, looked),), seconds,
        max(part.kernel_seconds for part in known),
    )  # fmt: skip
