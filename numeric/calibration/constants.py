"""The constants of rounding bounds that follow from what was measured."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from .depth import SEQUENTIAL, Depth, widest
from .record import Constants, FunctionRecord, KernelConstants, KernelRecord, OrderRecord
from .units import least_of, name_of, unit_of, wide_of

__all__ = ["ATTENTION", "FULL", "PRODUCT", "SOFTMAX", "SUM", "WEIGHTS", "constants_of"]

SUM, SOFTMAX, PRODUCT, ATTENTION = "sum", "softmax", "product", "attention"
"""With these words the operations of order records begin."""
FULL, WEIGHTS = "full blocks", "the sum of weights"


def constants_of(
    dtype: torch.dtype, functions: Sequence[FunctionRecord], orders: Sequence[OrderRecord],
    kernels: Sequence[KernelRecord], operand: float,
) -> Constants:  # fmt: skip
    """The constants in a dtype; functions and sums of 16-bit dtypes are those of float32 as well.

    Of several measurements the worst counts.
    """
    names = {name_of(dtype), name_of(wide_of(dtype))}
    own = [r for r in functions if r.dtype in names]
    powers = [r.used for r in own if r.function.startswith("power") and r.dtype == name_of(dtype)]
    attention = [r for r in kernels if r.dtype in names]
    lost = [r.lost for r in own if r.dtype == name_of(dtype)]
    lost += [r.lost for r in attention if r.dtype == name_of(dtype)]
    products = [r for r in orders if r.operation.startswith(PRODUCT) and r.dtype == name_of(dtype)]
    others = [r for r in orders if not r.operation.startswith(PRODUCT) and r.dtype in names]
    narrow = _narrow(products)
    return Constants(
        dtype=name_of(dtype),
        function_error=max(r.used for r in own if not r.function.startswith("power")),
        power_error=max(powers),
        accumulate=max(unit_of(wide_of(dtype)), *(r.unit for r in others)),
        product=max(unit_of(wide_of(dtype)), *(r.unit for r in products)),
        operand=operand,
        least=max(least_of(dtype), *lost),
        sums=_of(others, SUM),
        softmax=_of(others, SOFTMAX),
        products=SEQUENTIAL if narrow is None else widest(
            [r.model for r in products if (r.width or 0) >= narrow]
        ),
        narrow=narrow,
        kernels=tuple(
            _kernel(r, max(other.used for other in attention if other.kernel == r.kernel), others)
            for r in attention if r.dtype == name_of(dtype)
        ),
    )  # fmt: skip


def _kernel(
    record: KernelRecord, exponential_error: float, orders: Sequence[OrderRecord]
) -> KernelConstants:
    """Of a kernel in a 16-bit dtype, the exponential is that of float32 as well."""
    own = [r for r in orders if r.operation.startswith(f"{ATTENTION} {record.kernel},")]
    own = [r for r in own if r.dtype == record.dtype or WEIGHTS in r.operation]
    full = [r.model for r in own if FULL in r.operation or WEIGHTS in r.operation]
    return KernelConstants(
        kernel=record.kernel, exponential_error=exponential_error,
        any_queries=widest([r.model for r in own]) if own else SEQUENTIAL,
        full_blocks=widest(full) if any(FULL in r.operation for r in own) else SEQUENTIAL,
        scores_stored=record.scores_stored, weights_stored=record.weights_stored,
    )  # fmt: skip


def _of(orders: Sequence[OrderRecord], operation: str) -> Depth:
    """The worst order among those of an operation; one that was not measured promises nothing."""
    models = [r.model for r in orders if r.operation.startswith(operation)]
    return widest(models) if models else SEQUENTIAL


def _narrow(products: Sequence[OrderRecord]) -> int | None:
    """The least width from which on every product measured sums in blocks."""
    widths = sorted({r.width for r in products if r.width is not None}, reverse=True)
    found = None
    for width in widths:
        if any(r.model.sequential for r in products if r.width == width):
            break
        found = width
    return found
