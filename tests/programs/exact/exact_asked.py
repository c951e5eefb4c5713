"""What finite fields say of a subject, the laws that right code obeys in them, and rotary code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attnproof.programs.exact import exact
from attnproof.programs.finding import Finding
from attnproof.programs.subjects import Rotary, Subject


def of(subject: Subject, *laws: str) -> dict[str, Finding]:
    return {f.law: f for f in exact(subject, laws)}


def verdict(subject: Subject, law: str) -> str:
    return of(subject, law)[law].verdict


def not_right(subject: Subject) -> dict[str, str]:
    """The laws that do not hold, of those that were asked."""
    return {k: f.verdict for k, f in of(subject).items() if f.verdict not in ("holds", "not asked")}


OF_ROTARY = (
    "relative",
    "norm",
    "composition",
    "linear",
    "identity-at-zero",
    "every-head-alike",
    "follows-its-ids",
    "rows-of-batch-apart",
)
ATTENTION = (
    "order-of-keys",
    "rows-sum-to-one",
    "shift-of-scores",
    "groups-of-heads",
    "heads-apart",
    "rows-of-batch-apart",
    "hidden-keys-do-nothing",
    "permutation",
)


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
