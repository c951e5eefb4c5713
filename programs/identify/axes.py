"""The frequencies of rotary code on one axis or several, and the ladders they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
from torch import Tensor

from ..identity import Part
from ..subjects import Rotary
from .fitting import fit
from .following import Followed, follow
from .known import Fitted, Known
from .plain_numbers import told
from .turned import Blocks

__all__ = ["Ladders", "ladders"]

SEEN = 4.0  # times its radius: a frequency that is seen at all


@dataclass(frozen=True)
class Ladders:
    """Signed frequencies ``used`` within ``radius``: (B,), and where they come from.

    ``axis`` of each pair (−1: of several); ``formula`` gives them, signed, if one is known.
    ``fitted`` is the ladder of all, or of the first axis where ``each`` axis has its own.
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
        """Base, scaling, axes."""
        if self.axes > 1:
            yield self._axes()
        if not self.steady:
            yield Part("steady", False, "angles that are no multiples of the position",
                       f"at {self.places} positions; what follows is of the first of them",
                       certain=False)  # fmt: skip
        worst = float((self.radius / self.used.abs().clamp(min=1e-300)).max())
        read = f"{len(self.used)} frequencies read at {self.places} positions"
        if self.fitted is None:
            first = ", ".join(told(w) for w in self.used.abs()[:3].tolist())
            turns = "" if not self.whole or float(self.used.abs().max()) <= 1.5 else (
                ", known up to whole turns a position")
            yield Part("base", None, f"frequencies of no known formula ({first}, ..){turns}",
                       f"{read}, each within {worst:.1g} of it", certain=False)  # fmt: skip
            return
        one = self.fitted
        low, high = one.between
        if one.base is None:
            yield Part("base", None, "", "the frequencies follow from no base", certain=False)
        else:
            off = (self.used.abs() - _unsigned(self.formula)).abs().max()
            words = "" if one.scaling == "ntk" else f"base {told(one.base)}"
            yield Part("base", one.base, words,
                       f"fitted to {read}; bases from {low:.8g} to {high:.8g} would fit; "
                       f"largest difference {float(off):.1g}",
                       certain=(high - low) <= 1e-3 * high and not one.others)  # fmt: skip
        values = {"family": one.scaling or "none", **one.values}
        seen = "; ".join(f"{other} fits as well" for other in one.others)
        how = f"the formula gives every one of {read}"
        yield Part("scaling", values, one.words, "; ".join(filter(None, (how, seen))),
                   certain=not one.others)  # fmt: skip

    def _axes(self) -> Part:
        runs = [(int(a), len(list(g))) for a, g in groupby(self.axis.tolist())]
        seen = "each axis alone, the others 0"
        silent = [a for a in range(self.axes) if a not in {a for a, _ in runs}]
        if -1 in self.axis.tolist():
            return Part("axes", None, f"{self.axes} axes, pairs that turn by several", seen)
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


def _unsigned(formula: Tensor | None) -> Tensor:
    return torch.zeros(1) if formula is None else formula.abs()


def ladders(
    blocks: Sequence[Blocks], pairs: Sequence[tuple[int, int]], noise: float, code: Rotary
) -> Ladders:
    """Frequencies of each pair on the axis it turns by, and their formula."""
    step = 1.0 if code.whole else float(blocks[0].positions[1])
    seen = [follow(one.positions, one.angles, noise, step) for one in blocks]
    omega = torch.stack([one.omega for one in seen])
    radius = torch.stack([one.radius for one in seen])
    moved = omega.abs() > SEEN * radius
    axis = moved.double().argmax(0)
    at = torch.arange(len(pairs))
    used, off = omega[axis, at], radius[axis, at]
    axis = torch.where(moved.sum(0) > 1, -1, axis)
    head = code.width // 2
    shown = (used.abs() > off).all()
    whole = fit(Known(used.abs(), off), head=head) if bool(shown) else None
    formula, each, fitted = None, False, whole
    if whole is not None:
        formula = whole.omega * used.sign()
    elif len(blocks) > 1 and bool(shown) and bool((axis >= 0).all()):
        parts = {a: fit(Known(used.abs()[axis == a], off[axis == a]))
                 for a in sorted(set(axis.tolist()))}  # fmt: skip
        if all(parts.values()):
            formula, each = torch.zeros_like(used), True
            for a, one in parts.items():
                assert one is not None  # all of them are there
                formula[axis == a] = one.omega * used.sign()[axis == a]
            fitted = next(iter(parts.values()))
    return Ladders(
        tuple(pairs), used, off, axis, len(blocks), len(blocks[0].positions), _steady(seen),
        fitted, formula, each, code.whole,
    )  # fmt: skip


def _steady(seen: Sequence[Followed]) -> bool:
    return all(one.steady for one in seen)
