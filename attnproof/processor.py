"""The processor that this runs on, as a part of what numbers depend on."""

from __future__ import annotations

import platform
from pathlib import Path


def processor() -> str:
    """The model of the processor: kernels are chosen by it, and round differently."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()
