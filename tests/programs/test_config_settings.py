"""Settings of a config: told by their own names or behind its name; a config class without them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.code import NoSetting
from attnproof.programs.no_adapter import NoAdapter
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Attention
from attnproof.real_code.request import settings_of


class GPTConfig:
    """It has what it is given, and nothing else."""

    def __init__(self, block_size: int, **more: Any) -> None:
        self.block_size = block_size
        vars(self).update(more)


class CausalSelfAttention(nn.Module):
    def __init__(self, config) -> None:  # type: ignore[no-untyped-def]
        super().__init__()
        self.n_head, self.block_size = config.n_head, config.block_size
        self.parts = nn.Linear(config.n_embd, 3 * config.n_embd)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            part.unflatten(-1, (self.n_head, -1)).transpose(1, 2)
            for part in self.parts(x).chunk(3, -1)
        )
        late = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
        weights = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(late, -torch.inf).softmax(-1)
        out: Tensor = (weights @ v).transpose(1, 2).flatten(2)
        return out


def test_a_config_that_lacks_what_is_read_of_it_is_made_of_what_is_read() -> None:
    subject = adapted_as(CausalSelfAttention)
    assert isinstance(subject, Attention)
    assert "config.n_embd=16" in subject.adapted


@pytest.mark.parametrize(
    "words",
    [
        ["n_embd=32", "n_head=2", "block_size=64"],
        ["config.n_embd=32", "config.n_head=2", "config.block_size=64"],
    ],
)
def test_settings_of_a_config_are_told_by_their_names(words: list[str]) -> None:
    subject = adapted_as(CausalSelfAttention, "x: B n E -> B n E", settings=settings_of(words))
    assert isinstance(subject, Attention)
    assert (subject.embed, subject.heads) == (32, 2)
    assert subject.module is not None
    assert subject.module.block_size == 64


def test_what_is_no_name_is_no_setting() -> None:
    with pytest.raises(ValueError, match="wanted a setting NAME=VALUE"):
        settings_of(["config.=3"])
    with pytest.raises(NoSetting, match="is built with"):
        adapted_as(nn.MultiheadAttention, settings={"wide.head": 3})


def test_a_size_that_heads_share_is_that_of_tokens() -> None:
    class MultiHeadedAttention(CausalSelfAttention):
        def __init__(self, num_heads: int, size: int) -> None:
            super().__init__(GPTConfig(8, n_head=num_heads, n_embd=size))

    subject = adapted_as(MultiHeadedAttention)
    assert isinstance(subject, Attention)
    assert subject.embed == 16


class NestedAttention(CausalSelfAttention):
    """The same of a config that has parts, which are read in three ways."""

    def __init__(self, config) -> None:  # type: ignore[no-untyped-def]
        attention = config.attention
        size, kept = config.model.embed_dim, config["cache"]["block_size"]
        super().__init__(GPTConfig(kept, n_head=attention.num_heads, n_embd=size))
        self.scaled = config.scaled


def test_a_config_has_parts_where_what_is_read_of_it_is_read_in_turn() -> None:
    subject = adapted_as(NestedAttention)
    assert isinstance(subject, Attention)
    for told in ("config.attention.num_heads=2", "config.model.embed_dim=16"):
        assert told in subject.adapted
    module: Any = subject.module
    assert module.scaled is False  # and is no part


@pytest.mark.parametrize("ahead", ["", "config."])
def test_a_part_of_a_part_is_told_by_its_path(ahead: str) -> None:
    words = [f"{ahead}attention.num_heads=4", f"{ahead}model.embed_dim=32"]
    subject = adapted_as(NestedAttention, settings=settings_of(words))
    assert isinstance(subject, Attention)
    assert (subject.embed, subject.heads) == (32, 4)
    assert "num_heads=" not in subject.adapted
    with pytest.raises(NoAdapter):
        adapted_as(NestedAttention, settings=settings_of([f"{ahead}attention=4"]))
