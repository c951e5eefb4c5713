"""Queries, keys and values shared out over processes, as DTensors.

Whole heads go to each process where there are as many heads as processes; otherwise rows of the
queries do, in whole blocks, and every process holds all keys and values.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

from ..at_scale.call import Call
from ..at_scale.inputs import arrays

__all__ = ["BLOCK", "CannotShare", "Shared", "processes", "share"]

BLOCK = 32
"""Queries in whole blocks of so many are computed alike, whatever stands beside them."""


class CannotShare(ValueError):
    """The call cannot be cut into equal parts for the processes; the text says why."""


@contextmanager
def processes(device: torch.device) -> Iterator[DeviceMesh]:
    """The processes that ``torchrun`` started, as a mesh: gloo on the CPU, NCCL on CUDA.

    Raises ``ValueError`` where this process was not started by ``torchrun``.
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
    """The arrays of a call, and the heads and rows that this process has of the output."""

    query: DTensor
    key: DTensor
    value: DTensor
    heads: range
    rows: range
    by: str

    def output(self, local: Tensor, mesh: DeviceMesh) -> DTensor:
        """What this process computed, as its share of the whole."""
        return DTensor.from_local(local, mesh, self.query.placements)


def share(call: Call, mesh: DeviceMesh) -> Shared:
    """Draw the arrays, each process what it needs, and lay them out over the mesh.

    Raises :class:`CannotShare` where neither heads nor blocks of rows go round.
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
