"""What constructors are given where nobody says, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from pydantic import BaseModel
from torch import Tensor, nn

from attnproof.programs.no_adapter import NoAdapter
from attnproof.programs.prove.source_numbers import numbers_in
from attnproof.programs.subject import adapted_as


class Stack(nn.Module):
    """As vision transformers are written: how deep, and how wide between, has no default."""

    def __init__(self, dim: int, depth: int, heads: int, mlp_dim: int, dropout: float) -> None:
        super().__init__()
        self.depth, self.between, self.dropout = depth, mlp_dim, dropout
        self.parts = nn.ModuleList(
            nn.MultiheadAttention(dim, heads, batch_first=True) for _ in range(depth)
        )
        self.wider, self.back = nn.Linear(dim, mlp_dim), nn.Linear(mlp_dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        for attention in self.parts:
            x = x + attention(x, x, x)[0]
        found: Tensor = x + self.back(self.wider(x).relu())
        return found


class Wide(nn.Module):
    """Heads of a default width that a narrow token does not hold."""

    def __init__(self, dim: int, dim_head: int = 32) -> None:
        super().__init__()
        if dim % dim_head:
            raise ValueError("dimension should be divisible by dimension per head")
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        found: Tensor = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v
        return found


class Windowed(nn.Module):
    """Sides as a list, and a number of which its name says nothing."""

    def __init__(self, input_size: int, window_size: list[int], rotates: int) -> None:
        super().__init__()
        if window_size[0] != window_size[1] or rotates != 8:
            raise ValueError("wanted eight rotates")
        self.attention = nn.MultiheadAttention(input_size, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.attention(x, x, x)[0]
        return found


class Coloured(nn.Module):
    def __init__(self, colour) -> None:  # type: ignore[no-untyped-def]
        super().__init__()
        self.colour = colour + "ed"

    def forward(self, x: Tensor) -> Tensor:
        return x


class Scaling(BaseModel):
    factors: list[float]


class Checked(BaseModel):
    """A config of which another library refuses what does not fit, in no line of this file."""

    hidden_size: int
    num_heads: int
    scaling: Scaling


class OfChecked(nn.Module):
    """Attention of such a config."""

    def __init__(self, config: Checked) -> None:
        super().__init__()
        self.scale = config.scaling.factors[0]
        self.attention = nn.MultiheadAttention(
            config.hidden_size, config.num_heads, batch_first=True
        )

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.scale * self.attention(x, x, x)[0]
        return found


@dataclass
class NotSmall:
    """A config that refuses the small sizes that are chosen for it."""

    hidden_size: int = 96
    num_heads: int = 6

    def __post_init__(self) -> None:
        if self.hidden_size < 96:
            raise ValueError("wanted 96 features or more")


class OfNotSmall(nn.Module):
    def __init__(self, config: NotSmall) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(
            config.hidden_size, config.num_heads, batch_first=True
        )

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.attention(x, x, x)[0]
        return found


class Divided(nn.MultiheadAttention):
    """What torch refuses in a constructor that this class has not of its own."""


@pytest.mark.parametrize("thing", [Stack, Wide, Windowed, OfNotSmall])
def test_a_class_is_built_by_names_types_and_what_it_takes(thing: type[nn.Module]) -> None:
    assert adapted_as(thing, "").kind == "attention"


def test_what_was_guessed_is_told_and_what_is_told_is_kept() -> None:
    found = adapted_as(Stack, "x: B n E -> B n E", kind="attention")
    assert "built as with --set depth=2 mlp_dim=32" in found.adapted
    told = adapted_as(Stack, "x: B n E -> B n E", kind="attention", settings={"depth": 3})
    assert told.module is not None
    assert told.module.depth == 3
    assert "built as with --set mlp_dim=32" in told.adapted
    with pytest.raises(NoAdapter, match="wanted eight rotates"):
        adapted_as(Windowed, "", settings={"rotates": 3})


def test_a_parameter_that_says_nothing_is_refused_by_name() -> None:
    with pytest.raises(NoAdapter, match="'colour', and its name does not say what that is"):
        adapted_as(Coloured, "")


@pytest.mark.parametrize("line", ["", "x: B n E -> B n E"])
def test_what_another_library_raises_of_a_config_is_a_refusal(line: str) -> None:
    told = r"Checked raised ValidationError.*scaling.*--set config.PART=VALUE"
    with pytest.raises(NoAdapter, match=told):
        adapted_as(OfChecked, line, kind="attention")
    whole = {"config.scaling.factors": [2.0]}
    assert adapted_as(OfChecked, line, kind="attention", settings=whole).kind == "attention"
    with pytest.raises(NoAdapter, match=r"Divided raised AssertionError: .*divisible"):
        adapted_as(Divided, line, kind="attention", settings={"num_heads": 3})


def test_numbers_of_code_are_read_past_what_cannot_be_read() -> None:
    assert 41 in numbers_in([BaseModel, Checked, {"rows": 41}])
