"""What code cannot do where it is run: packages that are not installed, and no CUDA device."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from .code import Code

NEEDS_DEVICE = (
    "not compiled with cuda",
    "no nvidia driver",
    "no cuda gpus",
    "cuda error",
    "cuda is not available",
    "is_cuda",
    "must be on cuda",
    "cuda out of memory",
    "requires cuda",
    "active drivers",
    "flash_attn",  # installed, and still named in an error: it has kernels for CUDA alone
)
WANTS_DEVICE = (
    "This code asks for a CUDA device, and was run without one.  Take the device from its inputs "
    "(x.device), or run the check where there is one."
)
# Packages of kernels, which code names where it cannot do without them.
KERNELS = (
    "flash_attn",
    "xformers",
    "triton",
    "apex",
    "transformer_engine",
    "sageattention",
    "natten",
    "deepspeed",
    "causal_conv1d",
    "mamba_ssm",
)
_NO_MODULE = re.compile(r"No module named '?(\w+)")
_PIP = re.compile(r"pip3? install (?:-\S+ )*([A-Za-z][\w-]*)")
_NONE_CALLED = "'NoneType' object is not callable"


def advice(text: str) -> str:
    """What to do where code says that a package or a device is missing; "" where it does not.

    >>> advice("flash_attn is not importable here")[:53]
    'This code needs flash_attn, which is not installed.  '
    >>> advice("no such width")
    ''
    """
    missing = _package(text)
    if missing:
        return _needs(missing)
    wants = any(word in text.lower() for word in NEEDS_DEVICE)
    return WANTS_DEVICE if wants else ""


def advice_on(code: Code, text: str) -> str:
    """The same, where code calls what its file could not import, and has None for."""
    if _NONE_CALLED not in text:
        return advice(text)
    absent = [
        name
        for name, value in code.space.items()
        if value is None and re.search(rf"\b{re.escape(name)}\(", code.text)
    ]
    if not absent:
        return ""
    packages = [one for one in _imported(code.place.rpartition(":")[0], absent[0]) if not _is(one)]
    named = f"{absent[0]} is None in its file.  "
    return named + (_needs(packages[0]) if packages else "Give it a setting with which it is not.")


def _needs(package: str) -> str:
    kernels = " (it has kernels for a CUDA device)" * (package in KERNELS)
    return (
        f"This code needs {package}, which is not installed.  Install it{kernels} where the check "
        "is run, or choose what does without it: an argument in --call, a setting with --set, or "
        "another class of the file."
    )


def _package(text: str) -> str:
    """A package that is named in what code raised, and is not installed."""
    lower = text.replace("-", "_").lower()
    named = [found[1] for found in (_NO_MODULE.search(text), _PIP.search(text)) if found]
    named += [one for one in KERNELS if re.search(rf"\b{one}\b", lower)]
    return next((one for one in (n.replace("-", "_") for n in named) if not _is(one)), "")


@lru_cache(maxsize=64)
def _is(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def _imported(file: str, name: str) -> list[str]:
    """Packages from which a file imports a name."""
    try:
        nodes = [*ast.walk(ast.parse(Path(file).read_text(encoding="utf-8")))]
    except (OSError, SyntaxError, ValueError):
        return []
    found = []
    for node in nodes:
        if isinstance(node, ast.ImportFrom | ast.Import):
            module = getattr(node, "module", None) or ""
            found += [
                (module or one.name).partition(".")[0]
                for one in node.names
                if name == (one.asname or one.name) and not getattr(node, "level", 0)
            ]
    return found
