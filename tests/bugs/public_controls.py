"""Attention, rotary code and tables that somebody took for wrong, and that are right."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from attnproof.programs.declarations import DeclaredAttention, DeclaredBias
from attnproof.programs.subjects import Additive, Attention, Bias, Mask, Rotary

from .additive_bugs import TwoHalves, additive
from .attention_code import Eager, attention
from .bias_code import Alibi, alibi, biased, published_slopes
from .corpus import control
from .plain_code import CachedAttention, Rope, State, plain_half, rotary
from .plain_code import attention as cached_attention


class OneRow(Alibi):
    """−slope · (last key − key), the same for every query: it differs by a number for each."""

    def forward(self, queries: int, keys: int) -> Tensor:
        distance = torch.arange(keys - 1, -1, -1).expand(queries, keys)
        return -torch.tensor(self.slopes())[:, None, None] * distance


@control(
    "N04",
    "mosaicml/llm-foundry#186",
    claim="the row of ALiBi is the same for every query",
    verdict="under a causal mask it differs by one number per query, which softmax cancels",
)
def one_row() -> Bias:
    return alibi(8, OneRow)


def from_first_key(queries: int, keys: int) -> Tensor:
    """Query i sees keys 0..i."""
    return torch.arange(queries)[:, None] >= torch.arange(keys)


ALIGNMENT = ("ml-explore/mlx#2836", "Dao-AILab/flash-attention#951")
CONVENTION = "a convention: the alignment is reported, and neither is wrong if declared"


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


PUBLISHED = (
    "the published recipe gives a list that is not monotone; the declared slopes are compared"
)
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


# claims about positions that were no bugs: other conventions, of which every law holds


@control(
    "N01",
    "huggingface/transformers#25199",
    "huggingface/transformers#40462",
    "EleutherAI/gpt-neox#834",
    "NVIDIA-NeMo/Speech#6923",
    "lucidrains/PaLM-rlhf-pytorch#56",
    "lucidrains/soundstorm-pytorch#23",
    "keras-team/keras-hub#1416",
    "henrywoo/pyllama#83",
    "jingyaogong/minimind#532",
    "rasbt/LLMs-from-scratch#838",
    claim="half-split is not the paper's formula",
    verdict="the same rotations up to a permutation of the channels: layout half",
)
def half_split() -> Rotary:
    return plain_half()


class OtherSign(Rope):
    """Rotates by −position × frequency: the transpose of the textbook's matrix."""

    def angles(self, positions: Tensor) -> Tensor:
        return -super().angles(positions)


@control(
    "N02",
    "karpathy/nanochat#489",
    claim="the rotation has the wrong sign",
    verdict="the transpose of the textbook's matrix: the sign of the offset is reversed",
)
def other_sign() -> Rotary:
    return rotary(OtherSign)


@control(
    "N03",
    "allenai/allennlp#2993",
    "tatp22/multidim-positional-encoding#20",
    "tensorflow/tensorflow#37191",
    claim="sin and cos are concatenated, not interleaved",
    verdict="a permutation of the columns: the same shifts and products, layout half",
)
def concatenated() -> Additive:
    return additive(TwoHalves)


class CountsFromThePadding(CachedAttention):
    """Positions count from the left edge, padding included; keys that are padding are hidden."""

    def padded_step(self, x: Tensor, state: State, padding: Tensor) -> tuple[Tensor, State]:
        before = 0 if state is None else state[0].shape[2]
        keys = torch.arange(before + x.shape[1], device=x.device)
        seen = (keys >= padding[:, None])[:, None, None]
        return self.step(x, state, seen)


@control(
    "N07",
    "huggingface/transformers#22683",
    claim="left padding must not matter for rotary positions",
    verdict="a common shift of queries and keys changes nothing, with the same count in the cache",
)
def left_padding() -> Attention:
    layer = CountsFromThePadding()
    plain = cached_attention(lambda: layer)
    return replace(plain, padded_step=layer.padded_step, make=left_padding)
