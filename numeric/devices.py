"""The devices and dtypes on which a statement can be measured."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import torch


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let torch compute on ``count`` threads inside the context."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def one_thread() -> AbstractContextManager[None]:
    """Use one thread, for arrays so small that several threads would mostly wait."""
    return threads(1)


# Properties of a dtype


def name_of(dtype: torch.dtype) -> str:
    """The name of a dtype, such as ``"float32"``."""
    return str(dtype).removeprefix("torch.")


def unit_roundoff(dtype: torch.dtype) -> float:
    """Half the gap between 1 and the next number, the largest relative error of one rounding.

    Integers and truth values are not rounded.

    >>> unit_roundoff(torch.bfloat16) == 2**-8, unit_roundoff(torch.int64)
    (True, 0.0)
    """
    return torch.finfo(dtype).eps / 2 if dtype.is_floating_point or dtype.is_complex else 0.0


def wide_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype of functions, sums, positions and angles: at least float32.

    Rotary code does this everywhere; in bfloat16 position 257 would become 256.
    """
    return torch.float32 if torch.finfo(dtype).bits == 16 else dtype


# Devices and dtypes

DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


class DeviceAbsent(ValueError):
    """The requested device is not on this machine."""


class UnknownDtype(ValueError):
    """The requested dtype is not one in which a statement can be measured."""


def devices() -> tuple[str, ...]:
    """The devices of this machine, fastest first; the CPU is always available.

    >>> "cpu" in devices()
    True
    """
    found = ["cuda"] if torch.cuda.is_available() else []
    if torch.backends.mps.is_available():
        found.append("mps")
    return (*found, "cpu")


def chosen(device: str) -> torch.device:
    """The torch device of a name; "auto" is the fastest available.

    Raises :class:`DeviceAbsent`, naming the available devices, for any other name.
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
    """The default dtypes: float64 if available, then lower ones."""
    low = (torch.float32, torch.bfloat16)
    return low if device.type == "mps" else (torch.float64, *low)


def device_label(device: torch.device) -> str:
    """The device as records name it: on CUDA including the name of the GPU.

    >>> device_label(torch.device("cpu"))
    'cpu'
    """
    if device.type != "cuda":
        return str(device)
    return f"{device} ({torch.cuda.get_device_name(device)})"


def synchronize(device: torch.device) -> None:
    """Wait until the device has finished its work, so that clocks can be read."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def matrix_units(device: torch.device) -> tuple[bool | None, ...]:
    """The TF32 settings under which float32 is measured: on CUDA off and on, otherwise unchanged.

    With TF32, matrix units read operands at 2^-11 instead of 2^-24; a profile made under
    :func:`tf32` records this and has wider bounds.
    """
    return (False, True) if device.type == "cuda" else (None,)


@contextmanager
def tf32(on: bool | None) -> Iterator[None]:
    """Allow or forbid TF32 in products of float32 matrices; None changes nothing.

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
