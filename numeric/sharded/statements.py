"""Evaluate any equation on distributed arrays, using PyTorch's DTensor.

Rows on a distributed axis are selected after gathering that axis, since each process holds other
places of it.  An operation without a sharding rule in DTensor runs on gathered arrays in every
process, and its name is reported.

A given with an axis of heads is distributed along it, otherwise along its first axis of tokens;
other givens are replicated.  The equation is evaluated operation by operation.  Each process
compares its part, or its own copy, of the sampled rows with float64, and the worst result is
reported together with its process.  (Other processes may read a wrong result of one.)

A sum over a distributed axis is summed in each process, then over the p processes: a term undergoes
at most p − 1 more roundings than the k ≥ 1 of the profile, and k + p − 1 ≤ k p.  So every radius is
multiplied by p.  Claims other than equations are skipped with a reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.experimental import implicit_replication
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._pytree import tree_flatten, tree_map

from attnproof.symbolic.statement import Claim, Statement

from ..check import Measuring
from ..distributions import NORMAL
from ..error_analysis import Rounded
from ..hypotheses import Unsatisfiable, number_array
from ..implementations import DoesNotFit
from ..implementations.eager import SOFTMAX
from ..measurement import SIDES, Comparison, compared, misread, place_of, worse
from ..profile import profile_of
from ..results import MeasuredEvidence
from ..row_selection import Replacement, TooLarge, Where
from ..scale import roles, scale_named, tokens
from ..task import Task, parts_of
from ..torch_reading import TorchReading
from . import SIDES_DIFFER

# Evaluation of a term on distributed arrays, or on gathered ones if DTensor has no rule

PLACES = {torch.index_select, torch.take_along_dim, torch.gather}
"""Functions that select places of an axis, of which each process holds a part."""

PRODUCTS = ("matmul", "__matmul__", "__rmatmul__")
NO_RULE = ("does not have a sharding strategy", "unevenly sharded tensor")
"""DTensor's errors if it has no rule; they depend on shapes only, so all processes raise them."""


class SharedReading(TorchReading):
    """A reading that selects rows correctly on distributed axes."""

    def select(self, value: Any, where: Where) -> Any:
        """Select places of a value; a distributed axis is gathered first."""
        if not isinstance(value, DTensor):
            return super().select(value, where)
        axes = [axis for axis, rows in enumerate(where) if rows is not None]
        placed = [
            Replicate() if p.is_partial() or (isinstance(p, Shard) and p.dim in axes) else p
            for p in value.placements
        ]
        local = value.redistribute(placements=placed).to_local()
        shape = list(value.shape)
        for axis in axes:
            rows = where[axis]
            assert rows is not None
            local = local.index_select(axis, rows.places.to(local.device))
            shape[axis] = len(rows.places)
        stride = torch.empty(shape, device="meta").stride()
        return DTensor.from_local(
            local.contiguous(),
            value.device_mesh,
            placed,
            run_check=False,
            shape=torch.Size(shape),
            stride=stride,
        )


