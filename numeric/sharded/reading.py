"""A term read on arrays that are shared out, where DTensor has rules; elsewhere on whole arrays.

Rows on an axis that is shared out are selected after that axis is gathered: each process has other
places of it.  An operation that DTensor has no sharding rule for is computed on gathered arrays,
every process alike, and its name is kept, so that what was not shared out is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._pytree import tree_flatten, tree_map

from ..torch_reading import TorchReading
from ..walk import Where

__all__ = ["GatheredWithoutRule", "SharedReading", "gathered"]

PLACES = {torch.index_select, torch.take_along_dim, torch.gather}
"""They pick places of an axis, of which each process has a part."""

PRODUCTS = ("matmul", "__matmul__", "__rmatmul__")
NO_RULE = ("does not have a sharding strategy", "unevenly sharded tensor")
"""What DTensor says where it has no rule; it tells so from shapes, in every process alike."""


class SharedReading(TorchReading):
    """A reading whose selections of rows are right on axes that are shared out."""

    def select(self, value: Any, where: Where) -> Any:
        """The places of a value; an axis that is shared out is gathered first."""
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
            local.contiguous(), value.device_mesh, placed, run_check=False,
            shape=torch.Size(shape), stride=stride,
        )  # fmt: skip


class GatheredWithoutRule(TorchFunctionMode):
    """Operations that DTensor has no rule for run on whole arrays; ``names`` are those that did."""

    def __init__(self, mesh: DeviceMesh) -> None:
        super().__init__()
        self.mesh = mesh
        self.names: dict[str, None] = {}

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        """The operation as it is, or on gathered arrays."""
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
    """A product with a vector as one of matrices.

    PyTorch squeezes the result of a vector in place, of which a DTensor's shape knows nothing.
    """
    if min(x.ndim, y.ndim) > 1:
        return x @ y
    rows = x.unsqueeze(0) if x.ndim == 1 else x
    found = rows @ (y.unsqueeze(-1) if y.ndim == 1 else y)
    found = found.squeeze(-1) if y.ndim == 1 else found
    return found.squeeze(-1 if y.ndim == 1 else -2) if x.ndim == 1 else found


def _cuts(value: Tensor, index: Any) -> bool:
    """Whether an index cuts an axis that is shared out, or is more than slices and numbers."""
    index = index if isinstance(index, tuple) else (index,)
    if not isinstance(value, DTensor) or not all(isinstance(i, slice | int) for i in index):
        return True
    shared = {p.dim for p in value.placements if isinstance(p, Shard)}
    return any(i != slice(None) and axis in shared for axis, i in enumerate(index))


def gathered(value: Any) -> Any:
    """The whole of an array that is shared out; anything else as it is."""
    return value.full_tensor() if isinstance(value, DTensor) else value
