"""The record of a calibration: what was measured, and the constants that follow from it.

Two runs have the same backend if they have the same build of torch (``2.13.0+cpu`` and
``2.13.0+cu129`` include different libraries), the same kind and model of device, the same vector
instructions, and the same environment variables that choose among kernels.  All must match: with
the same capability, such as AVX-512, the libraries behind torch choose other kernels for another
maker of processors, and other block lengths for another cache size.  The number of threads is not
part of it: orders are measured with one thread and with all, and more threads split a sum into more
parts.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from functools import cache
from math import ceil, log2
from pathlib import Path
from typing import Final, Literal

import torch
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from ..devices import name_of, unit_roundoff, wide_dtype

# The base of the records of a calibration: strict, frozen, no unknown fields, no NaN


class Record(BaseModel):
    """A part of a calibration as it is stored."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)


# Properties of dtypes that need no profile


def normal_of(dtype: torch.dtype) -> float:
    """The least normal number."""
    return torch.finfo(dtype).smallest_normal


def least_of(dtype: torch.dtype) -> float:
    """The least positive number."""
    return torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps


def bits_of(dtype: torch.dtype) -> int:
    """The number of binary digits of the mantissa, including the leading one."""
    return 1 - round(log2(torch.finfo(dtype).eps))


# The number of roundings of one term in a sum, as a function of the number of terms


class Depth(Record):
    """At most ``inner`` roundings inside a block, and one for each block of ``outer`` terms.

    A sum of k terms has at most k − 1 roundings in any order; ``outer`` = 1 assumes no more than
    that.
    """

    inner: int
    outer: int

    def terms(self, k: int) -> int:
        """min(k, inner + ⌈k/outer⌉ + 1).

        >>> Depth(inner=256, outer=128).terms(65_536)
        769
        >>> SEQUENTIAL.terms(65_536)
        65536
        """
        return min(k, self.inner + ceil(k / self.outer) + 1)

    @property
    def sequential(self) -> bool:
        """Whether the number of roundings grows about as fast as the number of terms."""
        return self.outer <= 4


SEQUENTIAL = Depth(inner=0, outer=1)


def fitted(lengths: Sequence[int], depths: Sequence[int]) -> Depth:
    """Fit the model, with margins, to depths measured at growing lengths.

    Beyond the last length the depth is assumed to grow no faster than between the last two: this
    rate, rounded up to a power of two, is 1/``outer``.  ``inner`` is the rest of the largest depth,
    rounded up to a power of two, since not all leaves were tried.

    >>> fitted((512, 4_096, 16_384), (511, 519, 543))
    Depth(inner=512, outer=512)
    >>> fitted((64, 512, 4_096), (63, 511, 4_095)).sequential
    True
    """
    (*_, k, longest), (*_, d, deepest) = lengths, depths
    slope = max(deepest - d, 0) / (longest - k)
    outer = max(1, 2 ** int(log2(1 / slope))) if slope > 1 / longest else longest
    left = [d - ceil(k / outer) for k, d in zip(lengths, depths, strict=True)]
    return Depth(inner=2 ** ceil(log2(max(1, *left))), outer=outer)


def widest(models: Sequence[Depth]) -> Depth:
    """The model that dominates all of these; the sequential one if there are none."""
    if not models:
        return SEQUENTIAL
    return Depth(inner=max(m.inner for m in models), outer=min(m.outer for m in models))


# What rounding constants depend on: the code that runs and its hardware

FEATURES = ("avx512_bf16", "avx512_fp16", "amx_bf16", "amx_fp16")
SETTINGS = (
    "ATEN_CPU_CAPABILITY",
    "CUBLAS_WORKSPACE_CONFIG",
    "DNNL_DEFAULT_FPMATH_MODE",
    "DNNL_MAX_CPU_ISA",
    "MKL_CBWR",
    "MKL_ENABLE_INSTRUCTIONS",
    "NVIDIA_TF32_OVERRIDE",
    "ONEDNN_DEFAULT_FPMATH_MODE",
    "ONEDNN_MAX_CPU_ISA",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
)


