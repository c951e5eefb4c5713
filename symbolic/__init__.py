"""The symbolic side: what statements are written with.

This page imports nothing heavy; proving (``prove``), refuting (``refute``) and printing
(``latex``) are modules of their own, imported when asked for.  Load order, from the ground up:
``terms`` (the notation), ``scalars`` (numbers and lengths), ``meaning`` (what each operation
means), ``formed`` (which terms mean something), ``rules``, ``covers`` and ``kernel``: all that
is trusted.  Then ``array``, ``namespace``, ``givens``, ``definition`` and ``statement`` (what one
writes), ``normal_form``, ``derive`` and ``prove`` (the search).
"""

from __future__ import annotations

from .array import Array, AxisMismatch
from .definition import definition
from .givens import (
    angle,
    boolean,
    frequencies,
    function,
    index_below,
    index_map,
    injection,
    orthogonal,
    permutation,
    positions,
    positive,
    real,
    sizes,
)  # fmt: skip
from .statement import (
    Claim,
    Statement,
    Theorem,
    all_positive,
    chain,
    equal,
    exists,
    iterate,
    theorem,
)  # fmt: skip

__all__ = [
    "Array", "AxisMismatch", "Claim", "Statement", "Theorem", "all_positive", "angle", "boolean",
    "chain", "definition", "equal", "exists", "frequencies", "function", "index_below", "index_map",
    "injection", "iterate", "orthogonal", "permutation", "positions", "positive", "real", "sizes",
    "theorem",
]  # fmt: skip
