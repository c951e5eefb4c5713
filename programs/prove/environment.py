"""What code asks of its environment, which is in no graph and not among its inputs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType, ModuleType
from typing import Any

import torch

# Modules that answer otherwise at another time, on another machine, in another process.
STATE = frozenset(
    (
        *("_contextvars", "_thread", "contextvars", "ctypes", "datetime", "gc", "glob", "io"),
        *("getpass", "locale", "multiprocessing", "os", "pathlib", "platform", "posix", "random"),
        *("resource", "secrets", "shutil", "signal", "socket", "subprocess", "sys", "tempfile"),
        *("threading", "time", "uuid"),
    )
)
OUTSIDE = ("open", "input")  # builtins that read from outside the process
# Settings of torch, and properties of tensors other than their numbers.
SETTINGS = frozenset(
    (
        *("FakeTensor", "FunctionalTensor", "_get_current_dispatch_mode", "_forward_hooks"),
        *("_forward_pre_hooks", "are_deterministic_algorithms_enabled", "current_device"),
        *("detect_fake_mode", "device_count", "get_default_dtype", "get_default_device"),
        *("get_deterministic_debug_mode", "get_device", "get_float32_matmul_precision"),
        *("get_num_interop_threads", "get_num_threads", "get_rng_state", "grad", "grad_fn"),
        *("has_cuda", "has_mps", "initial_seed", "is_anomaly_enabled", "is_available"),
        *("is_deterministic_algorithms_warn_only_enabled", "is_mkldnn", "is_nested"),
        *("is_quantized", "is_sparse", "is_warn_always_enabled", "suppress"),
    )
)


def environment_conditions(codes: Mapping[CodeType, Mapping[str, Any]]) -> Iterator[str]:
    """Yield a condition on what codes read from their environment, given their globals.

    >>> import os
    >>> code = eval("lambda x: x if os.environ.get('FAST') else -x").__code__
    >>> list(environment_conditions({code: {"os": os}}))
    ['the code reads the same from `os` as in every run']
    """
    found: dict[str, None] = {}
    for code, names in codes.items():
        texts = [one for one in code.co_consts if isinstance(one, str)]
        found |= dict.fromkeys(name for name in (*code.co_names, *texts) if name in SETTINGS)
        for name in code.co_names:
            known = names.get(name, sys.modules.get(name) if name in STATE else None)
            if _is_state(known) or (name in OUTSIDE and name not in names):
                found[name] = None
    if found:
        told = ", ".join(f"`{name}`" for name in found)
        yield f"the code reads the same from {told} as in every run"


def torchscript_conditions(held: Iterable[Any]) -> Iterator[str]:
    """Yield that TorchScript code gets the same answers as in every run, since these are unseen."""
    for one in held:
        if isinstance(one, torch.jit.ScriptFunction | torch.jit.ScriptModule):
            name = getattr(one, "original_name", None) or getattr(one, "name", type(one).__name__)
            yield f"queries by `{name}`, run by TorchScript, are answered as in every run"


def _is_state(one: Any) -> bool:
    if one is None:
        return False
    if isinstance(one, Iterator):  # each call consumes part of it
        return True
    if isinstance(one, ModuleType):
        return one.__name__ in STATE
    if hasattr(one, "registry") and hasattr(one, "dispatch"):  # dispatches on argument types
        return True
    module = getattr(one, "__module__", None) or type(one).__module__
    return str(module).split(".")[0] in STATE or type(one).__name__ == "ContextVar"
