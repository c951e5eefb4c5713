"""The setting in which attention code is looked at: in evaluation, in one format, then as before.

A law is looked at in float64 first, where rounding hides nothing, and then in the format of the
draw.  Whatever a look changed about the module is put back: formats, attributes, buffers, modes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from ..applicable_laws import declared_of
from ..arranging import arranged
from ..declarations import DeclaredAttention
from ..draw import Draw
from ..response import Allowed, Unsteady, allowance
from ..subjects import Attention, Layer, Subject
from .base import Look, Outcome, undecided

LOW = (torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class Scene:
    """Code, a draw in the format of this look, and the unit of the tables that the code keeps."""

    subject: Any  # Attention or Layer: each look asks for what its own kind has
    draw: Draw
    floor: float = 0.0

    @property
    def declared(self) -> DeclaredAttention:
        """What is declared, or was read; nothing, where neither is."""
        return declared_of(self.subject)

    @property
    def tokens(self) -> Callable[[Tensor], Tensor] | None:
        """The map of tokens (B, T, E) -> (B, T, E), where there is one."""
        one: Attention | Layer = self.subject
        return one.call if isinstance(one, Layer) else one.layer

    @property
    def low(self) -> bool:
        """Whether the format of this look rounds small influences away."""
        return self.draw.dtype in LOW

    def given(self, rows: int, tokens: int, salt: int = 0) -> tuple[Tensor, Tensor, Tensor]:
        """Normal queries, keys and values of the heads that the code has, or is said to have."""
        one: Attention = self.subject
        groups, width = self.declared.groups or one.groups, one.width or 5
        q, k, v = (
            self.draw.normal(rows, h, tokens, width, salt=salt + n)
            for n, h in enumerate((one.heads, groups, groups), 1)
        )
        return q, k, v

    def allow(self, call: Callable[..., Tensor], *inputs: Tensor) -> Allowed:
        """The result of a call, and what rounding allows there."""
        return allowance(call, *inputs, draw=self.draw, floor=self.floor)


def in_formats(look: Callable[[Scene], Outcome]) -> Look:
    """A look in float64, where the code takes it, and in the format of the draw."""

    @wraps(look)
    def looked(subject: Any, draw: Draw) -> Outcome:
        seen: list[Outcome] = []
        for dtype in dict.fromkeys((torch.float64, draw.dtype)):
            try:
                with arranged(subject, dtype) as floor:
                    one = look(Scene(subject, draw.cast(dtype), floor))
            except Unsteady as error:
                return undecided(str(error))
            except Exception:
                if dtype is draw.dtype:
                    raise
                continue  # code that takes one format only is looked at in that one
            if one.witness is not None or one.skipped:
                return one
            seen.append(one)
        # what the finest format decides stays decided where a coarser one hides it
        if seen[0].doubtful:
            return seen[0]
        return next(one for one in reversed(seen) if not one.doubtful)

    return looked


CAST = Attention | Layer  # code whose weights take the dtype of its tokens; tables keep their own


def formatted(look: Look) -> Look:
    """A look at attention and layers in float64 first, and then in the format of the draw."""

    @wraps(look)
    def looked(subject: Subject, draw: Draw) -> Outcome:
        if not isinstance(subject, CAST):
            return look(subject, draw)
        return in_formats(lambda scene: _told(look(scene.subject, scene.draw), scene))(
            subject, draw
        )

    return looked


def _told(seen: Outcome, scene: Scene) -> Outcome:
    """A witness that says in which format it was found."""
    if seen.witness is None:
        return seen
    witness = replace(seen.witness, inputs={**seen.witness.inputs, "format": scene.draw.format})
    return replace(seen, witness=witness)
