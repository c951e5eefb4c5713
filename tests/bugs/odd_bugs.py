"""Bugs of odd widths: the channel that has no partner is lost."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import pad

from attnproof.programs.declarations import DeclaredRotary
from attnproof.programs.subjects import Rotary

from .corpus import bug
from .plain_rotary import Rope, rotary

THREADS = (
    "huggingface/transformers#35219",
    "huggingface/transformers#35233",
    "huggingface/transformers#48101",
    "huggingface/transformers#48217",
    "huggingface/transformers#48524",
)


class Odd(Rope):
    """A head of 5 channels: four rotate, the last has no partner and passes."""

    def __init__(self, width: int = 5) -> None:
        super().__init__(width)

    def declared(self) -> DeclaredRotary:
        return DeclaredRotary(layout=self.layout)


class LastZeroed(Odd):
    """Writes the rotated pairs into an empty head."""

    def apply_to(self, x: Tensor, angles: Tensor) -> Tensor:
        rotated = super().apply_to(x, angles)[..., : self.rotated]
        return pad(rotated, (0, self.width - self.rotated))


@bug(
    "P61a",
    *THREADS,
    title="an odd width is accepted, the last channel zeroed",
    symptom="shape errors deep in the layer; here, a channel is lost",
    law="odd-widths",
    correct=lambda: rotary(Odd),
)
def last_channel_zeroed() -> Rotary:
    return rotary(LastZeroed)


class LastDropped(Odd):
    """Returns the rotated pairs, and nothing of the channel that has no partner."""

    def apply_to(self, x: Tensor, angles: Tensor) -> Tensor:
        return super().apply_to(x, angles)[..., : self.rotated]


@bug(
    "P61b",
    *THREADS,
    title="an odd width is accepted, the last channel dropped",
    symptom="shape errors deep in the layer; here, a channel is lost",
    law="odd-widths",
    correct=lambda: rotary(Odd),
)
def last_channel_dropped() -> Rotary:
    return rotary(LastDropped)
