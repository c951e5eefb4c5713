"""What code asks of its environment, which is in no graph and not among its inputs."""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import BuiltinFunctionType, CodeType, ModuleType
from typing import Any

import torch

# Modules of the standard library whose functions depend on their arguments alone; any other may
# answer otherwise at another time, on another machine, in another process.
PURE = frozenset(
    (
        *("__future__", "_abc", "_bisect", "_collections", "_collections_abc", "_functools"),
        *("_heapq", "_json", "_operator", "_struct", "_typing", "_warnings", "abc", "array"),
        *("ast", "base64", "bisect", "builtins", "cmath", "collections", "contextlib", "copy"),
        *("copyreg", "dataclasses", "difflib", "enum", "fractions", "functools", "graphlib"),
        *("hashlib", "heapq", "inspect", "itertools", "json", "keyword", "logging", "math"),
        *("numbers", "operator", "pprint", "re", "reprlib", "statistics", "string", "struct"),
        *("textwrap", "types", "typing", "unicodedata", "warnings", "weakref", "zlib"),
    )
)
MAX_NAMED = 7  # of what is read from outside
OUTSIDE = ("open", "input")  # builtins that read from outside the process
# Settings of torch, and properties of tensors other than their numbers.
SETTINGS = frozenset(
    (
        *("FakeTensor", "FunctionalTensor", "_get_current_dispatch_mode", "_forward_hooks"),
        *("_forward_pre_hooks", "are_deterministic_algorithms_enabled", "current_device"),
        *("detect_fake_mode", "device_count", "get_default_dtype", "get_default_device"),
        *("get_deterministic_debug_mode", "get_device", "get_float32_matmul_precision"),
        *("get_num_interop_threads", "get_num_threads", "get_rng_state", "grad", "grad_fn"),
        *("getEffectiveLevel", "has_cuda", "has_mps", "initial_seed", "isEnabledFor"),
        *("is_anomaly_enabled", "is_available"),
        *("is_deterministic_algorithms_warn_only_enabled", "is_mkldnn", "is_nested"),
        *("is_quantized", "is_sparse", "is_warn_always_enabled", "suppress", "__version__"),
        *("__config__", "geterr", "get_printoptions"),
    )
)
NUMPY = "numpy"


def environment_conditions(
    codes: Mapping[CodeType, Mapping[str, Any]], held: Iterable[Any] = ()
) -> Iterator[str]:
    """Yield a condition on what codes read from their environment.

    Given are their globals, and what they ``held`` in closures and attributes.

    >>> import os
    >>> code = eval("lambda x: x if os.environ.get('FAST') else -x").__code__
    >>> list(environment_conditions({code: {"os": os}}))
    ['the code reads the same from `os` as in every run']
    """
    found: dict[str, None] = {}
    named: set[int] = set()  # objects found by name, by id
    for code, names in codes.items():
        texts = [one for one in code.co_consts if isinstance(one, str)]
        found |= dict.fromkeys(name for name in (*code.co_names, *texts) if name in SETTINGS)
        imported = (one.argval for one in dis.get_instructions(code) if one.opname == "IMPORT_NAME")
        found |= dict.fromkeys(filter(_is_outside, imported))
        for name in code.co_names:
            known = names.get(name)
            named.add(id(known))
            setting = isinstance(known, BuiltinFunctionType) and known.__name__ in SETTINGS
            if (
                _is_state(known)
                or setting
                or (name in OUTSIDE and name not in names)
                or _is_of_process(name, known)
            ):
                found[name] = None
            if getattr(known, "__name__", "") == NUMPY and "random" in code.co_names:
                found[f"{name}.random"] = None
    others = (one for one in held if id(one) not in named and not isinstance(one, type))
    state = filter(_is_state, others)
    found |= {getattr(one, "__name__", type(one).__name__): None for one in state}
    if found:
        shown = [f"`{name}`" for name in found]
        more = len(shown) - MAX_NAMED if len(shown) > MAX_NAMED + 1 else 0  # not "1 more"
        told = ", ".join(shown[: len(shown) - more]) + f" and {more} more" * bool(more)
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
        return _is_outside(one.__name__)
    if hasattr(one, "registry") and hasattr(one, "dispatch"):  # dispatches on argument types
        return True
    if _is_array(one) or type(one).__name__ == "TorchVersion":
        return True
    module = getattr(one, "__module__", None) or type(one).__module__
    random = getattr(getattr(one, "__self__", one), "__class__", type(one)).__module__
    if isinstance(random, str) and random.startswith("numpy.random"):
        return True
    return _is_outside(str(module)) or type(one).__name__ == "ContextVar"


def _is_array(one: Any) -> bool:
    """Whether something is an array of NumPy, whose numbers a trace takes as they are."""
    return type(one).__module__ == NUMPY and type(one).__name__ == "ndarray"


def _is_of_process(name: str, one: Any) -> bool:
    """Whether a global name holds what ``sys`` has under this name, or a container of ``sys``."""
    if isinstance(one, list | dict | set):
        return any(one is held for held in vars(sys).values())
    return one is not None and vars(sys).get(name) is one and not isinstance(one, ModuleType)


def _is_outside(module: str) -> bool:
    """Whether a module of the standard library reads from outside the process, or keeps state."""
    name = module.split(".", maxsplit=1)[0]
    return name in sys.stdlib_module_names and name not in PURE and name != "__main__"