class Backend(Record):
    """A device with the build of torch that drives it."""

    device: str
    name: str
    capability: str
    torch: str
    settings: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """A name for a file and for a line of a report."""
        parts = [self.device, self.name, self.capability, "torch", self.torch, *self.settings]
        return re.sub(r"[^A-Za-z0-9.+]+", "-", " ".join(parts)).strip("-").lower()


def backend_of(device: torch.device) -> Backend:
    """The backend of a device in the current process.

    >>> backend_of(torch.device("cpu")).device
    'cpu'
    """
    settings = tuple(f"{name}={os.environ[name]}" for name in SETTINGS if name in os.environ)
    if device.type == "cuda":
        name = torch.cuda.get_device_name(device)
        capability = "sm {}.{}".format(*torch.cuda.get_device_capability(device))
    elif device.type == "cpu":
        name, features = _processor()
        capability = " ".join((torch.backends.cpu.get_cpu_capability(), *features))
    else:
        name, capability = platform.processor() or platform.machine(), platform.release()
    return Backend(
        device=device.type,
        name=name,
        capability=capability,
        torch=torch.__version__,
        settings=settings,
    )


@cache
def _processor() -> tuple[str, tuple[str, ...]]:
    """The model of the processor, and its matrix and low-precision instructions."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine(), ()
    found = dict(re.findall(r"^([a-z _]+?)\s*: (.+)$", text, re.MULTILINE))
    name = found.get("model name") or platform.machine()
    kind = [f"{key} {found[key]}" for key in ("cpu family", "model") if key in found]
    flags = found.get("flags", "").split()
    return " ".join((name.strip(), *kind)), tuple(f for f in FEATURES if f in flags)


# The record of a calibration: what was measured, and the constants that follow from it

FORMAT: Final = 1
"""Increased whenever the measurements change, so that older files are measured again."""


class FunctionRecord(Record):
    """The largest error of one function."""

    function: str
    dtype: str
    error: float = Field(ge=0, description="In units of the roundoff it is computed with.")
    used: float = Field(ge=0, description="With its margin.")
    lost: float = Field(ge=0, description="The largest error of a result below normal numbers.")
    sampled: str


class OrderRecord(Record):
    """The order in which one operation sums: its depth at some lengths."""

    operation: str
    dtype: str
    width: int | None = Field(
        default=None, description="Of a product: its fewest rows or columns; else null."
    )
    lengths: tuple[int, ...] = Field(min_length=2, description="Numbers of terms, growing.")
    depths: tuple[int, ...] = Field(min_length=2, description="Of the deepest leaf tried.")
    model: Depth
    bits: int = Field(ge=1, description="Binary digits that partial sums keep.")
    nearest: bool = Field(description="Partial sums are rounded to nearest, not cut off.")
    sampled: str

    @property
    def unit(self) -> float:
        """The largest relative error of one partial sum."""
        return 2.0 ** -(self.bits if self.nearest else self.bits - 1)


class KernelRecord(Record):
    """One attention kernel: the error of its exponential, end to end, and what it stores."""

    kernel: str
    dtype: str
    error: float = Field(ge=0, description="Of a weight, in units of the accumulation.")
    used: float = Field(ge=0, description="With its margin.")
    lost: float = Field(ge=0, description="The largest error of a weight below normal numbers.")
    scores_stored: bool
    weights_stored: bool
    sampled: str


class KernelConstants(Record):
    """The constants of one attention kernel in one dtype."""

    kernel: str
    exponential_error: float
    any_queries: Depth = Field(description="Of the sum over keys, for any number of queries.")
    full_blocks: Depth = Field(
        description="For a number of queries that is a multiple of those of a block."
    )
    scores_stored: bool
    weights_stored: bool


class Constants(Record):
    """The constants of rounding bounds in one dtype."""

    dtype: str
    function_error: float
    power_error: float = Field(description="Of x ** k with a whole k.")
    accumulate: float = Field(gt=0, description="Unit roundoff of sums and attention kernels.")
    product: float = Field(gt=0, description="Unit roundoff of sums in products of matrices.")
    operand: float = Field(
        ge=0, description="Unit roundoff of what products read, at the highest precision asked."
    )
    least: float = Field(ge=0, description="What is lost at most below normal numbers.")
    sums: Depth
    softmax: Depth
    products: Depth
    narrow: int | None = Field(
        description="With fewer rows or columns a product is summed term by term; null: always."
    )
    kernels: tuple[KernelConstants, ...] = Field(description="One for each attention kernel.")


class Calibration(Record):
    """The constants of one backend."""

    format: Literal[1] = FORMAT
    backend: Backend
    threads: int = Field(ge=1)
    created: AwareDatetime
    seconds: float = Field(ge=0)
    thorough: bool
    functions: tuple[FunctionRecord, ...]
    orders: tuple[OrderRecord, ...]
    kernels: tuple[KernelRecord, ...]
    operands: dict[str, float] = Field(description="Unit roundoff of what products read, by dtype.")
    constants: tuple[Constants, ...]

    def of(self, dtype: str) -> Constants | None:
        """The constants in a dtype, or None if it was not measured."""
        return next((c for c in self.constants if c.dtype == dtype), None)

    @property
    def label(self) -> str:
        """Its name in a record of evidence."""
        return f"{self.backend.label} of {self.created:%Y-%m-%d}"


# The constants of rounding bounds that follow from the measurements

SUM, SOFTMAX, PRODUCT, ATTENTION = "sum", "softmax", "product", "attention"
"""The first word of the operation in an order record."""
FULL, WEIGHTS = "full blocks", "the sum of weights"


def constants_of(
    dtype: torch.dtype,
    functions: Sequence[FunctionRecord],
    orders: Sequence[OrderRecord],
    kernels: Sequence[KernelRecord],
    operand: float,
) -> Constants:
    """The constants in a dtype; 16-bit dtypes include the functions and sums of float32.

    Of several measurements the worst counts.
    """
    names = {name_of(dtype), name_of(wide_dtype(dtype))}
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
        accumulate=max(unit_roundoff(wide_dtype(dtype)), *(r.unit for r in others)),
        product=max(unit_roundoff(wide_dtype(dtype)), *(r.unit for r in products)),
        operand=operand,
        least=max(least_of(dtype), *lost),
        sums=_of(others, SUM),
        softmax=_of(others, SOFTMAX),
        products=SEQUENTIAL
        if narrow is None
        else widest([r.model for r in products if (r.width or 0) >= narrow]),
        narrow=narrow,
        kernels=tuple(
            _kernel(r, max(other.used for other in attention if other.kernel == r.kernel), others)
            for r in attention
            if r.dtype == name_of(dtype)
        ),
    )


def _kernel(
    record: KernelRecord, exponential_error: float, orders: Sequence[OrderRecord]
) -> KernelConstants:
    """The constants of a kernel; in 16-bit dtypes the exponential includes that of float32."""
    own = [r for r in orders if r.operation.startswith(f"{ATTENTION} {record.kernel},")]
    own = [r for r in own if r.dtype == record.dtype or WEIGHTS in r.operation]
    full = [r.model for r in own if FULL in r.operation or WEIGHTS in r.operation]
    return KernelConstants(
        kernel=record.kernel,
        exponential_error=exponential_error,
        any_queries=widest([r.model for r in own]),
        full_blocks=widest(full) if any(FULL in r.operation for r in own) else SEQUENTIAL,
        scores_stored=record.scores_stored,
        weights_stored=record.weights_stored,
    )


def _of(orders: Sequence[OrderRecord], operation: str) -> Depth:
    """The worst order of an operation; sequential if it was not measured."""
    return widest([r.model for r in orders if r.operation.startswith(operation)])


def _narrow(products: Sequence[OrderRecord]) -> int | None:
    """The least width from which on every measured product sums in blocks."""
    widths = sorted({r.width for r in products if r.width is not None}, reverse=True)
    found = None
    for width in widths:
        if any(r.model.sequential for r in products if r.width == width):
            break
        found = width
    return found
