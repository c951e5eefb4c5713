"""What is said of positions is not more than was seen."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from attnproof.programs.identify import identify
from attnproof.programs.subject import adapted_as


def half_turns(x: Tensor, pos: Tensor) -> Tensor:
    """Neighbours rotated by π and π/2 times a coordinate: the same at whole ones four apart."""
    rates = math.pi * torch.tensor([1.0, 0.5])
    angles = (pos[..., None] * rates).flatten(-2).repeat_interleave(2, -1)
    a, b = x.reshape(*x.shape[:-1], -1, 2).unbind(-1)
    return x * angles.cos() + torch.stack((-b, a), -1).flatten(-2) * angles.sin()


def test_whole_turns_between_whole_coordinates_are_not_taken_for_none() -> None:
    subject = adapted_as(half_turns, "x: B H n D, pos: n 2 coordinates -> x")
    assert "does not look at positions" not in str(identify(subject))


class LooksAhead(nn.Module):
    """Attention to later tokens alone, by their offset: the last one reads itself."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        i = torch.arange(x.shape[1])
        away = (i[None] - i[:, None]).float()
        scores = q @ k.mT / 4 + away.clamp(min=0).sqrt()
        weights = scores.masked_fill(away < 0, -math.inf).softmax(-1)
        mixed: Tensor = weights @ v
        return mixed


def test_an_output_that_reads_no_other_token_says_nothing_of_their_order() -> None:
    torch.manual_seed(0)
    told = str(identify(adapted_as(LooksAhead(), "x: B n E -> B n E", kind="attention")))
    assert "without positions" not in told
