"""Identify the frequencies of rotary code: the ladder on each axis, and changes between calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
from torch import Tensor

from ..execution.draw import Draw
from ..execution.rotary_matrices import FURTHEST, probe_positions, steady_length
from ..finding import Part, format_number, simplest
from ..reading.ladders import Fitted, MeasuredFrequencies, fit, ladder_parts
from ..reading.rotations import Blocks, follow, images, pairs_of, reading_error, stored_in
from ..subjects import Rotary

MOVING_RADII = 4.0  # times its radius: the least frequency that counts as a rotation


@dataclass(frozen=True)
class Ladders:
    """Signed frequencies ``used``, each within its ``radius``: (B,), and their formula.

    ``axis``: that of each pair (−1: several); ``formula``: the signed frequencies by formula, if
    one is known.  ``fitted``: the ladder of all pairs, or of the first axis if ``each`` axis has
    its own.  ``steady``: whether all angles are position times frequency.
    """

    pairs: tuple[tuple[int, int], ...]
    used: Tensor
    radius: Tensor
    axis: Tensor
    axes: int
    places: int
    steady: bool
    fitted: Fitted | None
    formula: Tensor | None
    each: bool = False
    whole: bool = True

    def parts(self) -> Iterator[Part]:
        """Yield the parts for base, scaling and axes."""
        if self.axes > 1:
            yield self._axes()
        if not self.steady:
            yield Part(
                "steady",
                False,
                "angles that are not multiples of the position",
                f"at {self.places} positions; what follows is of the first of them",
                certain=False,
            )
        yield from ladder_parts(
            self.fitted,
            MeasuredFrequencies(self.used.abs(), self.radius),
            self.places,
            self.formula,
            whole=self.whole,
        )

    def _axes(self) -> Part:
        runs = [(int(a), len(list(g))) for a, g in groupby(self.axis.tolist())]
        seen = "each axis alone, the others 0"
        silent = [a for a in range(self.axes) if a not in {a for a, _ in runs}]
        if -1 in self.axis.tolist():
            return Part("axes", None, f"{self.axes} axes, pairs that rotate by several", seen)
        ways = ", ".join(str(n) for _, n in runs)
        if len(runs) <= 2 * self.axes:
            order = [a for a, _ in runs]
            words = f"{self.axes} axes with {ways} pairs"
            if silent and len(order) == 1:
                words = f"{self.axes} axes"
            elif order != list(range(self.axes)):
                words += f" (of axes {', '.join(map(str, order))})"
        else:
            counts = [int((self.axis == a).sum()) for a in range(self.axes)]
            ways = ", ".join(map(str, counts))
            words = f"{self.axes} axes dealt in turn to {ways} pairs"
        if silent:
            words += f", of which {', '.join(map(str, silent))} without effect"
        words += ", each axis a ladder of its own" if self.each else ""
        return Part("axes", [int(a) for a in self.axis.tolist()], words, seen)


def ladders(
    blocks: Sequence[Blocks], pairs: Sequence[tuple[int, int]], noise: float, code: Rotary
) -> Ladders:
    """Determine the frequency of each pair on the axis by which it rotates, and their formula."""
    step = 1.0 if code.whole else float(blocks[0].positions[1])
    seen = [follow(one.positions, one.angles, noise, step) for one in blocks]
    omega = torch.stack([one.omega for one in seen])
    radius = torch.stack([one.radius for one in seen])
    moved = omega.abs() > MOVING_RADII * radius
    axis = moved.double().argmax(0)
    at = torch.arange(len(pairs))
    used, off = omega[axis, at], radius[axis, at]
    axis = torch.where(moved.sum(0) > 1, -1, axis)
    head = code.width // 2
    shown = (used.abs() > off).all()
    whole = fit(MeasuredFrequencies(used.abs(), off), head=head) if bool(shown) else None
    formula, each, fitted = None, False, whole
    if whole is not None:
        formula = whole.omega * used.sign()
    elif len(blocks) > 1 and bool(shown) and bool((axis >= 0).all()):
        parts = {
            a: fit(MeasuredFrequencies(used.abs()[axis == a], off[axis == a]))
            for a in sorted(set(axis.tolist()))
        }
        if all(parts.values()):
            formula, each = torch.zeros_like(used), True
            for a, one in parts.items():
                assert one is not None  # none is missing
                formula[axis == a] = one.omega * used.sign()[axis == a]
            fitted = next(iter(parts.values()))
    return Ladders(
        tuple(pairs),
        used,
        off,
        axis,
        len(blocks),
        len(blocks[0].positions),
        all(one.steady for one in seen),
        fitted,
        formula,
        each,
        code.whole,
    )


@dataclass(frozen=True)
class Dynamic:
    """Frequencies that change in calls with more than ``length`` positions.

    ``factor``: that of base·(s·L/length − (s − 1))^(2B/(2B − 2)), dynamic NTK, if this rule fits.
    """

    length: int
    factor: float | None
    evidence: str

    def part(self) -> Part:
        """The part that describes it."""
        known = self.factor is not None
        words = (
            f"dynamic NTK factor {format_number(self.factor)}, original length {self.length}"
            if self.factor is not None
            else f"other frequencies in calls of more than {self.length} positions"
        )
        value = {"family": "dynamic", "factor": self.factor, "original": self.length}
        return Part("length", value, words, self.evidence, certain=known)


def dynamic_of(code: Rotary, draw: Draw) -> Dynamic | None:
    """Find the call length beyond which the rotation at position 1 changes, if any."""
    length = steady_length(code, draw)
    if not length:
        return None
    furthest = min(FURTHEST, code.most - 1)
    factor, seen = _factor(code, draw, length, furthest)
    images(code, torch.tensor([1]), draw, with_last=2)  # ends what a long call left behind
    told_at = f"the angles at position 1 change between lengths {length} and {length + 1}"
    return Dynamic(length, factor, "; ".join(filter(None, (told_at, seen))))


def _factor(code: Rotary, draw: Draw, length: int, furthest: int) -> tuple[float | None, str]:
    """Derive the factor of dynamic NTK from the bases at the original and two longer lengths."""
    found = []
    for last in (length - 1, 2 * length - 1, 4 * length - 1):
        if last > furthest:
            return None, "too few positions to identify the rule"
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
    told_bases = ", ".join(format_number(base) for base, _ in found)
    seen = f"the bases at {length}, {2 * length}, {4 * length} positions are {told_bases}"
    if off > 1e-3 or factor <= 0:
        return None, seen
    near = simplest(factor * (1 - 1e-3), factor * (1 + 1e-3))
    return near, seen


def _base(code: Rotary, draw: Draw, last: int) -> tuple[float, int] | None:
    """The base in calls that end at a position, for exponents b/B, and the number B of pairs."""
    seen = images(code, probe_positions(last)[1:], draw, with_last=last)
    pairs = pairs_of(seen.partners())
    blocks = seen.blocks(pairs)
    noise = reading_error(stored_in(blocks.numbers, draw.dtype))
    way = follow(blocks.positions, blocks.angles, noise)
    one = fit(MeasuredFrequencies(way.omega.abs(), way.radius))
    if one is None or one.base is None or one.scaling not in ("", "ntk"):
        return None
    if not one.words or len(pairs) < 2:
        return one.base, len(pairs)
    return float(one.omega[0] / one.omega[-1]) ** (len(pairs) / (len(pairs) - 1)), len(pairs)
