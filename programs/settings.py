"""What torch keeps for a whole process, given back after code that someone else wrote has run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

Setting = tuple[Callable[[], Any], Callable[[Any], Any]]
Read = dict[str, Any]
PARTS = ("conv", "rnn", "matmul")


@contextlib.contextmanager
def given_back() -> Iterator[None]:
    """Afterwards torch is set as it was before, however the block is left.

    Code that rotates a kernel of attention off, makes float64 the default, or seeds, would change
    what the next law, and the next test, stand on.  What is meant: which kernels scaled dot
    product attention may use, the fast path of transformers, dtype and device by default,
    gradients, autocast, the number of threads, deterministic algorithms, the precision of
    matrix products, and the state of random numbers.

    >>> with given_back():
    ...     torch.set_default_dtype(torch.float64)
    >>> torch.get_default_dtype()
    torch.float32
    """
    before = _read()
    try:
        yield
    finally:
        _write(before)


def _settings() -> dict[str, Setting]:
    cuda, mha, cudnn = torch.backends.cuda, torch.backends.mha, torch.backends.cudnn
    found: dict[str, Setting] = {
        "flash attention": (cuda.flash_sdp_enabled, cuda.enable_flash_sdp),
        "math attention": (cuda.math_sdp_enabled, cuda.enable_math_sdp),
        "efficient attention": (cuda.mem_efficient_sdp_enabled, cuda.enable_mem_efficient_sdp),
        "cudnn attention": (cuda.cudnn_sdp_enabled, cuda.enable_cudnn_sdp),
        "fast path": (mha.get_fastpath_enabled, mha.set_fastpath_enabled),
        "default dtype": (torch.get_default_dtype, torch.set_default_dtype),
        "default device": (torch.get_default_device, _set_device),
        "gradients": (torch.is_grad_enabled, torch.set_grad_enabled),
        "threads": (torch.get_num_threads, torch.set_num_threads),
        "deterministic": (
            _deterministic,
            lambda how: torch.use_deterministic_algorithms(how[0], warn_only=how[1]),
        ),
        "deterministic cudnn": (
            lambda: cudnn.deterministic,
            lambda on: setattr(cudnn, "deterministic", on),
        ),
        "tried cudnn": (lambda: cudnn.benchmark, lambda on: setattr(cudnn, "benchmark", on)),
        "precision of products": (_precision, _set_precision),
        "anomalies": (torch.is_anomaly_enabled, torch.set_anomaly_enabled),
    }
    return found | {f"autocast on {kind}": _autocast(kind) for kind in ("cpu", "cuda")}


def _autocast(kind: str) -> Setting:
    def read() -> tuple[bool, torch.dtype]:
        return torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)

    def write(how: tuple[bool, torch.dtype]) -> None:
        torch.set_autocast_enabled(kind, how[0])
        torch.set_autocast_dtype(kind, how[1])

    return read, write


def _read() -> Read:
    """Each setting that can be read, and the random numbers."""
    now: Read = {"random numbers": torch.get_rng_state()}
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # to ask it otherwise would start it
        now["random numbers of cuda"] = torch.cuda.get_rng_state_all()
    return now | {name: read() for name, (read, _) in _settings().items()}


def _write(before: Read) -> None:
    torch.set_rng_state(before["random numbers"])
    if "random numbers of cuda" in before:
        torch.cuda.set_rng_state_all(before["random numbers of cuda"])
    for name, (read, write) in _settings().items():
        if read() != before[name]:
            write(before[name])


def _precision() -> tuple[str, tuple[str, ...]]:
    """Of products in float32; it is set in two ways, and after the newer the older may raise."""
    try:
        older = torch.get_float32_matmul_precision()
    except RuntimeError:
        older = ""
    return older, tuple(one.fp32_precision for one in _with_precision())


def _set_precision(how: tuple[str, tuple[str, ...]]) -> None:
    if how[0]:
        torch.set_float32_matmul_precision(how[0])
    for one, kept in zip(_with_precision(), how[1], strict=True):
        one.fp32_precision = kept


def _with_precision() -> list[Any]:
    """What has a precision of its own, the wider first."""
    cuda, cudnn, mkldnn = torch.backends.cuda, torch.backends.cudnn, torch.backends.mkldnn
    every = [torch.backends, mkldnn, cudnn, cuda.matmul]
    every += [getattr(one, part, None) for one in (cudnn, mkldnn) for part in PARTS]
    return [one for one in every if hasattr(one, "fp32_precision")]


def _deterministic() -> tuple[bool, bool]:
    only_warns = torch.is_deterministic_algorithms_warn_only_enabled()
    return torch.are_deterministic_algorithms_enabled(), only_warns


def _set_device(device: torch.device) -> None:
    """The CPU is the default where none was set; to set it would slow every call down."""
    torch.set_default_device(None if device.type == "cpu" else device)
