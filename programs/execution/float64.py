"""Operations of torch that have no kernel for float64, computed in float64 by their definition.

Code is run in float64 to tell what it computes from how it rounds.  A product of grouped rows, by
which mixtures of experts are computed, would refuse to.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .response import Watching


class WithFloat64(Watching):
    """A mode in which products of grouped rows take float64."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if str(func).startswith("aten._grouped_mm.") and args[0].dtype == torch.float64:
            rows, matrices, offs = (*args, *(kwargs.get("offs"),) * (len(args) < 3))[:3]
            if rows.dim() == 2 and matrices.dim() == 3 and offs is not None:
                return of_grouped_rows(rows, matrices, offs)
        return func(*args, **kwargs)


def of_grouped_rows(rows: Tensor, matrices: Tensor, ends: Tensor) -> Tensor:
    """Return the products of rows with the matrix of their group, which ends before a given row.

    >>> x, w = torch.ones(3, 2), torch.stack((torch.eye(2), 2 * torch.eye(2)))
    >>> of_grouped_rows(x, w, torch.tensor([1, 3])).tolist()
    [[1.0, 1.0], [2.0, 2.0], [2.0, 2.0]]
    """
    found = rows.new_zeros(rows.shape[0], matrices.shape[2])
    start = 0
    for matrix, end in zip(matrices, ends.tolist(), strict=True):
        found[start:end] = rows[start:end] @ matrix
        start = end
    return found