class GatheredWithoutRule(TorchFunctionMode):
    """Run operations without a DTensor rule on gathered arrays; ``names`` records them."""

    def __init__(self, mesh: DeviceMesh) -> None:
        super().__init__()
        self.mesh = mesh
        self.names: dict[str, None] = {}

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        """Run the operation unchanged, or on gathered arrays."""
        kwargs = kwargs or {}
        given = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, DTensor)]
        if not given:
            return func(*args, **kwargs)
        if getattr(func, "__name__", "") in PRODUCTS:
            func, args = _product, args[::-1] if func is Tensor.__rmatmul__ else args
        if func not in PLACES and not (func is Tensor.__getitem__ and _cuts(*args)):
            try:
                return func(*args, **kwargs)
            except (NotImplementedError, RuntimeError) as missing:
                if not any(text in str(missing) for text in NO_RULE):
                    raise
        self.names[_called(func)] = None
        args, kwargs = tree_map(gathered, (args, kwargs))
        return tree_map(self._known_to_all, func(*args, **kwargs))

    def _known_to_all(self, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        return DTensor.from_local(value, self.mesh, [Replicate()], run_check=False)


def _called(function: Any) -> str:
    return "matmul" if function is _product else resolve_name(function) or str(function)


def _product(x: Tensor, y: Tensor) -> Tensor:
    """Multiply with vectors as matrices.

    PyTorch squeezes the result for a vector in place, which the shape of a DTensor does not
    reflect.
    """
    if min(x.ndim, y.ndim) > 1:
        return x @ y
    rows = x.unsqueeze(0) if x.ndim == 1 else x
    found = rows @ (y.unsqueeze(-1) if y.ndim == 1 else y)
    found = found.squeeze(-1) if y.ndim == 1 else found
    return found.squeeze(-1 if y.ndim == 1 else -2) if x.ndim == 1 else found


def _cuts(value: Tensor, index: Any) -> bool:
    """Whether an index cuts a distributed axis, or contains more than slices and numbers."""
    index = index if isinstance(index, tuple) else (index,)
    if not isinstance(value, DTensor) or not all(isinstance(i, slice | int) for i in index):
        return True
    shared = {p.dim for p in value.placements if isinstance(p, Shard)}
    return any(i != slice(None) and axis in shared for axis, i in enumerate(index))


def gathered(value: Any) -> Any:
    """Gather a distributed array; return anything else unchanged."""
    return value.full_tensor() if isinstance(value, DTensor) else value


# MeasuredEvidence of equations on distributed arrays


def measure_sharded(
    statement: Statement,
    mesh: DeviceMesh,
    *,
    scale: str = "default",
    device: torch.device = torch.device("cpu"),  # noqa: B008 (a constant)
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
    replaced: Mapping[str, Replacement] | None = None,
    expected: str = "proved",
) -> list[MeasuredEvidence]:
    """Measure every conclusion of a statement on distributed arrays.

    All processes return the same list.  If a statement is ``expected`` to be "refuted", a side that
    differs from its definition is reported before sides that differ.  Exceptions of DTensor other
    than a missing rule propagate.
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


def _bare(task: Task, says: str, mesh: DeviceMesh, dtype: torch.dtype) -> MeasuredEvidence:
    return task.skipped(says, f"eager on DTensor, {mesh.size()} processes", dtype, "not measured")


def _shares(task: Task, mesh: DeviceMesh, dtype: torch.dtype) -> tuple[dict[str, Any], list[str]]:
    """The values, distributed over the mesh, and the names of those that are split."""
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
    task: Task,
    says: str,
    claim: Claim,
    mesh: DeviceMesh,
    dtype: torch.dtype,
    replaced: Mapping[str, Replacement],
    expected: str,
) -> MeasuredEvidence:
    started, count = perf_counter(), mesh.size()
    assert claim.right is not None
    sides = (claim.left, claim.right)
    where = task.rows(claim.left, 0, task.scale.rows)
    values, shared = _shares(task, mesh, dtype)
    with implicit_replication(), torch.no_grad(), GatheredWithoutRule(mesh) as without:
        reading = SharedReading(task.sample(0).sizes, values, dtype, task.device, replaced)
        read = [reading.read(side, where) for side in sides]
        computed = [number_array(gathered(value)) for value in read]
    profile = profile_of(dtype, task.device)
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
        _bare(task, says, mesh, dtype),
        sampled=looked,
        **found.recorded,
        seconds=perf_counter() - started,
        rounding=f"{profile}; operation by operation, each radius {count} times",
    )


def _compared(
    computed: list[Tensor],
    bounds: list[Rounded],
    axes: list[int | None],
    mesh: DeviceMesh,
    expected: str,
) -> Comparison | None:
    """Compare the part of both sides that this process holds, or its copy if one is replicated."""
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
    found = compared("=", computed, bounds)
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
    """The axis along which a result is distributed."""
    placed = value.placements[0] if isinstance(value, DTensor) else None
    return placed.dim if isinstance(placed, Shard) else None


def _owner(place: int, n: int, count: int) -> int:
    """The process that holds a place of an axis of length n, split as by ``torch.chunk``."""
    return place // -(-n // count)


def _wider(bound: Rounded, times: int) -> Rounded:
    return Rounded(bound.arithmetic, bound.value, bound.error() * times, bound.unit)
