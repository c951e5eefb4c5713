"""The devices and dtypes a statement can be measured on."""

from __future__ import annotations

import torch

__all__ = [
    "DTYPES",
    "DeviceAbsent",
    "UnknownDtype",
    "chosen",
    "devices",
    "dtype_named",
    "dtypes_on",
]

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
    name = str(dtype).removeprefix("torch.")
    if name not in DTYPES:
        raise UnknownDtype(f"dtype {name!r} was asked for; known: {', '.join(DTYPES)}")
    return DTYPES[name]


def dtypes_on(device: torch.device) -> tuple[torch.dtype, ...]:
    """What is measured when no dtype is asked for: float64 where there is one, then lower."""
    low = (torch.float32, torch.bfloat16)
    return low if device.type == "mps" else (torch.float64, *low)
