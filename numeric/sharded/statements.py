"""Any equation, read on arrays that are shared out: PyTorch's DTensor carries the shares along.

A given with an axis of heads is shared out along it, else along its first axis of tokens; others
are held by every process.  The equation is read operation by operation on these.  Each process
compares what it has of the sampled rows, its share or its own copy, with float64, and the worst
is told with the process that has it.  (What one process computes wrongly others may read.)

A sum over an axis that is shared out is summed in each share, then over the p processes: a term
meets at most p − 1 roundings more than the k ≥ 1 of the profile, and k + p − 1 ≤ k p.  So every
radius is taken p times.  What is no equation is skipped, and says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.experimental import implicit_replication

from attnproof.symbolic.statement import Claim, Statement

from ..compare import SIDES, Comparison, compared, misread, worse
from ..designs import NORMAL
from ..devices import called
from ..hypotheses_hold import Unsatisfiable, number_array
from ..implementations import DoesNotFit
from ..implementations.eager import SOFTMAX
from ..measurement import Measurement, place_of
from ..measuring import Measuring
from ..parts import parts_of
from ..profile import profile_of
from ..rounded import Rounded
from ..scale import roles, scale_named, tokens
from ..task import Task
from ..walk import Replacement, TooLarge
from . import SIDES_DIFFER
from .reading import GatheredWithoutRule, SharedReading, gathered

__all__ = ["measure_sharded"]


def measure_sharded(
    statement: Statement, mesh: DeviceMesh, *, scale: str = "default",
    device: torch.device = torch.device("cpu"),  # noqa: B008 (a constant)
    dtype: torch.dtype = torch.float32, seed: int = 0,
    replaced: Mapping[str, Replacement] | None = None, expected: str = "proved",
) -> list[Measurement]:  # fmt: skip
    """Every conclusion of a statement, read on shares; the same list in every process.

    Of one that is ``expected`` to be "refuted" a side that is not the value of its definition is
    told before sides that differ.  Raises what DTensor raises beyond a missing rule.
    """
    size, found = scale_named(scale), []
    tasks = Measuring(size, device, seed, expected, None, (NORMAL,), False)
    for says, claim, part in parts_of(statement):
        read, task = claim.at_witness(), Task(part, size, {}, device, seed)
        bare = _bare(task, says, mesh, dtype)
        if read.relation != "=" or read.right is None:
            what = "existence without a witness" if read.relation == "exists" else read.relation
            why = f"only equations are read on shares, and this says {what}; `attnproof check`"
            found.append(replace(bare, reason=f"{why} measures it in one process"))
            continue
        try:
            task = tasks.task(part)
            why_not = task.unrounded(dtype)
            if why_not is not None:
                raise DoesNotFit(why_not)
            code = {**SOFTMAX, **(replaced or {})}
            found.append(_equation(task, says, read, mesh, dtype, code, expected))
        except (Unsatisfiable, DoesNotFit, TooLarge) as reason:
            found.append(replace(bare, reason=str(reason)))
    return found


def _bare(task: Task, says: str, mesh: DeviceMesh, dtype: torch.dtype) -> Measurement:
    return Measurement(
        says, f"eager on DTensor, {mesh.size()} processes", called(task.device),
        str(dtype).removeprefix("torch."), task.sizes, task.seed, "nothing", 0.0, 0.0, (), 0.0,
        "skipped", "not measured", "",
    )  # fmt: skip


def _shares(task: Task, mesh: DeviceMesh, dtype: torch.dtype) -> tuple[dict[str, Any], list[str]]:
    """The values, laid out over the mesh, and the names of those that are shared out."""
    found, shared = dict(task.sample(0).in_dtype(dtype, task.device)), []
    for name, value in found.items():
        if not isinstance(value, Tensor) or not value.is_floating_point():
            continue
        shape = task.statement.givens[name].shape
        able = [k for k, n in enumerate(shape) if "heads" in roles(n)]
        able += [k for k, n in enumerate(shape) if tokens(n)]
        if able:
            shared.append(name)
        placed = Shard(able[0]) if able else Replicate()
        found[name] = distribute_tensor(value.contiguous(), mesh, [placed])
    return found, shared


def _equation(
    task: Task, says: str, claim: Claim, mesh: DeviceMesh, dtype: torch.dtype,
    replaced: Mapping[str, Replacement], expected: str,
) -> Measurement:  # fmt: skip
    started, count = perf_counter(), mesh.size()
    assert claim.right is not None
    sides = (claim.left, claim.right)
    where = task.rows(claim.left, 0, task.scale.rows)
    values, shared = _shares(task, mesh, dtype)
    with implicit_replication(), torch.no_grad(), GatheredWithoutRule(mesh) as without:
        reading = SharedReading(task.sample(0).sizes, values, dtype, task.device, replaced)
        read = [reading.read(side, where) for side in sides]
        computed = [number_array(gathered(value)) for value in read]
    profile = profile_of(dtype, task.device, str(dtype).removeprefix("torch."))
    bounds = [_wider(task.bound(side, where, 0, profile, {}), count) for side in sides]
    axes = [_shared_axis(value) for value in read]
    one = _compared(computed, bounds, axes, mesh, expected)
    if one is not None:
        at, axis = one.place, axes[0] if axes[0] == axes[1] else None
        for name, own in zip(SIDES, axes, strict=True):
            axis = own if f"the {name} side" in one.reason else axis
        local = mesh.get_local_rank()
        rank = local if axis is None else _owner(at[axis], computed[0].shape[axis], count)
        reason = one.reason
        if one.status not in ("held", "skipped"):
            reason = f"process {rank}: {reason or SIDES_DIFFER}"
        one = replace(one, place=place_of(at, where), reason=reason)
    parts: list[Comparison | None] = [None] * count
    dist.all_gather_object(parts, one)
    known = [part for part in parts if part is not None]
    found = known[0]
    for part in known[1:]:
        found = worse(found, part)
    looked = f"{sum(len(r.places) for r in where if r)} rows" if any(where) else "every entry"
    looked += f", compared by {len(known)} processes; shared out: {', '.join(shared) or 'nothing'}"
    if without.names:
        looked += f"; on gathered arrays: {', '.join(without.names)}"
    return replace(
        _bare(task, says, mesh, dtype), sampled=looked, error=found.error,
        tolerance=found.tolerance, worst=found.place, seconds=perf_counter() - started,
        status=found.status, reason=found.reason,
        profile=f"{profile}; operation by operation, each radius {count} times",
    )  # fmt: skip


def _compared(
    computed: list[Tensor], bounds: list[Rounded], axes: list[int | None], mesh: DeviceMesh,
    expected: str,
) -> Comparison | None:  # fmt: skip
    """What this process has of both sides; all of its own copy where one is not shared out."""
    axis = axes[0] if axes[0] == axes[1] else None
    offset = 0
    if axis is not None:
        n, count, rank = computed[0].shape[axis], mesh.size(), mesh.get_local_rank()
        mine = [k for k in range(n) if _owner(k, n, count) == rank]
        if not mine:
            return None
        offset = mine[0]
        computed = [side.narrow(axis, offset, len(mine)) for side in computed]
        bounds = [_narrowed(b, axis, mine) for b in bounds]
    found = compared(computed[0], computed[1], bounds[0], bounds[1])
    if expected == "refuted" and found.status == "violated":
        sides = [side.detach().to("cpu", torch.float64) for side in computed]
        found = misread(sides, bounds) or replace(found, reason="")
    if axis is None:
        return found
    place = (*found.place[:axis], found.place[axis] + offset, *found.place[axis + 1 :])
    return replace(found, place=place)


def _narrowed(bound: Rounded, axis: int, mine: list[int]) -> Rounded:
    value = bound.value
    radius = bound.error().expand(value.shape)
    value, radius = (x.narrow(axis, mine[0], len(mine)) for x in (value, radius))
    return Rounded(bound.arithmetic, value, radius, bound.unit)


def _shared_axis(value: Any) -> int | None:
    """The axis of a result of which each process has a part."""
    placed = value.placements[0] if isinstance(value, DTensor) else None
    return placed.dim if isinstance(placed, Shard) else None


def _owner(place: int, n: int, count: int) -> int:
    """The process that has a place of an axis of n: shares are those of ``torch.chunk``."""
    return place // -(-n // count)


def _wider(bound: Rounded, times: int) -> Rounded:
    return Rounded(bound.arithmetic, bound.value, bound.error() * times, bound.unit)
