"""Layers of images of one size, of a table of positions added whole, and of several grids."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.measure.examine import examine
from attnproof.programs.no_adapter import NoAdapter
from attnproof.programs.signatures.grammar import parse
from attnproof.programs.signatures.signature import SignatureError
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Attention


class Heads(nn.Module):
    """Attention of tokens (B, n, 16)."""

    def __init__(self, dim: int = 16) -> None:
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)

    def attend(self, x: Tensor) -> Tensor:
        q, k, v = (y.unflatten(-1, (2, -1)).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        out: Tensor = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1) @ v
        return out.transpose(1, 2).flatten(2)


class Image(Heads):
    """Of images of 4 by 6 places, to which a table is added."""

    def __init__(self, dim: int = 16) -> None:
        super().__init__(dim)
        self.pos_embed = nn.Parameter(torch.randn(1, dim, 4, 6))

    def forward(self, x: Tensor) -> Tensor:
        tokens = (x + self.pos_embed).flatten(2).mT
        return self.attend(tokens).mT.reshape(x.shape)


class LeaksRows(Image):
    """Wrong: what comes back depends on the other images of the batch."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + x.mean(0, keepdim=True)


class Placed(Heads):
    """Of as many tokens as its table has rows."""

    def __init__(self, dim: int = 16) -> None:
        super().__init__(dim)
        self.pos_embed = nn.Parameter(torch.randn(1, 10, dim))

    def forward(self, x: Tensor) -> Tensor:
        return self.attend(x + self.pos_embed)


class PlacedLeaks(Placed):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + x.mean(0, keepdim=True)


class Scaled(Placed):
    """Of another table of ten rows, which its name does not call one of positions."""

    def __init__(self, dim: int = 16) -> None:
        super().__init__(dim)
        self.weights = self.pos_embed
        del self.pos_embed

    def forward(self, x: Tensor) -> Tensor:
        return self.attend(x + self.weights)


class Levels(Heads):
    """Of several grids, one after another."""

    def forward(self, x: Tensor, spatial_shapes: tuple[tuple[int, int], ...]) -> Tensor:
        assert x.shape[1] == sum(h * w for h, w in spatial_shapes)
        return self.attend(x)


IMAGE = "x: B E 4 6 -> B E 4 6"
LEVELS = "x: B n E, spatial_shapes = ((1, n),) -> B n E"


def broken(code: Any, line: str = "") -> set[str]:
    return {one.law for one in examine(adapted_as(code, line)) if one.verdict == "broken"}


def test_images_of_one_size_are_called_with_their_sides() -> None:
    found = adapted_as(Image, IMAGE)
    assert "tokens fill a grid of 4 by 6" in found.adapted
    assert broken(Image, IMAGE) == set()
    assert broken(LeaksRows, IMAGE) == {"rows-of-batch-apart"}
    with pytest.raises(SignatureError, match="must match the size"):
        adapted_as(Image, "x: B E 4 5 -> B E 4 5")


def test_a_table_of_positions_gives_the_number_of_tokens() -> None:
    assert adapted_as(Placed).line == "x: B 10 E -> B 10 E"
    assert broken(Placed) == set()
    assert broken(PlacedLeaks, "x: B 10 E -> B 10 E") == {"rows-of-batch-apart"}
    with pytest.raises(NoAdapter):
        adapted_as(Scaled)


def test_tuples_of_tuples_of_lengths() -> None:
    assert adapted_as(Levels).line == LEVELS
    assert str(parse(LEVELS)) == LEVELS
    given = parse("x: B n E, s = ((h, w), (1, 2)) -> x").arguments[1]
    assert given.lengths == ("h", "w")
    assert given.at({"h": 3, "w": 4}) == ((3, 4), (1, 2))
    with pytest.raises(SignatureError, match="AssertionError"):
        adapted_as(Levels, "x: B n E, spatial_shapes = ((2, n),) -> B n E")


class NormedToZero(Image):
    """Its last norm begins with factors of 0, under which every law would hold."""

    def __init__(self, dim: int = 16) -> None:
        super().__init__(dim)
        self.norm = nn.BatchNorm2d(dim)
        nn.init.zeros_(self.norm.weight)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.norm(super().forward(x))
        return out


def test_factors_of_a_norm_that_are_zero_are_drawn() -> None:
    subject = adapted_as(NormedToZero, IMAGE, kind="attention")
    assert isinstance(subject, Attention)
    assert subject.layer is not None
    assert bool(subject.layer(torch.randn(2, 24, 16)).any())


def test_what_a_given_call_raises_is_told_with_the_call() -> None:
    def biased(scores: Tensor) -> Tensor:
        return scores + torch.zeros(3, 1, 1)

    told = "biased was called as scores: B H n n -> B H n n, and it raised RuntimeError: The size"
    with pytest.raises(SignatureError, match=told):
        adapted_as(biased, "scores: B H n n -> B H n n", kind="bias", name="biased")
