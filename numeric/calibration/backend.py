"""What constants of rounding depend on: the code that runs and the hardware it runs on.

Two runs have the same backend if they have the same build of torch (``2.13.0+cpu`` and
``2.13.0+cu129`` bring other libraries), the same kind and model of device, the same vector
instructions, and the same variables in the environment that choose among kernels.  All must match:
on one capability, say AVX-512, the libraries behind torch choose other kernels for another maker
of processors, and other block lengths for another size of cache.  The number of threads is no part
of it: orders are measured with one thread and with all, and more threads cut a sum into more parts.
"""

from __future__ import annotations

import os
import platform
import re
from functools import cache
from pathlib import Path

import torch

from .base import Record

__all__ = ["Backend", "backend_of"]

FEATURES = ("avx512_bf16", "avx512_fp16", "amx_bf16", "amx_fp16")
SETTINGS = (
    "ATEN_CPU_CAPABILITY", "CUBLAS_WORKSPACE_CONFIG", "DNNL_DEFAULT_FPMATH_MODE",
    "DNNL_MAX_CPU_ISA", "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS", "NVIDIA_TF32_OVERRIDE",
    "ONEDNN_DEFAULT_FPMATH_MODE", "ONEDNN_MAX_CPU_ISA",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
)  # fmt: skip


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
    """The backend of a device as this process is set up.

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
        device=device.type, name=name, capability=capability, torch=torch.__version__,
        settings=settings,
    )  # fmt: skip


@cache
def _processor() -> tuple[str, tuple[str, ...]]:
    """The model of the processor, and the matrix and low-precision instructions it has."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine(), ()
    found = dict(re.findall(r"^([a-z _]+?)\s*: (.+)$", text, re.MULTILINE))
    name = found.get("model name") or platform.machine()
    kind = [f"{key} {found[key]}" for key in ("cpu family", "model") if key in found]
    flags = found.get("flags", "").split()
    return " ".join((name.strip(), *kind)), tuple(f for f in FEATURES if f in flags)
