"""The symbolic side: what statements are written with.

Each name is loaded when it is first used; proving (``prove``), refuting (``refute``) and printing
(``latex``) are modules of their own, imported when asked for.  Load order, from the ground up:
``terms`` (the notation), ``scalars`` (numbers and lengths), ``meaning`` (what each operation
means), ``formed`` (which terms mean something), ``rules``, ``covers`` and ``kernel``: all that
is trusted.  Then ``array``, ``namespace``, ``givens``, ``definition`` and ``statement`` (what one
writes), ``normal_form``, ``derive`` and ``prove`` (the search).
"""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # they are read below, and by type checkers
    from .array import Array, AxisMismatch
    from .claim import (
        Claim,
        Law,
        all_positive,
        at_least,
        chain,
        differ,
        equal,
        exists,
        for_all,
        greater,
        iterate,
        over,
        rows,
    )
    from .givens import (
        angle,
        boolean,
        frequencies,
        function,
        index_below,
        index_map,
        injection,
        inverse,
        natural,
        nonnegative,
        orthogonal,
        permutation,
        positions,
        positive,
        probability_space,
        real,
        sizes,
        standard,
    )
    from .statement import Statement, Theorem, theorem

_HOME = {
    name.name: node.module or ""
    for node in ast.walk(ast.parse(Path(__file__).read_text(encoding="utf-8")))
    if isinstance(node, ast.ImportFrom) and node.level
    for name in node.names
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"{__name__} has no {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


__all__ = [
    "Array",
    "AxisMismatch",
    "Claim",
    "Law",
    "Statement",
    "Theorem",
    "all_positive",
    "angle",
    "at_least",
    "boolean",
    "chain",
    "differ",
    "equal",
    "exists",
    "for_all",
    "frequencies",
    "function",
    "greater",
    "index_below",
    "index_map",
    "injection",
    "inverse",
    "iterate",
    "natural",
    "nonnegative",
    "orthogonal",
    "over",
    "permutation",
    "positions",
    "positive",
    "probability_space",
    "real",
    "rows",
    "sizes",
    "standard",
    "theorem",
]
