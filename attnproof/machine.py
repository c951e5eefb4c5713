"""What this machine is, as far as results depend on it."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

from .records import Machine
from .usage import UsageError


def default_dtypes(device: str) -> tuple[str, ...]:
    """The dtypes that are measured on a device when none is asked for.

    Raises :class:`UsageError` for a device that is absent, naming those present.
    """
    from .numeric.devices import DeviceAbsent, chosen, dtypes_on

    try:
        present = chosen(device)
    except DeviceAbsent as absent:
        raise UsageError(str(absent)) from None
    return tuple(str(dtype).removeprefix("torch.") for dtype in dtypes_on(present))


def machine(*, numeric: bool) -> Machine:
    """The machine of a run; torch is looked at only when there are numbers."""
    return Machine(
        python=platform.python_version(),
        platform=f"{_processor()}, {platform.system()} {platform.machine()}",
        processors=os.cpu_count() or 1,
        torch=metadata.version("torch") if numeric else "",
        devices=_devices() if numeric else (),
    )


def _processor() -> str:
    """The processor's name where the system tells it."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or "processor unnamed")


def _devices() -> tuple[str, ...]:
    from .numeric.devices import devices

    return devices()
