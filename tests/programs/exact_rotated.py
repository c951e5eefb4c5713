"""Rotary code as it should be, for the fields, and at other positions than those given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attnproof.programs.subjects import Rotary

OMEGA = torch.tensor([1.0, 0.125])
Rotate = Callable[[Tensor, Tensor], Tensor]


def rotated(x: Tensor, p: Tensor, omega: Tensor = OMEGA) -> Tensor:
    """A rotary embedding as it should be."""
    angle = p[:, None, :, None] * omega
    u, v = x.chunk(2, -1)
    return torch.cat((u * angle.cos() - v * angle.sin(), u * angle.sin() + v * angle.cos()), -1)


def rotary(rotate: Rotate, **more: Any) -> Rotary:
    return Rotary(name="r", rotate=rotate, width=4, **more)


def at(places: Callable[[Tensor], Tensor], **more: Any) -> Rotary:
    """Vectors rotated at other positions than those given."""
    return rotary(lambda x, p: rotated(x, places(p)), **more)
