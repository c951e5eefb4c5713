"""What this machine is, as far as results depend on it."""

from __future__ import annotations

import os
import platform
from importlib import metadata

from .records import Machine
from .usage import UsageError

__all__ = ["default_dtypes", "machine"]


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
        platform=platform.platform(),
        processors=os.cpu_count() or 1,
        torch=metadata.version("torch") if numeric else "",
        devices=_devices() if numeric else (),
    )


def _devices() -> tuple[str, ...]:
    from .numeric.devices import devices

    return devices()
