"""Inputs at which code fails that is right at others: lengths that are equal, far positions.

A law is measured at the inputs that stand beside its formula, or else at those of its call; small
ones come first, so that a witness is small.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

BEYOND_EXP = math.inf


@dataclass(frozen=True)
class Inputs:
    """Inputs of a formula.

    ``at``: for a name of positions their offsets from the first position that the code has, of the
    tokens in turn, or of each row of the batch; for a shift or a step the number.
    ``units``: vectors are all unit vectors at each of these positions, so that both sides show
    every entry of the matrices that the code applies; else vectors are drawn.
    ``lengths``: of letters, as numbers or as another letter whose length they have.
    ``scale``: what drawn vectors are multiplied by, by name; ``BEYOND_EXP`` is so much that the
    exponential of a product with them is beyond all numbers of the format.  Of a short format it
    is less, where products would overflow.
    ``window``: the lengths of a window.  ``left``: padding stands at the left of the tokens.
    ``named``: a length is one that the code names, and one more; it may take no more.
    """

    at: Mapping[str, Any] = field(default_factory=dict)
    units: bool = False
    lengths: Mapping[str, int | str] = field(default_factory=dict)
    scale: Mapping[str, float] = field(default_factory=dict)
    window: tuple[int, ...] = ()
    left: bool = False
    named: bool = False


def _lengths(letters: str, *rows: Sequence[int | str]) -> tuple[Inputs, ...]:
    return tuple(Inputs(lengths=dict(zip(letters, row, strict=True))) for row in rows)


# Of each call, from small to large: all different, then equal where a broadcast would not be seen.
OF_CALLS: Mapping[str, tuple[Inputs, ...]] = {
    "attend": _lengths(
        "BArnm",
        (1, 1, 3, 3, 2),
        (3, 1, 6, 6, 2),
        (2, 2, "H", "H", 3),
        (5, 5, 5, 5, 5),
        ("H", 1, 4, 4, 1),
        (2, 1, 2, 5, 3),
    ),
    "layer": _lengths("BAnr", (1, 1, 3, 2), (3, 1, 6, 3), (5, 5, 5, 5), (2, 1, "H", 2)),
    "added": _lengths("BAnr", (1, 1, 2, 1), (1, 1, 5, 3), (2, 1, 3, 3), (3, 3, 3, 2), (2, 3, 5, 2)),
    "biased": _lengths("nr", (3, 3), (6, 11), (3, 1), (3, 5), (4, 2), (12, 5), (20, 20)),
    "windowed": tuple(
        Inputs(window=w) for w in ((2, 2), (2, 3), (3, 5), (4, 4), (2, 3, 4), (3, 3, 3))
    ),
    "gridded": tuple(
        Inputs(window=w)
        for w in ((2, 2), (2, 3), (3, 2), (1, 5), (5, 8), (2, 3, 4), (4, 2, 3), (3, 3, 3))
    ),
    "biased_paths": _lengths("nr", (1, 1), (2, 2), (5, 5), (6, 2)),
    "masked": _lengths(
        "nr",
        (1, 1),
        (2, 2),
        (3, 3),
        (6, 6),
        (33, 33),
        (130, 130),
        (260, 260),  # past 256, where whole numbers in bfloat16 end, and those of a byte
        (2060, 2060),  # past 2048, where those in float16 end
        ("W", "W"),
        (5, 1),
        (5, 2),
        (6, 5),
        (130, 1),
    ),
    "rotate": _lengths("BAnr", (1, 1, 2, 3), (2, 1, 3, 4), (2, 2, 4, 4), ("H", 1, "H", 2)),
}
