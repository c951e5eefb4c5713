"""Layers of images of one size or of whole blocks, of tables added whole, and of several grids."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention, unfold

from attnproof.programs.calls.tokens import OnTokens
from attnproof.programs.code import Options
from attnproof.programs.exact import exact
from attnproof.programs.loading.building import code_under_test
from attnproof.programs.measure.examine import examine
from attnproof.programs.no_adapter import NoAdapter
from attnproof.programs.signatures.grammar import parse
from attnproof.programs.signatures.signature import SignatureError
from attnproof.programs.subject import adapted_as, subject_of
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


LAW = "rows-of-batch-apart"
LINE = "x: B C (4 h) (4 w) -> B C (4 h) (4 w)"


class Windows(nn.Module):
    """Attention within windows of an image (B, C, h, w)."""

    halo = 0

    def __init__(self, dim: int = 16, window: int = 4) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.window, self.project = window, nn.Linear(dim, 2 * dim)

    def forward(self, x: Tensor) -> Tensor:
        (b, c, h, w), side = x.shape, self.window
        assert h % side == 0, "sides are multiples of the window"
        assert w % side == 0, "sides are multiples of the window"
        q, k = (self.places(part) for part in (self.blocks(x, 0), self.blocks(x, self.halo)))
        key, value = self.project(k).chunk(2, -1)
        out = scaled_dot_product_attention(self.project(q).chunk(2, -1)[0], key, value)
        out = out.view(b, h // side, w // side, side, side, c).permute(0, 5, 1, 3, 2, 4)
        return out.reshape(b, c, h, w)

    def blocks(self, x: Tensor, halo: int) -> Tensor:
        wide = self.window + 2 * halo
        found = unfold(x, wide, stride=self.window, padding=halo)
        return found.view(x.shape[0], x.shape[1], wide * wide, -1)

    def places(self, x: Tensor) -> Tensor:
        return x.permute(0, 3, 2, 1).flatten(0, 1)


class Halo(Windows):
    """Keys of the places around a window too, as in HaloNet."""

    halo = 1


class Shifted(Windows):
    """Windows that are shifted by half their side."""

    def forward(self, x: Tensor) -> Tensor:
        half = self.window // 2
        return super().forward(x.roll((-half, -half), (2, 3))).roll((half, half), (2, 3))


class ChannelsLast(Windows):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)


class MixedUp(Windows):
    """Adds to each image the mean of all in the batch."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + x.mean(0, keepdim=True)


RIGHT: dict[Any, str] = {
    Windows: LINE,
    Halo: LINE,
    Shifted: LINE,
    ChannelsLast: "x: B (4 h) (4 w) E -> B (4 h) (4 w) E",
}


@pytest.mark.parametrize("code", RIGHT)
def test_images_of_whole_blocks_are_called(code: Any) -> None:
    subject = adapted_as(code)
    assert subject.line == RIGHT[code]
    assert "n tokens are repeated until they are (16 n)" in subject.conditions
    assert [one.verdict for one in examine(subject, laws=[LAW])] == ["holds"]
    assert [one.verdict for one in exact(subject, [LAW])] == ["holds"]


def test_images_that_are_mixed_up_break_the_law() -> None:
    (found,) = examine(subject_of(MixedUp, LINE, "layer"), laws=[LAW])
    assert found.verdict == "broken"


def test_each_place_of_an_image_is_a_token() -> None:
    code = code_under_test(Windows, "", Options())
    on = OnTokens(code, parse(LINE))
    x = torch.randn(2, 32, 16)
    image = x.view(2, 4, 8, 16).permute(0, 3, 1, 2)
    assert torch.equal(on(x), code.call(image).permute(0, 2, 3, 1).flatten(1, 2))


@pytest.mark.parametrize("line", [LINE.replace("4", "3"), LINE.replace("(4 h)", "(2 h)")])
def test_sides_of_other_multiples_are_refused(line: str) -> None:
    with pytest.raises(SignatureError, match="multiples of the window"):
        subject_of(Windows, line, "layer")
