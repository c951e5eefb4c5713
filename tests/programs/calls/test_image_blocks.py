"""Images whose sides are multiples of a block: windows, shifted ones, and blocks with a halo."""

from __future__ import annotations

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
from attnproof.programs.signatures.grammar import parse
from attnproof.programs.signatures.signature import SignatureError
from attnproof.programs.subject import adapted_as, subject_of

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
