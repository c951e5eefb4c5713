"""Bugs of keys that are kept rotated: what moves them does not rotate them as they were rotated."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from attnproof.programs.subjects import Rotary

from .corpus import bug
from .plain_rotary import Rope, angles_of, ladder, rotary, turn_half

Kept = tuple[Tensor, Tensor, Tensor]


class Window:
    """Keeps the first ``sinks`` keys and the last ones, ``size`` in all, at positions 0, 1, ..

    When it is full, the oldest key after the sinks goes, and the others move one place down.
    """

    def __init__(self, rope: Rope, sinks: int = 1, size: int = 4) -> None:
        self.rope, self.sinks, self.size = rope, sinks, size

    def newest(self, count: int) -> int:
        """Where the next key is rotated when ``count`` came before it: at the end of the window."""
        return min(count, self.size - 1)

    def __call__(self, raw: Tensor) -> Kept:
        """All keys (B, H, T, D), one after the other -> those kept, their raw keys, positions."""
        kept, own = raw[:, :, :0], raw[:, :, :0]
        for count in range(raw.shape[2]):
            new = raw[:, :, count : count + 1]
            if count >= self.size:
                moved = self.at(kept[:, :, self.sinks + 1 :], -1)
                kept = torch.cat((kept[:, :, : self.sinks], moved), 2)
                own = torch.cat((own[:, :, : self.sinks], own[:, :, self.sinks + 1 :]), 2)
            kept = torch.cat((kept, self.at(new, self.newest(count))), 2)
            own = torch.cat((own, new), 2)
        return kept, own, torch.arange(kept.shape[2])

    def at(self, keys: Tensor, position: int) -> Tensor:
        """All these keys rotated by one position."""
        everywhere = torch.full((keys.shape[0], keys.shape[2]), position)
        rotated: Tensor = self.rope(keys, everywhere)
        return rotated


class NewestWhereItCame(Window):
    """The keys in the window move; the newest is rotated where it stands in the whole text."""

    def newest(self, count: int) -> int:
        return count


@bug(
    "P13",
    "huggingface/transformers#35350",
    "huggingface/transformers#33691",
    title="all kept keys are moved, but not the newest",
    symptom="garbage once the window is full",
    law="cache-keeps-its-positions",
    correct=lambda: rotary(Rope, evict=Window),
    obeys=("relative",),
)
def newest_where_it_came() -> Rotary:
    return rotary(Rope, evict=NewestWhereItCame)


def shift(rope: Rope) -> Callable[[Tensor, int], Tensor]:
    """Rotated keys rotated on by s, over the channels that rotate."""

    def on(keys: Tensor, s: int) -> Tensor:
        rotated: Tensor = rope(keys, torch.full((keys.shape[0], keys.shape[2]), s))
        return rotated

    return on


def shift_of_the_whole_head(rope: Rope) -> Callable[[Tensor, int], Tensor]:
    """The same over all channels of the head."""

    def on(keys: Tensor, s: int) -> Tensor:
        return turn_half(keys, angles_of(torch.tensor([s]), ladder(rope.width, rope.base)))

    return on


@bug(
    "P14",
    "ggml-org/llama.cpp#4889",
    title="the shift of the cache rotates the whole head, the model a part of it",
    symptom="context shift fails for one family of models",
    law="shift-of-cached-keys",
    correct=lambda: rotary(lambda: Rope(8, 4), shift=shift),
    obeys=("relative", "width-as-declared"),
)
def shift_over_the_whole_head() -> Rotary:
    return rotary(lambda: Rope(8, 4), shift=shift_of_the_whole_head)
