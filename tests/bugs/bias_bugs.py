"""Bugs of what is added to scores: slopes, buckets, and the index into a window."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attnproof.programs.subjects import Attention, Bias

from .attention_code import EMBED, HEADS, layered
from .bias_code import (
    Alibi,
    AlibiLayer,
    Buckets,
    alibi,
    bucketed,
    geometric,
    window_index,
    windowed,
)
from .corpus import bug


class OneSeries(Alibi):
    """One geometric series for every number of heads, also where it is not a power of two."""

    def slopes(self) -> list[float]:
        return geometric(self.heads)


ONE_SERIES = ("ml-explore/mlx#3071", "ml-explore/mlx#343", "huggingface/transformers#28380")


@bug(
    "P52a",
    *ONE_SERIES,
    title="one geometric series of slopes, 6 heads",
    symptom="wrong bias wherever the heads are no power of two",
    law="slopes-as-declared",
    correct=lambda: alibi(6),
    obeys=("offset-only", "last-rows"),
)
def one_series_of_6() -> Bias:
    return alibi(6, OneSeries)


@bug(
    "P52b",
    *ONE_SERIES,
    title="one geometric series of slopes, 12 heads",
    symptom="wrong bias wherever the heads are no power of two",
    law="slopes-as-declared",
    correct=lambda: alibi(12),
    obeys=("offset-only", "last-rows"),
)
def one_series_of_12() -> Bias:
    return alibi(12, OneSeries)


@bug(
    "P52c",
    *ONE_SERIES,
    title="one geometric series of slopes, 40 heads",
    symptom="wrong bias wherever the heads are no power of two",
    law="slopes-as-declared",
    correct=lambda: alibi(40),
    obeys=("offset-only", "last-rows"),
)
def one_series_of_40() -> Bias:
    return alibi(40, OneSeries)


class BothFromZero(Buckets):
    """Queries and keys are counted from 0 each, though the queries are the last of the keys."""

    def offsets(self, queries: int, keys: int) -> Tensor:
        return torch.arange(keys) - torch.arange(queries)[:, None]


@bug(
    "P53",
    "lucidrains/x-transformers#103",
    title="queries and keys are both counted from 0",
    symptom="keys of the memory are taken for keys that come later",
    law="last-rows",
    correct=bucketed,
    obeys=("offset-only", "buckets-as-declared"),
)
def both_from_zero() -> Bias:
    return bucketed(BothFromZero)


class BranchesSwapped(Buckets):
    """The condition is the wrong way round: causal code shares its buckets out, the other not."""

    def both_ways(self) -> bool:
        return not self.bidirectional


@bug(
    "P54a",
    "lucidrains/x-transformers#10",
    title="the causal branch of the buckets is taken by an encoder",
    symptom="every later key falls into bucket 0",
    law="buckets-as-declared",
    correct=bucketed,
    obeys=("offset-only", "last-rows"),
)
def encoder_in_the_causal_branch() -> Bias:
    return bucketed(BranchesSwapped)


@bug(
    "P54b",
    "lucidrains/x-transformers#10",
    title="the bidirectional branch of the buckets is taken by a decoder",
    symptom="half of the buckets are never used",
    law="buckets-as-declared",
    correct=lambda: bucketed(bidirectional=False),
    obeys=("offset-only", "last-rows"),
)
def decoder_in_the_other_branch() -> Bias:
    return bucketed(BranchesSwapped, bidirectional=False)


def collapsing_index(sizes: tuple[int, ...]) -> Tensor:
    """For three axes, steps of 3n − 1 and 2n − 1 in place of products of 2n − 1."""
    if len(sizes) != 3:
        return window_index(sizes)
    axes = torch.meshgrid(*(torch.arange(n) for n in sizes), indexing="ij")
    places = torch.stack(axes, -1).flatten(0, -2)
    offsets = places[:, None] - places[None] + torch.tensor(sizes) - 1
    return offsets @ torch.tensor([3 * sizes[1] - 1, 2 * sizes[1] - 1, 1])


@bug(
    "P55",
    "282857341/nnFormer#88",
    "282857341/nnFormer#8",
    title="steps of 3n − 1 and 2n − 1 in the index of a window with three axes",
    symptom="none: 2197 offsets of a 7×7×7 window share 409 places",
    law="offsets-have-own-index",
    correct=windowed,
    obeys=("offset-only",),
)
def offsets_share_places() -> Bias:
    return windowed(collapsing_index)


class WithAbsolute(nn.Module):
    """Tokens plus a learned table of places, in front of a layer with ALiBi."""

    def __init__(self) -> None:
        super().__init__()
        self.alibi = AlibiLayer()
        drawn = torch.randn(256, EMBED, generator=torch.Generator().manual_seed(5))
        self.places = nn.Parameter(drawn)

    def forward(self, x: Tensor, place: int = 0) -> Tensor:
        out: Tensor = self.alibi(x + self.places[place : place + x.shape[1]])[0]
        return out


def alibi_from_any_place() -> Attention:
    return layered(
        AlibiLayer, cached=False, whole_layer=lambda layer: lambda x, _place: layer(x)[0]
    )


@bug(
    "P56",
    "lucidrains/x-transformers#70",
    title="learned absolute positions are left on in a model with ALiBi",
    symptom="segments give other logits than one pass",
    law="translation",
    correct=alibi_from_any_place,
    obeys=("causal", "rows-of-batch-apart"),
)
def absolute_before_alibi() -> Attention:
    module = WithAbsolute()
    return Attention(
        name="WithAbsolute",
        layer=module,
        whole_layer=module,
        module=module,
        embed=EMBED,
        heads=HEADS,
        declared=alibi_from_any_place().declared,
        make=absolute_before_alibi,
    )
