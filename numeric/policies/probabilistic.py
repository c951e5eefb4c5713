"""The comparison with the radius that independent rounding errors exceed hardly ever."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor

from ..compare import REFERENCE_SHARE, SIDES, Comparison, unusable, wide, worse, worst
from ..rounded import Rounded
from .independent import LAMBDA
from .spread import likely

__all__ = ["chance", "probable"]


def probable(
    computed: Sequence[Tensor], bounds: Sequence[Rounded], *, equal: bool
) -> Comparison | None:
    """Each side against the exact value of its term and, of an equation, against the other.

    None where a side is not a number, which the deterministic policy tells.
    """
    sides = wide(*computed)
    if unusable(sides, bounds) is not None:
        return None
    radii = [likely(bound) for bound in bounds]
    found: Comparison | None = None
    for name, side, bound, radius in zip(SIDES, sides, bounds, radii, strict=False):
        one = worst(side, bound.value, radius * (1 + REFERENCE_SHARE))
        told = f"the {name} side is off its definition in float64 by more than its errors spread"
        status = "violated" if one[0] > one[1] else "held"
        new = Comparison(*one, status, told if status == "violated" else "")
        found = new if found is None else worse(found, new)
    if equal:
        one = worst(sides[0], sides[1], radii[0] + radii[1])
        status = "violated" if one[0] > one[1] else "held"
        told = "the sides differ by more than their errors spread" if status == "violated" else ""
        new = Comparison(*one, status, told)
        found = new if found is None else worse(found, new)
    return found


def chance(entries: int) -> float:
    """The probability that some of so many entries exceeds it, errors being independent.

    >>> f"{chance(4096):.0e}"
    '2e-07'
    """
    return min(1.0, 2 * entries * math.exp(-LAMBDA * LAMBDA / 2))
