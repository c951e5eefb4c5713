"""The symbolic layer: the public names that statements are written with.

Each name is loaded when it is first used; proving (``prove``), refuting (``refute``) and printing
(``latex``) are modules of their own, imported on demand.  Load order, from the bottom up:
``terms`` (the notation), ``scalars`` (numbers and lengths), ``meaning`` (the meaning of each
operation), ``formed`` (well-formed terms), ``rules``, ``covers`` and ``kernel``, most of the
trusted code (README.md has the full list).  Then ``array``, ``namespace``, ``givens``,
``definition`` and ``statement`` (what users write), ``normal_form``, ``derive`` and ``prove``
(the search).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from attnproof.lazy_names import lazy_names

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

_, __getattr__ = lazy_names(__name__, Path(__file__))

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
