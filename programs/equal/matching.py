"""Where two programs part: the first step of each that no step of the other does.

Both are run on the same numbers, each call of torch that they make is kept, and is looked for among
those of the other: two steps are the same if their numbers are, in whatever order and shape.  What
only moves entries of an input, or of a weight, is a step of both.  The first that is not found is
where a program begins to do otherwise; one that makes an array of numbers that are written down is
named only where there is no other, as what is done with it says more.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from linecache import getline
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from ..response import leaves
from .inputs import drawn
from .pair import Two

NEAR = 1e-4  # of the largest number: what two orders of summation leave in float32
TORCH, OURS = (str(Path(f).parent) for f in (torch.__file__, __file__))
LONGEST = 80
MADE = re.compile(
    r"(new_)?(arange|empty|eye|full|linspace|ones|zeros|scalar_tensor|tensor|as_tensor)(_like)?"
)


@dataclass(frozen=True)
class Step:
    """A step of a program: the operation, where it is written, and the line itself."""

    operation: str
    place: str
    text: str

    def __str__(self) -> str:
        at = f" at {self.place}" if self.place else ""
        return f"{self.operation}{at}{f': {self.text}' if self.text else ''}"


@dataclass(frozen=True)
class Parted:
    """The first step of each program that the other does not do; None where it does all."""

    first: Step | None
    second: Step | None


@dataclass(frozen=True)
class _Made:
    """A call: where it stands, None where a program does not make it, and its sorted numbers."""

    step: Step | None
    numbers: Tensor


class _Watching(TorchFunctionMode):
    """Keeps what each call of torch gives."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[_Made] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if isinstance(found, torch.Size | int | bool):
            return found
        frame = _outside(sys._getframe(1))  # noqa: SLF001 (who calls is not told otherwise)
        step = None if frame is None else self._step(func, frame)
        with torch._C.DisableTorchFunction():  # noqa: SLF001 (what is looked at here is no step)
            self.made += [_Made(step, _sorted(x)) for x in leaves(found) if isinstance(x, Tensor)]
        return found

    @staticmethod
    def _step(func: Any, frame: FrameType) -> Step:
        name = getattr(func, "__name__", str(func))
        if name == "__get__":  # of a property, such as .mT
            name = getattr(getattr(func, "__self__", None), "__name__", name)
        file, line = frame.f_code.co_filename, frame.f_lineno
        text = " ".join(getline(file, line).split())
        return Step(
            name.strip("_"),
            f"{Path(file).name}:{line}",
            text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}...",
        )


def _outside(frame: FrameType | None) -> FrameType | None:
    """The innermost frame that is not of torch; None where that is one of ours."""
    while frame is not None and frame.f_code.co_filename.startswith(TORCH):
        frame = frame.f_back
    return None if frame is None or frame.f_code.co_filename.startswith(OURS) else frame


def _sorted(x: Tensor) -> Tensor:
    whole = torch.view_as_real(x) if x.is_complex() else x
    numbers = whole.detach().double().nan_to_num(nan=0.5, neginf=-1e30, posinf=1e30).flatten()
    found: Tensor = torch.unique(numbers)
    return found


def parted(both: Two) -> Parted | None:
    """Where the two programs begin to do otherwise; None where that cannot be seen."""
    made = []
    values = drawn(both.given, both.lengths, 0)
    state = [x for module in both.modules for x in (*module.parameters(), *module.buffers())]
    given = [_Made(None, _sorted(x)) for x in (*values, *state)]
    for side in ("first", "second"):
        watching = _Watching()
        try:
            with torch.no_grad(), watching:
                both.results(side, values)
        except Exception:  # noqa: BLE001 (the code may raise anything)
            return None
        made.append(watching.made)
    one, other = made
    found = Parted(_alone(one, [*given, *other]), _alone(other, [*given, *one]))
    return None if found.first is None and found.second is None else found


def _alone(steps: Sequence[_Made], others: Sequence[_Made]) -> Step | None:
    """The first step that is not among the others."""
    strange = [
        step.step
        for step in steps
        if step.step is not None
        if not any(_same(step.numbers, other.numbers) for other in others)
    ]
    done = (step for step in strange if not MADE.fullmatch(step.operation))
    return next(done, strange[0] if strange else None)


def _same(a: Tensor, b: Tensor) -> bool:
    if a.shape != b.shape or not a.numel():
        return a.shape == b.shape
    size = float(torch.maximum(a.abs().max(), b.abs().max()))
    return float((a - b).abs().max()) <= NEAR * max(size, 1e-30)
