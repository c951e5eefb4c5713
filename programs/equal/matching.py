"""Locate where two programs diverge: the first step of each that the other does not perform.

Both are run on the same numbers, and the result of each call of torch is recorded and searched for
among those of the other program: two steps match if they have the same numbers, in any order and
shape.  A step that only moves entries of an input or a weight always matches.  The first step
without a match is where a program begins to differ; a step that creates an array of constants is
named only if there is no other, since its use says more.
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

from ..execution.response import leaves
from .inputs import drawn
from .pair import ProgramPair

RELATIVE_TOLERANCE = 1e-4  # relative to the largest number: float32 sums in different orders
TORCH, PACKAGE = (str(Path(f).parent) for f in (torch.__file__, __file__))
MAX_LINE_LENGTH = 80
CREATES_CONSTANTS = re.compile(
    r"(new_)?(arange|empty|eye|full|linspace|ones|zeros|scalar_tensor|tensor|as_tensor)(_like)?"
)


@dataclass(frozen=True)
class Step:
    """A step of a program: the operation, its place in the source, and the source line."""

    operation: str
    place: str
    text: str

    def __str__(self) -> str:
        at = f" at {self.place}" if self.place else ""
        return f"{self.operation}{at}{f': {self.text}' if self.text else ''}"


@dataclass(frozen=True)
class Divergence:
    """The first step of each program that the other does not perform, or None."""

    first: Step | None
    second: Step | None


@dataclass(frozen=True)
class _Call:
    """A call: its step, None for inputs and weights, and its sorted numbers."""

    step: Step | None
    numbers: Tensor


class _CallRecorder(TorchFunctionMode):
    """Record the results of all calls of torch."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[_Call] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if isinstance(found, torch.Size | int | bool):
            return found
        frame = _outside(sys._getframe(1))  # noqa: SLF001 (the only way to find the caller)
        step = None if frame is None else self._step(func, frame)
        with torch._C.DisableTorchFunction():  # noqa: SLF001 (what is done here is not a step)
            self.calls += [_Call(step, _sorted(x)) for x in leaves(found) if isinstance(x, Tensor)]
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
            text if len(text) <= MAX_LINE_LENGTH else f"{text[: MAX_LINE_LENGTH - 3]}...",
        )


def _outside(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame outside torch; None if that is a frame of this package."""
    while frame is not None and frame.f_code.co_filename.startswith(TORCH):
        frame = frame.f_back
    return None if frame is None or frame.f_code.co_filename.startswith(PACKAGE) else frame


def _sorted(x: Tensor) -> Tensor:
    whole = torch.view_as_real(x) if x.is_complex() else x
    numbers = whole.detach().double().nan_to_num(nan=0.5, neginf=-1e30, posinf=1e30).flatten()
    found: Tensor = torch.unique(numbers)
    return found


def divergence(both: ProgramPair) -> Divergence | None:
    """Return where two programs diverge; None if that cannot be determined."""
    made = []
    values = drawn(both.inputs, both.lengths, 0)
    state = [x for module in both.modules for x in (*module.parameters(), *module.buffers())]
    given = [_Call(None, _sorted(x)) for x in (*values, *state)]
    for side in ("first", "second"):
        recorder = _CallRecorder()
        try:
            with torch.no_grad(), recorder:
                both.results(side, values)
        except Exception:  # noqa: BLE001 (the code may raise anything)
            return None
        made.append(recorder.calls)
    one, other = made
    found = Divergence(
        _first_unmatched(one, [*given, *other]), _first_unmatched(other, [*given, *one])
    )
    return None if found.first is None and found.second is None else found


def _first_unmatched(steps: Sequence[_Call], others: Sequence[_Call]) -> Step | None:
    """Return the first step without a match, preferring steps that do not create constants."""
    strange = [
        step.step
        for step in steps
        if step.step is not None
        if not any(_equal_numbers(step.numbers, other.numbers) for other in others)
    ]
    done = (step for step in strange if not CREATES_CONSTANTS.fullmatch(step.operation))
    return next(done, strange[0] if strange else None)


def _equal_numbers(a: Tensor, b: Tensor) -> bool:
    if a.shape != b.shape or not a.numel():
        return a.shape == b.shape
    size = float(torch.maximum(a.abs().max(), b.abs().max()))
    return float((a - b).abs().max()) <= RELATIVE_TOLERANCE * max(size, 1e-30)
