"""Check sampled rows of a kernel whose heads or rows are distributed over processes.

If the number of heads is a multiple of that of processes, each process holds whole heads; otherwise
it holds whole blocks of query rows, and all keys and values.

Every process runs the kernel on its part and compares its sampled rows with its own float64
reference; the worst comparison is the result.  References are computed head by head and do not
depend on the distribution, so the result equals that of one process to the last bit.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

from ..at_scale.call import Call, arrays
from ..at_scale.comparison import Worst, compare, judge, kernel_check, sampling_words, worse
from ..at_scale.sampled_rows import ENDS, ROWS, places
from ..attention_bound import Reference, streamed
from ..devices import device_label, synchronize
from ..results import WayRecord

# Queries, keys and values distributed over processes, as DTensors

BLOCK = 32
"""Whole blocks of this many queries give the same bits whatever the other queries are."""


class CannotShare(ValueError):
    """The call cannot be split into equal parts for the processes; the message says why."""


@contextmanager
def processes(device: torch.device) -> Iterator[DeviceMesh]:
    """The processes started by ``torchrun``, as a mesh: gloo on the CPU, NCCL on CUDA.

    Raises ``ValueError`` if this process was not started by ``torchrun``.
    """
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        raise ValueError(
            "wanted processes of torchrun, got one that was started alone; start it as "
            "`torchrun --nproc-per-node 2 -m attnproof sharded`"
        )
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        if device.type == "cuda":
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        yield init_device_mesh(device.type, (dist.get_world_size(),))
    finally:
        dist.destroy_process_group()


@dataclass(frozen=True)
class Shared:
    """The arrays of a call, and the heads and rows of the output that this process computes."""

    query: DTensor
    key: DTensor
    value: DTensor
    heads: range
    rows: range
    by: str

    def output(self, local: Tensor, mesh: DeviceMesh) -> DTensor:
        """The result of this process, as its part of the whole."""
        return DTensor.from_local(local, mesh, self.query.placements)


def share(call: Call, mesh: DeviceMesh) -> Shared:
    """Draw what each process needs of the arrays, and distribute them over the mesh.

    Raises :class:`CannotShare` if neither heads nor blocks of rows can be split equally.
    """
    count, rank, n = mesh.size(), mesh.get_local_rank(), call.tokens
    if call.heads % count == 0:
        each = call.heads // count
        heads = range(rank * each, (rank + 1) * each)
        local = arrays(call, heads=heads)
        q, k, v = (DTensor.from_local(x, mesh, [Shard(0)]) for x in local)
        return Shared(q, k, v, heads, range(n), "heads")
    if call.causal:
        raise CannotShare(
            f"wanted heads in equal parts for {count} processes, got {call.heads}; a causal "
            "kernel counts rows from 0, so that its rows cannot be shared out"
        )
    if n % (BLOCK * count):
        raise CannotShare(
            f"wanted heads in equal parts for {count} processes, got {call.heads}, or tokens in "
            f"blocks of {BLOCK} for each, got {n}; take a multiple of {BLOCK * count} tokens"
        )
    x = arrays(call)
    query = distribute_tensor(x.query, mesh, [Shard(1)])
    key, value = (distribute_tensor(part, mesh, [Replicate()]) for part in (x.key, x.value))
    each = n // count
    rows = range(rank * each, (rank + 1) * each)
    return Shared(query, key, value, range(call.heads), rows, "rows")


# The check of one process, and the combination of all


@dataclass(frozen=True)
class _Part:
    """The result of one process: worst entry, number of rows compared, device, time."""

    worst: Worst | None
    rows: int
    device: str
    kernel_seconds: float


def check_sharded(call: Call, mesh: DeviceMesh, rows: int = ROWS) -> WayRecord:
    """Return the same record in every process; its reason names the process with the worst rows."""
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
    part = _Part(*mine, device_label(call.device), seconds)
    parts: list[_Part | None] = [None] * mesh.size()
    dist.all_gather_object(parts, part)
    return _joined(call, x, at, parts, perf_counter() - started)


def _compared(
    call: Call, x: Shared, output: torch.Tensor, at: torch.Tensor
) -> tuple[Worst | None, int]:
    """Compare the sampled rows of this process with float64; the place refers to the whole."""
    query = x.query.full_tensor() if x.by == "rows" else x.query.to_local()
    key, value = x.key.to_local(), x.value.to_local()
    worst, compared = None, 0
    for k, head in enumerate(x.heads):
        every = at[head]
        last = every.to(call.device) if call.causal else None
        reference = streamed(
            query[k : k + 1, every],
            key[k : k + 1],
            value[k : k + 1],
            call.profile,
            call.bound(call.tokens),
            last,
        )
        own = [i for i, row in enumerate(every.tolist()) if row in x.rows]
        if not own:
            continue
        rows = every[own] - x.rows.start
        exact = Reference(reference.output[:, own], reference.radius[:, own])
        one = compare(output[k : k + 1, rows.to(output.device)], exact, call.profile)
        _, row, column = one.place
        worst = worse(worst, replace(one, place=(head, int(every[own[row]]), column)))
        compared += len(own)
    return worst, compared


def _joined(
    call: Call, x: Shared, at: torch.Tensor, parts: list[_Part | None], seconds: float
) -> WayRecord:
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
    misses = (
        sampling_words(at.numel() - ends, ends) if at.numel() < call.heads * call.tokens else ""
    )
    return replace(
        kernel_check(call, "sampled", worst, looked, misses, (judge(worst, looked),)),
        device=devices,
        seconds=seconds,
        kernel_seconds=max(part.kernel_seconds for part in known),
    )
