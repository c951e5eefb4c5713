"""Layers that return keys and values for a next step: pieces give what all at once give."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from attnproof.programs.exact import exact
from attnproof.programs.measure.examine import examine
from attnproof.programs.prove.proving import prove
from attnproof.programs.signatures.grammar import parse
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Layer
from attnproof.theorems.laws.states import in_pieces

Past = tuple[Tensor, Tensor]


class Reads(nn.Module):
    """Causal reading of two heads, with what came before in front."""

    def __init__(self, dim: int = 16) -> None:
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)

    def before(self, past: Past) -> Past:
        """What is kept of what came before."""
        return past

    def forward(self, x: Tensor, past_kv: Past | None = None) -> tuple[Tensor, Past]:
        q, k, v = self.qkv(x).view(*x.shape[:2], 3, 2, -1).permute(2, 0, 3, 1, 4)
        if past_kv is not None:
            keys, values = self.before(past_kv)
            k, v = torch.cat((keys, k), 2), torch.cat((values, v), 2)
        seen = torch.ones(q.shape[2], k.shape[2]).tril(k.shape[2] - q.shape[2]).bool()
        out = scaled_dot_product_attention(q, k, v, seen)
        return out.transpose(1, 2).flatten(2), (k, v)


class Block(nn.Module):
    """A residual layer."""

    def __init__(self, dim: int = 16, part: type[Reads] = Reads) -> None:
        super().__init__()
        self.norm, self.part, self.mlp = nn.LayerNorm(dim), part(dim), nn.Linear(dim, dim)

    def forward(self, x: Tensor, past_kv: Past | None = None) -> tuple[Tensor, Past]:
        out, kept = self.part(self.norm(x), past_kv)
        return x + self.mlp(x + out).relu(), kept


class Asked(Block):
    """It returns what is kept where it is asked to."""

    def forward(  # type: ignore[override]
        self, x: Tensor, past_kv: Past | None = None, use_cache: bool = False
    ) -> Tensor | tuple[Tensor, Past]:
        out, kept = super().forward(x, past_kv)
        return (out, kept) if use_cache else out


class Apart(Block):
    """Keys and values that were kept are given apart, and returned apart."""

    def forward(  # type: ignore[override]
        self, x: Tensor, past_k: Tensor | None = None, past_v: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        past = None if past_k is None or past_v is None else (past_k, past_v)
        out, (k, v) = super().forward(x, past)
        return out, k, v


LINES = {
    Block: "x: B n E -> B n E, _; step: x: B n E, past_kv -> B n E, past_kv",
    Asked: "x: B n E -> B n E; step: x: B n E, use_cache = True, past_kv -> B n E, past_kv",
    Apart: "x: B n E -> B n E, _, _; step: x: B n E, past_k, past_v -> B n E, past_k, past_v",
}


@pytest.mark.parametrize("code", LINES)
def test_a_layer_is_fed_in_pieces_by_its_bare_name(code: Any) -> None:
    found = adapted_as(code, kind="layer")
    assert isinstance(found, Layer)
    assert found.line == LINES[code] == str(parse(LINES[code]))
    assert [one.verdict for one in examine(found, laws=["step-by-step"])] == ["holds"]
    told = adapted_as(code, LINES[code], kind="layer")
    assert [one.verdict for one in examine(told, laws=["step-by-step"])] == ["holds"]


@pytest.mark.parametrize(("many", "single"), [(6, 6), (64, 64), (515, 64)])
def test_of_many_tokens_the_first_and_the_last_are_fed_one_by_one(many: int, single: int) -> None:
    fed: list[int] = []

    def step(x: Tensor, state: int | None) -> tuple[Tensor, int]:
        fed.append(x.shape[1])
        return x, (state or 0) + x.shape[1]

    pieces, whole = in_pieces(
        SimpleNamespace(step=step, at_once=lambda x: x), torch.rand(1, many, 2)
    )
    assert all(map(torch.equal, pieces, whole))
    ways = list(split_at(fed, many))
    assert max(way.count(1) for way in ways) >= single
    assert len(fed) < single + 100
    one_by_one = max(ways, key=len)
    half = single // 2
    assert one_by_one[:half] == one_by_one[-half:] == [1] * half


def split_at(lengths: list[int], many: int) -> Iterator[list[int]]:
    """The pieces of each way, which are together so many tokens."""
    way: list[int] = []
    for length in lengths:
        way.append(length)
        if sum(way) == many:
            yield way
            way = []


class DropsOne(Reads):
    """The first key is left out where something came before."""

    def before(self, past: Past) -> Past:
        return past[0][:, :, 1:], past[1][:, :, 1:]


class TurnsRound(Reads):
    """Values that were kept come in another order than their keys."""

    def before(self, past: Past) -> Past:
        return past[0], past[1].flip(2)


class Forgets(Reads):
    """Only the last key is kept."""

    def before(self, past: Past) -> Past:
        return past[0][:, :, -1:], past[1][:, :, -1:]


@pytest.mark.parametrize("part", [DropsOne, TurnsRound, Forgets])
def test_a_cache_that_is_off_is_told_and_never_proved(part: type[Reads]) -> None:
    subject = adapted_as(lambda: Block(part=part), LINES[Block], kind="layer")
    (found,) = examine(subject, laws=["step-by-step"])
    assert found.verdict == "broken"
    assert found.witness is not None
    assert found.witness.difference > found.witness.allowed
    assert [one.verdict for one in exact(subject, ["step-by-step"])] != ["holds"]
    assert not {one.verdict for one in prove(subject, ["step-by-step"]).findings} & {"holds"}


class Both(Reads):
    """Every token reads all: in pieces it cannot."""

    def forward(self, x: Tensor, past_kv: Past | None = None) -> tuple[Tensor, Past]:
        out, kept = super().forward(x, past_kv)
        return out + x.mean(1, keepdim=True), kept


def test_a_layer_without_a_cache_and_one_that_sees_ahead_are_not_asked() -> None:
    ahead = adapted_as(Both, LINES[Block], kind="layer")
    (found,) = examine(ahead, laws=["step-by-step"])
    assert (found.verdict, found.why) == (
        "not asked",
        "its tokens see later ones, which they cannot if fed in pieces",
    )
    plain = adapted_as(Block, "x: B n E -> B n E, _", kind="layer")
    (found,) = examine(plain, laws=["step-by-step"])
    assert found.verdict == "not asked"
    assert found.why == "it is not known how the code is called with further tokens"
