"""Claims about positions that were no bugs: other conventions, of which every law holds."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from attnproof.programs.subjects import Additive, Attention, Rotary

from .additive_bugs import TwoHalves, additive
from .corpus import control
from .plain_attention import CachedAttention, State, attention
from .plain_rotary import Rope, plain_half, rotary


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
    plain = attention(lambda: layer)
    return replace(plain, padded_step=layer.padded_step, make=left_padding)
