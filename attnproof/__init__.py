"""attnproof: theorems on attention and positional encodings, proved and measured.

The public names stand in ``__init__.pyi``, where type checkers read them too.  Each is loaded when
it is first used, so that ``import attnproof`` stays light.
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

_HOME = {
    name.name: node.module or ""
    for node in ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    if isinstance(node, ast.ImportFrom)
    for name in node.names
}
__all__ = [*_HOME, "__version__"]  # noqa: PLE0604 (the names are strings, from the stub)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"attnproof has no {name!r}; it has {', '.join(sorted(_HOME))}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
