"""Whether frequencies depend on the length of the call, from where on, and by which rule."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...numeric.rotary_precision.extraction import places
from ..draw import Draw
from ..identity import Part
from ..subjects import Rotary
from .fitting import fit
from .following import follow
from .known import Known
from .plain_numbers import simplest, told
from .turned import images, reading_error, stored_in

__all__ = ["Dynamic", "dynamic_of"]


@dataclass(frozen=True)
class Dynamic:
    """Frequencies are others in calls with more than ``length`` positions.

    ``factor``: of the rule base·(s·L/length − (s − 1))^(2B/(2B − 2)), dynamic NTK, if it is that.
    """

    length: int
    factor: float | None
    evidence: str

    def part(self) -> Part:
        """What to say of it."""
        known = self.factor is not None
        words = (
            f"dynamic NTK factor {told(self.factor)}, original length {self.length}"
            if self.factor is not None else
            f"other frequencies in calls of more than {self.length} positions"
        )  # fmt: skip
        value = {"family": "dynamic", "factor": self.factor, "original": self.length}
        return Part("length", value, words, self.evidence, certain=known)


def dynamic_of(code: Rotary, draw: Draw, furthest: int) -> Dynamic | None:
    """Compare position 1 in a short call with position 1 in a long one; find where it changes."""
    furthest = min(furthest, code.most - 1)
    if code.axes or not code.whole or furthest < 8 or code.first > 1:
        return None
    one = torch.tensor([1])

    def at_one(last: int) -> Tensor:
        return images(code, one, draw, with_last=last).at

    short = at_one(2)
    scale = float(short.abs().max())
    # the same numbers by the same code: only the order of a few operations may differ
    noise = 4 * reading_error(draw.dtype) * scale

    def same(last: int) -> bool:
        return float((at_one(last) - short).abs().max()) <= noise

    if same(furthest):
        return None
    low, high = 2, furthest
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if same(middle) else (low, middle)
    length = low + 1
    factor, seen = _factor(code, draw, length, furthest)
    at_one(2)  # the code may keep the frequencies of the longest call until a short one
    told_at = f"the angles at position 1 change between lengths {low + 1} and {high + 1}"
    return Dynamic(length, factor, "; ".join(filter(None, (told_at, seen))))


def _factor(code: Rotary, draw: Draw, length: int, furthest: int) -> tuple[float | None, str]:
    """The factor of dynamic NTK, from the bases at the original length and at two longer ones."""
    found = []
    for last in (length - 1, 2 * length - 1, 4 * length - 1):
        if last > furthest:
            return None, "too few positions to see by which rule"
        images(code, torch.tensor([1]), draw, with_last=2)
        base = _base(code, draw, last)
        if base is None:
            return None, "in longer calls the frequencies have no known formula"
        found.append(base)
    pairs = found[0][1]
    if pairs < 2:
        return None, ""
    grown = [(base / found[0][0]) ** ((pairs - 1) / pairs) for base, _ in found[1:]]
    slope = (grown[1] - grown[0]) / (2 * length)  # s/length
    factor = slope * length
    off = abs(factor * 2 - (factor - 1) - grown[0]) / grown[0]
    told_bases = ", ".join(told(base) for base, _ in found)
    seen = f"the bases at {length}, {2 * length}, {4 * length} positions are {told_bases}"
    if off > 1e-3 or factor <= 0:
        return None, seen
    near = simplest(factor * (1 - 1e-3), factor * (1 + 1e-3))
    return near, seen


def _base(code: Rotary, draw: Draw, last: int) -> tuple[float, int] | None:
    """The base in calls that end at a position, and the count of pairs."""
    seen = images(code, places(last)[1:], draw, with_last=last)
    pairs = [(i, min(p)) for i, p in enumerate(seen.partners()) if p and i < min(p)]
    blocks = seen.blocks(pairs)
    noise = reading_error(stored_in(blocks, draw.dtype))
    way = follow(blocks.positions, blocks.angles, noise)
    one = fit(Known(way.omega.abs(), way.radius))
    if one is None or one.base is None or one.scaling not in ("", "ntk"):
        return None
    return one.base, len(pairs)
