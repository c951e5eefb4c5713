"""Code that people took for wrong, and is not: ALiBi with one row, in any order, and alignment."""

from __future__ import annotations

import torch
from torch import Tensor

from attnproof.programs.declarations import DeclaredAttention, DeclaredBias
from attnproof.programs.subjects import Attention, Bias, Mask

from .attention_code import Eager, attention
from .bias_code import Alibi, alibi, biased, published_slopes
from .corpus import control


class OneRow(Alibi):
    """−slope · (last key − key), the same for every query: it differs by a number for each."""

    def forward(self, queries: int, keys: int) -> Tensor:
        distance = torch.arange(keys - 1, -1, -1).expand(queries, keys)
        return -torch.tensor(self.slopes())[:, None, None] * distance


@control(
    "N04",
    "mosaicml/llm-foundry#186",
    claim="the row of ALiBi is the same for every query",
    verdict="under a causal mask it differs by a number for each query, which softmax takes away",
)
def one_row() -> Bias:
    return alibi(8, OneRow)


def from_first_key(queries: int, keys: int) -> Tensor:
    """Query i sees keys 0..i."""
    return torch.arange(queries)[:, None] >= torch.arange(keys)


ALIGNMENT = ("ml-explore/mlx#2836", "Dao-AILab/flash-attention#951")
CONVENTION = "a convention: which alignment it is is told, and neither is wrong where declared"


@control("N05a", *ALIGNMENT, claim="causal alignment differs from PyTorch's", verdict=CONVENTION)
def last_query_sees_all() -> Mask:
    return Mask(
        name="aligned at the end",
        mask=Eager(causal=True).seen,
        make=last_query_sees_all,
        declared=DeclaredAttention(causal=True, alignment="end"),
    )


@control("N05b", *ALIGNMENT, claim="causal alignment differs from others'", verdict=CONVENTION)
def first_query_sees_first_key() -> Mask:
    return Mask(
        name="aligned at the start",
        mask=from_first_key,
        make=first_query_sees_first_key,
        declared=DeclaredAttention(causal=True, alignment="start"),
    )


class FromFirstKey(Eager):
    """Causal attention whose query i sees keys 0..i, whatever is in front."""

    def seen(self, queries: int, keys: int) -> Tensor:
        return from_first_key(queries, keys)


@control("N05c", *ALIGNMENT, claim="causal alignment differs from others'", verdict=CONVENTION)
def attends_from_first_key() -> Attention:
    declared = DeclaredAttention(causal=True, alignment="start", positions="none")
    return attention(FromFirstKey, masks=(), declared=declared)


@control("N05d", *ALIGNMENT, claim="alignment differs, and nothing is declared", verdict=CONVENTION)
def nothing_is_declared() -> Mask:
    return Mask(name="undeclared", mask=from_first_key, make=nothing_is_declared)


PUBLISHED = "the published recipe gives a list that is not monotone; what is declared is compared"
SLOPES = ("baichuan-inc/Baichuan2#225", "antofuller/CROMA#12", "mosaicml/examples#307")


@control("N06a", *SLOPES, claim="the slopes of 40 heads are not monotone", verdict=PUBLISHED)
def forty_heads() -> Bias:
    return alibi(40)


class Sorted(Alibi):
    """The published slopes from the steepest to the flattest."""

    def slopes(self) -> list[float]:
        return sorted(published_slopes(self.heads), reverse=True)


@control("N06b", *SLOPES, claim="the slopes of 40 heads stand in another order", verdict=PUBLISHED)
def forty_heads_sorted() -> Bias:
    slopes = tuple(Sorted(40).slopes())
    declared = DeclaredBias(name="alibi", heads=40, slopes=slopes)
    return biased(lambda: Sorted(40), declared, causal=True)
