"""The most memory that a piece of work holds at once, beyond what was held before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

__all__ = ["Peak", "available", "peak"]

OWN = Path("/proc/self")
MACHINE = Path("/proc/meminfo")
FORGET_PEAK = "5"  # what Linux is told in clear_refs, so that VmHWM starts again


@dataclass
class Peak:
    """The peak in bytes, once the work is done; None where the system does not tell."""

    beyond: int | None = None


@contextmanager
def peak(device: torch.device) -> Iterator[Peak]:
    """Measure a block: on CUDA by its allocator, on Linux by the resident set of the process."""
    found = Peak()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        yield found
        found.beyond = torch.cuda.max_memory_allocated(device) - before
        return
    before_here = _resident() if _forgotten() else None
    yield found
    after = _kibibytes(OWN / "status", "VmHWM")
    if before_here is not None and after is not None:
        found.beyond = max(0, after - before_here)


def available(device: torch.device) -> int | None:
    """The bytes that can still be taken, or None where the system does not tell."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return _kibibytes(MACHINE, "MemAvailable")


def _forgotten() -> bool:
    try:
        (OWN / "clear_refs").write_text(FORGET_PEAK, encoding="ascii")
    except OSError:
        return False
    return True


def _resident() -> int | None:
    return _kibibytes(OWN / "status", "VmRSS")


def _kibibytes(file: Path, name: str) -> int | None:
    try:
        lines = file.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    found = next((line.split()[1] for line in lines if line.startswith(f"{name}:")), None)
    return None if found is None else int(found) * 1024
