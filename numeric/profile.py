"""Rounding profiles: the unit roundoff of each kind of operation in a computation.

Properties of a backend (errors of functions, orders of summation, what kernels store) are measured,
see :mod:`attnproof.numeric.calibration`; the rest follows from the dtype.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from .calibration.record import SEQUENTIAL, Depth, KernelConstants
from .calibration.store import constants_for
from .devices import name_of, unit_roundoff, wide_dtype

_OPERAND = {"highest": 0.0, "high": 2.0**-11, "medium": 2.0**-8}


@dataclass(frozen=True)
class Profile:
    """Unit roundoffs and constants of one computation.

    ``store``: arrays stored in the dtype.  ``wide``: positions and angles.  ``accumulate``: inside
    sums, attention kernels and elementary functions; ``product``: inside matrix products.
    ``operand``: operands of a matrix unit (TF32 and the like; 0 if it reads the dtype itself).
    ``least``: the largest absolute error below the normal numbers of the dtype.
    ``sums``, ``softmax``: the roundings of one term in a sum, and of one weight of
    ``torch.softmax`` in the sum of weights.  ``function_error``, ``power_error``: errors of
    elementary functions and of xᵏ, in units of the accumulation.  ``calibration`` names the
    measurement from which the constants come.
    """

    dtype: torch.dtype
    store: float
    wide: float
    accumulate: float
    operand: float
    least: float
    product: float
    function_error: float
    power_error: float
    sums: Depth
    softmax: Depth
    products: Depth
    narrow: int | None
    kernels: tuple[KernelConstants, ...]
    calibration: str

    def __str__(self) -> str:
        words = f"{name_of(self.dtype)}: stored at {_two(self.store)}"
        words += f", summed at {_two(self.accumulate)}"
        words += f", angles at {_two(self.wide)}" if self.wide != self.store else ""
        words += f", matrix operands read at {_two(self.operand)}" if self.operand else ""
        return f"{words}; constants measured: {self.calibration}"

    def product_terms(self, k: int, rows: int, columns: int) -> int:
        """The number of roundings of one product in an entry of (rows, k) @ (k, columns).

        Libraries sum a narrow product, of a few rows or columns, one term after another.
        """
        if self.narrow is None or min(rows, columns) < self.narrow:
            return k
        return self.products.terms(k)

    def kernel(self, name: str = "") -> KernelConstants:
        """The constants of an attention kernel by its short name ("flash").

        An unknown kernel is assumed to have the worst measured exponential, and to sum in any
        order.
        """
        for one in self.kernels:
            if one.kernel == name:
                return one
        return KernelConstants(
            kernel=name,
            exponential_error=max(
                [self.function_error, *(k.exponential_error for k in self.kernels)]
            ),
            any_queries=SEQUENTIAL,
            full_blocks=SEQUENTIAL,
            scores_stored=False,
            weights_stored=True,
        )

    def attention_terms(self, keys: int, kernel: str = "", queries: int = 0) -> int:
        """The number of roundings of one term in the sum over keys of an attention kernel.

        ``queries`` is the number of queries per call, 0 if unknown: a last query that is alone in
        its block may be summed one key after another.
        """
        constants = self.kernel(kernel)
        full = queries > 0 and queries % FULL_BLOCK == 0
        return (constants.full_blocks if full else constants.any_queries).terms(keys)

    @property
    def exponential_error(self) -> float:
        """The error of exp in any attention kernel, in units of the accumulation."""
        return self.kernel().exponential_error


FULL_BLOCK = 32
"""Full blocks of queries were measured at multiples of this number."""


def _two(u: float) -> str:
    return f"2^{round(math.log2(u))}"


def profile_of(dtype: torch.dtype, device: torch.device) -> Profile:
    """The profile of code that runs operation by operation in a dtype.

    Matrix operands of float32 are read at the precision that ``torch.get_float32_matmul_precision``
    currently allows in this process.  Raises
    :class:`~attnproof.numeric.calibration.store.NotCalibrated` for a backend whose constants are
    unknown.
    """
    constants, calibration = constants_for(dtype, device)
    operand = constants.operand
    if dtype == torch.float32:
        operand = max(operand, _OPERAND[torch.get_float32_matmul_precision()])
        if device.type == "cuda" and torch.backends.cuda.matmul.allow_tf32:
            operand = max(operand, _OPERAND["high"])
    return Profile(
        dtype,
        unit_roundoff(dtype),
        unit_roundoff(wide_dtype(dtype)),
        constants.accumulate,
        operand,
        constants.least,
        constants.product,
        constants.function_error,
        constants.power_error,
        constants.sums,
        constants.softmax,
        constants.products,
        constants.narrow,
        constants.kernels,
        calibration,
    )
