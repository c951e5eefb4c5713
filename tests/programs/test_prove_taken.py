"""Tables that code computes, or keeps in views, read at ids: what is proved, and what is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.prove import Traced, prove
from attnproof.programs.subject import adapted_as

LENGTH, WIDTH = 64, 8
W = 10000.0 ** (-torch.arange(0, WIDTH, 2) / WIDTH)
LINE = "x: B H n D, ids: B n positions -> x"
LAWS = ("relative", "norm", "follows-its-ids", "rows-of-batch-apart")
Angles = Callable[[Tensor], Tensor]


def half(x: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


def computed(angles: Angles, length: int = LENGTH) -> Callable[[Tensor, Tensor], Tensor]:
    """A rotation by the rows of a table that is computed in each call."""

    def rotate(x: Tensor, ids: Tensor) -> Tensor:
        angle = angles(torch.arange(length).float())
        cos, sin = (table[ids][:, None] for table in (angle.cos(), angle.sin()))
        return x * cos + half(x) * sin

    return rotate


def doubled(t: Tensor) -> Tensor:
    angle = torch.outer(t, W)
    return torch.cat((angle, angle), -1)


def multiplied(t: Tensor) -> Tensor:
    return (W.repeat(2)[:, None] @ t[None]).T


def batched(t: Tensor) -> Tensor:
    return (t[None, :, None] * W.repeat(2)).squeeze(0)


def summed(t: Tensor) -> Tensor:
    return (t[:, None, None] * W.repeat(2)[:, None] * torch.tensor([0.25, 0.75])).sum(-1)


def every_second(t: Tensor) -> Tensor:
    return torch.cat((t, t + LENGTH))[:, None][::2] * W.repeat(2)


def stacked(t: Tensor) -> Tensor:
    return torch.stack((doubled(t), 2 * doubled(t)), 0)[1]


class Kept(nn.Module):
    """Tables with axes of length 1, kept and squeezed, as old models of transformers have them."""

    cos: Tensor
    sin: Tensor

    def __init__(self) -> None:
        super().__init__()
        angle = doubled(torch.arange(LENGTH).float())
        self.register_buffer("cos", angle.cos()[None, None])
        self.register_buffer("sin", angle.sin()[None, None])

    def forward(self, x: Tensor, ids: Tensor) -> Tensor:
        cos, sin = (table.squeeze(1).squeeze(0) for table in (self.cos, self.sin))
        return x * cos[ids].unsqueeze(1) + half(x) * sin[ids].unsqueeze(1)


def asked(
    code: Callable[[Tensor, Tensor], Tensor],
    laws: tuple[str, ...] = LAWS,
    seconds: float = 6.0,
) -> Traced:
    return prove(adapted_as(code, LINE, name="code"), laws, seconds=seconds)


RIGHT: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "angles twice": computed(doubled),
    "a product of matrices": computed(multiplied),
    "an axis in front": computed(batched),
    "a sum of two": computed(summed),
    "one of two": computed(stacked),
    "kept and squeezed": Kept(),
}


@pytest.mark.parametrize("name", RIGHT)
def test_rows_at_ids_are_the_formula_at_ids(name: str) -> None:
    found = asked(RIGHT[name])
    assert {f.law: f.verdict for f in found.findings} == dict.fromkeys(LAWS, "holds"), found.why
    for one in found.findings:
        told = [c.text for c in one.assuming]
        assert any(text.startswith("indices stay in 0, .., 63") for text in told), told


WRONG: dict[str, Angles] = {
    "positions start again": lambda t: doubled(t % 16),
    "positions end": lambda t: doubled(t.clamp(max=20)),
    "squares": lambda t: doubled(t * t / LENGTH),
    "integers of half": lambda t: doubled(t // 2),
    "another base behind": lambda t: torch.where(t[:, None] < 9, 1.0, 0.5) * doubled(t),
    "a step between rows": lambda t: doubled(t + (t >= 5)),
    "relative to their mean, squared": lambda t: doubled(t) * (doubled(t) - doubled(t).mean(0)),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_depends_on_more_than_the_offset_is_not_proved(name: str) -> None:
    code = computed(WRONG[name])
    x = torch.randn(1, 1, 2, WIDTH, generator=torch.Generator().manual_seed(0)).double()
    scores = [
        code(x[:, :, :1], torch.tensor([[p]])) @ code(x[:, :, 1:], torch.tensor([[p + 3]])).mT
        for p in (1, 3, 14, 19, 30)
    ]
    assert max((one - scores[0]).abs().max() for one in scores) > 1e-3  # torch says it is false
    # What is true is proved in far less.
    found = {f.law: f.verdict for f in asked(code, ("relative",), seconds=2.0).findings}
    assert found.get("relative") != "holds", found


UNREAD: dict[str, Angles] = {
    "one behind the other": lambda t: torch.cat((doubled(t[:9]), doubled(t[9:]))),
    "moved round": lambda t: doubled(t).roll(3, 0),
}


@pytest.mark.parametrize("name", UNREAD)
def test_what_does_not_act_row_by_row_is_told(name: str) -> None:
    found = asked(computed(UNREAD[name]))
    assert not found.findings
    assert "is not read" in found.why
