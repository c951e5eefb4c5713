"""Both sides of a formula in floats, and whether rounding explains what differs.

The sides are those that proofs and finite fields read (:mod:`attnproof.theorems.laws`), and the
bounds those of each call (:mod:`.roundings`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from attnproof.theorems.laws import Formula

from ...numeric.rounded import Rounded
from ..draw import Draw
from ..identify.calls import Hand, calls_of
from ..rotary_matrices import Reach
from ..subjects import Mask
from .roundings import Roundings, exact

__all__ = ["NOTHING", "Apart", "Beyond", "Look", "Values", "lengths_now", "letters_of", "of_side"]

BITWISE = ("causal", "hidden-keys-do-nothing", "past-is-used", "window-as-declared", "alignment")
NOTHING = "the law says nothing of this code"
Values = dict[str, Any]


class Beyond(Exception):
    """Positions that the code does not have."""


@dataclass(frozen=True)
class Apart:
    """Two sides at the entry where they differ most beyond what is allowed."""

    names: tuple[str, str]
    at: tuple[int, ...]
    here: Any
    there: Any
    off: float
    allowed: float


@dataclass(frozen=True)
class Look:
    """A law of some code, in one format."""

    subject: Any
    draw: Draw
    roundings: Roundings
    reach: Reach | None = None
    window: tuple[int, ...] = ()

    def calls(
        self, fastest: float = 0.0, pieces: bool = False, plain: bool = False
    ) -> SimpleNamespace:
        """The calls of the code on arrays with their errors, which are none in plain ones."""
        made = replace(self.roundings.anew(fastest), pieces=pieces, plain=plain)
        calls = calls_of(self.subject, Hand(made.call, dtype=self.draw.dtype))
        for name in ("windowed", "indexed", "gridded"):
            if self.window and (whole := getattr(calls, name, None)) is not None:
                setattr(calls, name, partial(whole, self.window))
        if isinstance(self.subject, Mask):  # a number hides whose exponential is 0 in its format
            calls.visible = lambda x, y: exact(calls.seen(x, y).double())
        return calls

    def differ(self, formula: Formula, values: Values, fastest: float = 0.0) -> tuple[Any, ...]:
        """Where two sides are further apart than rounding explains, or None; and the worst.

        Of what is computed twice from the same numbers no bit should differ: bounds are derived
        only where one does.
        """
        if formula.id in BITWISE:
            found, _ = self._differ(formula, values, self.calls(plain=True))
            if found is None:
                return None, (0.0, 0.0, 0.0)
        return self._differ(formula, values, self.calls(fastest, formula.call == "step"))

    def _differ(self, formula: Formula, values: Values, calls: SimpleNamespace) -> tuple[Any, ...]:
        if formula.kind == "attention":  # a function takes any number of heads
            met = lengths_now(formula, values, {"H": self.subject.heads, "G": self.subject.groups})
            calls.heads, calls.groups = met["H"], met["G"]
        left, right = formula.equations(calls, **values)
        if isinstance(left, list) and not left:
            raise Beyond(NOTHING)
        pairs = list(zip(left, right, strict=True)) if isinstance(left, list) else [(left, right)]
        names = formula.names or (("the left side", "the right side"),)
        worst = (0.0, 0.0, 0.0)
        for k, sides in enumerate(pairs):
            here, there = (of_side(side) for side in sides)
            told = names[k % len(names)]
            if formula.call.endswith("paths"):
                own = list(self.subject.paths)
                path = f"the path {own[k % len(own)]}"
                agree = formula.id == "paths-agree"
                told = (told[0], path) if agree else (f"{told[0]} on {path}", told[1])
            if here[0].shape != there[0].shape:
                words = f"the shape of {told[0]}", f"the shape of {told[1]}"
                shapes = list(here[0].shape), list(there[0].shape)
                return Apart(words, (), shapes[0], shapes[1], math.inf, 0.0), worst
            off = (here[0] - there[0]).abs()
            alike = here[0] == there[0]
            if formula.kind == "bias" or formula.id == "hidden-rows":
                # what is hidden, less what is hidden, is no number; nor is what is declared as none
                alike = alike | (here[0].isnan() & there[0].isnan())
            off = torch.where(alike, 0.0, off.nan_to_num(nan=math.inf, posinf=math.inf))
            allowed = (here[1] + there[1]).nan_to_num(nan=0.0)
            if not off.numel():
                continue
            beyond = torch.where(off <= allowed, -math.inf, off - allowed)
            if bool((off > allowed).any()):
                at = tuple(int(i) for i in torch.unravel_index(beyond.argmax(), off.shape))
                both = float(here[0][at]), float(there[0][at])
                return Apart(told, at, both[0], both[1], float(off[at]), float(allowed[at])), worst
            near = (off / allowed.clamp(min=torch.finfo(torch.float64).tiny)).flatten()
            place = int(near.argmax())
            if float(near[place]) >= worst[0]:
                worst = float(near[place]), float(off.flatten()[place]), float(
                    allowed.flatten()[place]
                )  # fmt: skip
        return None, worst


def of_side(side: Any) -> tuple[Tensor, Tensor]:
    """A side and how far it may be off, in float64."""
    if isinstance(side, Rounded):
        return side.value, side.error().expand(side.shape)
    value = side.detach().to("cpu", torch.float64)
    return value, torch.zeros_like(value)


def letters_of(formula: Formula, lengths: Mapping[str, int]) -> dict[str, int]:
    """The lengths of the letters that a formula names."""
    used = {c for told in formula.given.values() for c in told.split()[1:]}
    return {c: n for c, n in lengths.items() if c in used}


def lengths_now(formula: Formula, values: Values, lengths: Mapping[str, int]) -> dict[str, int]:
    """The lengths that given values have, beside others."""
    found = dict(lengths)
    for name, told in formula.given.items():
        letters = told.split()[1:]
        shape = getattr(values[name], "shape", ())
        found |= {c: int(n) for c, n in zip(letters, shape, strict=False)}
    return found
