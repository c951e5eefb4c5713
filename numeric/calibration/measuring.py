"""Measure a backend: all functions, sums, products and attention kernels in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from time import perf_counter
from typing import TypeVar

import torch

from ..devices import name_of, one_thread, tf32, threads, wide_dtype
from .functions import Kernel, function_errors, kernel_record, summed_by, weight_of
from .order import (
    WIDTHS,
    Summed,
    attention_sums,
    depth_of,
    digits_kept,
    kernels_of,
    leaves_of,
    products,
    softmax_depth,
    sums,
)
from .record import (
    ATTENTION,
    FULL,
    SEQUENTIAL,
    SOFTMAX,
    WEIGHTS,
    Calibration,
    FunctionRecord,
    KernelRecord,
    OrderRecord,
    backend_of,
    bits_of,
    constants_of,
    fitted,
)

Tell = Callable[[str], None]
Measured = TypeVar("Measured", FunctionRecord, OrderRecord | KernelRecord)
LENGTHS = (64, 512, 2_048)
THOROUGH_LENGTHS = (64, 512, 4_096, 16_384, 65_536)
MEASURED_LONGER = ("threads: 1", "64 × k × 64")  # the operations measured up to those lengths
LOW_LENGTHS = (64, 512, 1_024)  # for kernels and 16-bit dtypes, whose sums are counted in parts
SHORTENED_QUERIES = 100  # queries from which on the first length is left out
SOFTMAX_LENGTHS = (64, 512, 4_096, 16_384)
THOROUGH_SOFTMAX_LENGTHS = (*SOFTMAX_LENGTHS, 65_536)


def dtypes_measured(device: torch.device) -> tuple[torch.dtype, ...]:
    """The dtypes whose constants are measured on a device."""
    low = (torch.float32, torch.bfloat16, torch.float16)
    return low if device.type == "mps" else (torch.float64, *low)


def calibrated(
    device: torch.device, *, thorough: bool = False, tell: Tell | None = None
) -> Calibration:
    """Measure the constants of the backend of a device.

    ``thorough`` measures orders at more terms.  Orders are measured with one thread and with all
    threads of the process.
    """
    started = perf_counter()
    backend, count = backend_of(device), torch.get_num_threads()
    dtypes = dtypes_measured(device)
    with torch.no_grad(), tf32(on=False):  # TF32 is a setting of the process, not of the backend
        functions = _reported(function_errors(dtypes, device), tell)
        found = _reported(_of_dtypes(dtypes, device, thorough=thorough), tell)
        operands = {name_of(d): operand_unit(d, device) for d in dtypes}
    orders = tuple(r for r in found if isinstance(r, OrderRecord))
    kernels = tuple(r for r in found if isinstance(r, KernelRecord))
    return Calibration(
        backend=backend,
        threads=count,
        created=datetime.now(UTC),
        seconds=perf_counter() - started,
        thorough=thorough,
        functions=functions,
        orders=orders,
        kernels=kernels,
        operands=operands,
        constants=tuple(
            constants_of(d, functions, orders, kernels, operands[name_of(d)]) for d in dtypes
        ),
    )


def _reported(records: Iterable[Measured], tell: Tell | None) -> tuple[Measured, ...]:
    found = []
    for record in records:
        found.append(record)
        if tell is not None:
            tell(_words(record))
    return tuple(found)


def _words(record: FunctionRecord | OrderRecord | KernelRecord) -> str:
    if isinstance(record, OrderRecord):
        return f"{record.operation}, {record.dtype}"
    name = record.function if isinstance(record, FunctionRecord) else record.kernel
    return f"{name}, {record.dtype}"


def _of_dtypes(
    dtypes: Iterable[torch.dtype], device: torch.device, *, thorough: bool
) -> Iterator[OrderRecord | KernelRecord]:
    """Yield the orders of every operation, and the kernels."""
    from ..implementations import DoesNotFit

    for dtype in dtypes:
        low = torch.finfo(dtype).bits == 16
        lengths: tuple[int, ...] = LOW_LENGTHS if low else LENGTHS
        whole = thorough or dtype == torch.float32
        for operation, width, summed, count in _sums_and_products(device, dtype):
            with threads(count):
                long = thorough and dtype == torch.float32 and operation.endswith(MEASURED_LONGER)
                if width is None or whole:
                    yield order_record(
                        operation,
                        summed,
                        dtype,
                        device,
                        THOROUGH_LENGTHS if long else lengths,
                        width,
                    )
                else:
                    yield _digits_only(operation, summed, dtype, device, width)
        with one_thread():  # threads would mostly wait in many small calls
            if not low:
                yield softmax_record(
                    SOFTMAX,
                    _torch_softmax,
                    dtype,
                    device,
                    THOROUGH_SOFTMAX_LENGTHS if thorough else SOFTMAX_LENGTHS,
                )
            for name, kernel in kernels_of(device):
                try:
                    yield kernel_record(name, kernel, dtype, device)
                except DoesNotFit:
                    continue
                yield from _orders_of_kernel(name, kernel, dtype, device, thorough=thorough)


def _sums_and_products(
    device: torch.device, dtype: torch.dtype
) -> Iterator[tuple[str, int | None, Summed, int]]:
    """Yield what sums on one thread, and again what may split its work among all threads."""
    every = torch.get_num_threads() if device.type == "cpu" else 1
    for operation, summed in sums():
        for count in sorted({1, every}):
            yield f"{operation}, threads: {count}", None, summed, count
    for operation, width, summed in products():
        yield operation, width, summed, 1
    if every > 1 and dtype == torch.float32:
        for operation, width, summed in products():
            if width == WIDTHS[-1] and operation.endswith(f"k × {width}"):
                yield f"{operation}, threads: {every}", width, summed, every


def _orders_of_kernel(
    name: str, kernel: Kernel, dtype: torch.dtype, device: torch.device, *, thorough: bool
) -> Iterator[OrderRecord]:
    """Yield the orders of a kernel; in bfloat16 only full blocks, as in calls with many keys."""
    whole = thorough or dtype == torch.float32
    if dtype == torch.float16 or not (whole or dtype == torch.bfloat16):
        summed = summed_by(kernel, 1, 0, dtype, device)
        yield _digits_only(f"{ATTENTION} {name}, digits", summed, dtype, device)
    else:
        for operation, rows, summed in attention_sums(name, kernel, dtype, device):
            if whole or FULL in operation:
                lengths = LOW_LENGTHS if rows < SHORTENED_QUERIES else LOW_LENGTHS[1:]
                yield order_record(operation, summed, dtype, device, lengths, leaves=2)
        if not whole:
            summed = summed_by(kernel, 1, 0, dtype, device)
            yield _digits_only(f"{ATTENTION} {name}, digits", summed, dtype, device)
    if torch.finfo(dtype).bits > 16:
        of = partial(weight_of, kernel, 1, device=device)
        yield softmax_record(
            f"{ATTENTION} {name}, {WEIGHTS}", of, dtype, device, SOFTMAX_LENGTHS[:3]
        )


def _digits_only(
    operation: str,
    summed: Summed,
    dtype: torch.dtype,
    device: torch.device,
    width: int | None = None,
) -> OrderRecord:
    """Record the digits of partial sums; the order is unknown, but no sum is deeper than n.

    That costs little if sums keep far more digits than the dtype stores, or the dtype is float64;
    and in float16 no term is large enough to absorb many others.
    """
    bits, nearest = digits_kept(summed, 64, dtype, device)
    return OrderRecord(
        operation=operation,
        dtype=name_of(dtype),
        width=width,
        lengths=(2, 3),
        depths=(1, 2),
        model=SEQUENTIAL,
        bits=bits,
        nearest=nearest,
        sampled="digits alone: no sum of n terms has more than n roundings",
    )


def _torch_softmax(leaf: int) -> Summed:
    return lambda scores: torch.softmax(scores, -1)[:, leaf]


def order_record(
    operation: str,
    summed: Summed,
    dtype: torch.dtype,
    device: torch.device,
    lengths: tuple[int, ...] = LENGTHS,
    width: int | None = None,
    leaves: int = 3,
) -> OrderRecord:
    """Measure the order of one operation: its depth at each length, and the digits it keeps."""
    depths = tuple(
        max(depth_of(summed, n, leaf, dtype, device) for leaf in leaves_of(n)[:leaves])
        for n in lengths
    )
    bits, nearest = digits_kept(summed, lengths[1], dtype, device)
    tried = ", ".join(map(str, leaves_of(lengths[0])[:leaves]))
    return OrderRecord(
        operation=operation,
        dtype=name_of(dtype),
        width=width,
        lengths=lengths,
        depths=depths,
        model=fitted(lengths, depths),
        bits=bits,
        nearest=nearest,
        sampled=f"leaves {tried} of {lengths[0]} and their like, against every other one",
    )


def softmax_record(
    operation: str,
    weight_at: Callable[[int], Summed],
    dtype: torch.dtype,
    device: torch.device,
    lengths: tuple[int, ...] = SOFTMAX_LENGTHS,
) -> OrderRecord:
    """Measure the order in which a softmax sums its weights.

    ``weight_at`` maps a place to the function from scores to its weight.
    """
    depths = tuple(
        max(softmax_depth(weight_at(leaf), n, dtype, device, leaf) for leaf in (0, 1, n // 2))
        for n in lengths
    )
    return OrderRecord(
        operation=operation,
        dtype=name_of(dtype),
        lengths=lengths,
        depths=depths,
        model=fitted(lengths, depths),
        bits=bits_of(wide_dtype(dtype)),
        nearest=True,
        sampled="leaves 0, 1 and n/2, by the parity of the sums they meet",
    )


def operand_unit(dtype: torch.dtype, device: torch.device) -> float:
    """The unit roundoff of the operands of a matrix product: 0 if it reads the dtype itself."""
    bits = bits_of(dtype)
    powers = 2.0 ** -torch.arange(1, bits, dtype=torch.float64)
    left = torch.zeros((len(powers), 64), dtype=dtype)
    left[:, 0] = (1 + powers).to(dtype)
    right = torch.eye(64, dtype=dtype)
    read = (left.to(device) @ right.to(device))[:, 0].to("cpu", torch.float64) == 1 + powers
    rotated = (right.to(device) @ left.mT.to(device))[0].to("cpu", torch.float64) == 1 + powers
    kept = int((read & rotated).to(torch.int8).cumprod(0).sum())
    return 0.0 if kept == len(powers) else 2.0 ** -(kept + 1)
