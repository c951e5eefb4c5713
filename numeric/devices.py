"""The devices and dtypes a statement can be measured on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import torch


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Torch computes on so many threads inside, and on as many as before after it."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def one_thread() -> AbstractContextManager[None]:
    """For arrays so small that several threads would only wait for each other."""
    return threads(1)


# What follows from a dtype alone


def name_of(dtype: torch.dtype) -> str:
    """``"float32"`` and its like."""
    return str(dtype).removeprefix("torch.")


def unit_roundoff(dtype: torch.dtype) -> float:
    """Half the gap between 1 and the next number, the largest relative error of one rounding.

    Integers and truth values are not rounded.

    >>> unit_roundoff(torch.bfloat16) == 2**-8, unit_roundoff(torch.int64)
    (True, 0.0)
    """
    return torch.finfo(dtype).eps / 2 if dtype.is_floating_point or dtype.is_complex else 0.0


def wide_dtype(dtype: torch.dtype) -> torch.dtype:
    """What functions and sums are computed in, positions and angles kept in: at least float32.

    Rotary code does so everywhere; in bfloat16 position 257 would be 256.
    """
    return torch.float32 if torch.finfo(dtype).bits == 16 else dtype


# The devices and dtypes a statement can be measured on

DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


class DeviceAbsent(ValueError):
    """The device asked for is not on this machine."""


class UnknownDtype(ValueError):
    """The dtype asked for is not one a statement can be measured in."""


def devices() -> tuple[str, ...]:
    """The devices of this machine, the fastest first; the CPU is always there.

    >>> "cpu" in devices()
    True
    """
    found = ["cuda"] if torch.cuda.is_available() else []
    if torch.backends.mps.is_available():
        found.append("mps")
    return (*found, "cpu")


def chosen(device: str) -> torch.device:
    """The torch device of a name; "auto" is the fastest present.

    Raises :class:`DeviceAbsent`, naming the devices present, for any other name.
    """
    present = devices()
    if device == "auto":
        return torch.device(present[0])
    kind, _, number = device.partition(":")
    if kind not in present:
        raise DeviceAbsent(
            f"device {device!r} was asked for and is not on this machine; present: "
            f"{', '.join(present)}; use one of them, or 'auto'"
        )
    if number and (not number.isdigit() or int(number) >= _count(kind)):
        raise DeviceAbsent(
            f"device {device!r} was asked for; this machine has {_count(kind)} of kind {kind!r}, "
            "numbered from 0"
        )
    return torch.device(device)


def _count(kind: str) -> int:
    return torch.cuda.device_count() if kind == "cuda" else 1


def dtype_named(dtype: str | torch.dtype) -> torch.dtype:
    """The torch dtype of a name like "float32".  Raises :class:`UnknownDtype` for others."""
    name = dtype if isinstance(dtype, str) else name_of(dtype)
    if name not in DTYPES:
        raise UnknownDtype(f"dtype {name!r} was asked for; known: {', '.join(DTYPES)}")
    return DTYPES[name]


def dtypes_on(device: torch.device) -> tuple[torch.dtype, ...]:
    """What is measured when no dtype is asked for: float64 where there is one, then lower."""
    low = (torch.float32, torch.bfloat16)
    return low if device.type == "mps" else (torch.float64, *low)


def called(device: torch.device) -> str:
    """The device as a record names it: on CUDA with the name of the GPU.

    >>> called(torch.device("cpu"))
    'cpu'
    """
    if device.type != "cuda":
        return str(device)
    return f"{device} ({torch.cuda.get_device_name(device)})"


def synchronize(device: torch.device) -> None:
    """Wait until the device has done what it was given, so that clocks can be read."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def matrix_units(device: torch.device) -> tuple[bool | None, ...]:
    """The settings of TF32 under which float32 is measured: on CUDA off and on, else none.

    With TF32 matrix units read operands at 2^-11 in place of 2^-24; a profile made under
    :func:`tf32` says so, and its bounds are wider.
    """
    return (False, True) if device.type == "cuda" else (None,)


@contextmanager
def tf32(on: bool | None) -> Iterator[None]:
    """Allow or forbid TF32 in products of float32 matrices; None leaves it as it is.

    >>> with tf32(True):
    ...     torch.get_float32_matmul_precision()
    'high'
    """
    before = torch.get_float32_matmul_precision()
    if on is not None:
        torch.set_float32_matmul_precision("high" if on else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
