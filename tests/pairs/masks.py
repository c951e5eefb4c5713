"""Masks, packed documents, images among words, and refactorings of indices."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from .corpus import alike, unlike
from .plain import QKV, attention, causal, masked

FLASH = "q: B r H 4, k: B n H 4, v: B n H 4 -> B r H 4"


def eager(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return attention(q, k, v)


def flash(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """FlashAttention's order of axes: tokens, then heads."""
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return scaled_dot_product_attention(q, k, v).transpose(1, 2)


def flash_unscaled(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = torch.einsum("brhd,bnhd->bhrn", q, k)
    return torch.einsum("bhrn,bnhd->brhd", torch.softmax(scores, dim=-1), v)


def tokens_first(*given: Tensor) -> tuple[Tensor, ...]:
    return tuple(x.transpose(1, 2) for x in given)


alike(
    "flash",
    "marin-community/marin#1879",
    "an engine's order of axes: tokens before heads",
    eager,
    flash,
    QKV,
    other=FLASH,
    by_hand=tokens_first,
    back=tokens_first,
)
unlike(
    "flash-unscaled",
    "marin-community/marin#1879",
    "the engine does not scale its scores",
    eager,
    flash_unscaled,
    QKV,
    other=FLASH,
    by_hand=tokens_first,
    back=tokens_first,
)


MASKED = "q: B H r 4, k: B H n 4, v: B H n 4, mask: B 1 r n keep -> B H r 4"


def mask_filled(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return masked(q, k, v, mask)


def mask_added(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor) -> Tensor:
    """The other path is told what is hidden, and adds -inf."""
    bias = torch.zeros(hidden.shape, dtype=q.dtype).masked_fill(hidden, float("-inf"))
    return scaled_dot_product_attention(q, k, v, attn_mask=bias)


def mask_as_numbers(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """An additive mask is extended with ones and zeros of a boolean one."""
    return attention(q, k, v, mask.to(q.dtype))


alike(
    "mask-added",
    "vllm-project/speculators#897",
    "a boolean mask filled in, or added as -inf",
    mask_filled,
    mask_added,
    MASKED,
    other=MASKED.replace("mask", "hidden").replace("keep", "hide"),
    by_hand=lambda q, k, v, mask: (q, k, v, ~mask),
)
unlike(
    "mask-as-numbers",
    "vllm-project/speculators#897",
    "an additive mask made of ones and zeros",
    mask_filled,
    mask_as_numbers,
    MASKED,
)


IMAGES = "q: B H n 4, k: B H n 4, v: B H n 4, image: n ids -> B H n 4"


def gemma3(q: Tensor, k: Tensor, v: Tensor, image: Tensor) -> Tensor:
    """Causal, and both ways within one image; words have 0, images 1, 2, ..."""
    length = q.shape[2]
    same = (image[:, None] == image) & (image > 0)
    return masked(q, k, v, causal(length, length) | same)


def gemma3_all_images(q: Tensor, k: Tensor, v: Tensor, image: Tensor) -> Tensor:
    """Every token of an image sees every other one, of later images too."""
    length, of_image = q.shape[2], image > 0
    return masked(q, k, v, causal(length, length) | (of_image[:, None] & of_image))


def gemma3_causal(q: Tensor, k: Tensor, v: Tensor, image: Tensor) -> Tensor:  # noqa: ARG001
    return masked(q, k, v, causal(q.shape[2], q.shape[2]))


unlike(
    "images-all",
    "huggingface/transformers#38053",
    "images see later images",
    gemma3,
    gemma3_all_images,
    IMAGES,
)
unlike(
    "images-causal",
    "vllm-project/vllm-gaudi#1797",
    "image blocks are causal on one backend",
    gemma3,
    gemma3_causal,
    IMAGES,
)


PACKED = "x: B n 6, y: B m 6, wq: 6 4, wk: 6 4, wv: 6 4 -> B (n + m) 4"


def packed(x: Tensor, y: Tensor, wq: Tensor, wk: Tensor, wv: Tensor) -> Tensor:
    """Two documents in one row, under a mask of blocks."""
    both = torch.cat((x, y), dim=1)
    document = torch.arange(both.shape[1]) >= x.shape[1]
    return masked(both @ wq, both @ wk, both @ wv, document[:, None] == document)


def apart(x: Tensor, y: Tensor, wq: Tensor, wk: Tensor, wv: Tensor) -> Tensor:
    return torch.cat([attention(one @ wq, one @ wk, one @ wv) for one in (x, y)], dim=1)


def packed_causal(x: Tensor, y: Tensor, wq: Tensor, wk: Tensor, wv: Tensor) -> Tensor:
    """Positions begin anew in each document, and a mask of documents is made of 3-D ones only."""
    both = torch.cat((x, y), dim=1)
    place = torch.cat((torch.arange(x.shape[1]), torch.arange(y.shape[1])))
    return masked(both @ wq, both @ wk, both @ wv, place[:, None] >= place)


def apart_causal(x: Tensor, y: Tensor, wq: Tensor, wk: Tensor, wv: Tensor) -> Tensor:
    outs = [
        masked(one @ wq, one @ wk, one @ wv, causal(one.shape[1], one.shape[1])) for one in (x, y)
    ]
    return torch.cat(outs, dim=1)


alike(
    "packed",
    "NVIDIA-NeMo/Megatron-Bridge#1776",
    "documents packed are documents apart",
    packed,
    apart,
    PACKED,
)
unlike(
    "packed-positions",
    "huggingface/transformers#47342",
    "positions tell where a document begins, and are compared all the same",
    apart_causal,
    packed_causal,
    PACKED,
)


SHARDS = (
    "q1: B H n 4, k1: B H n 4, v1: B H n 4, q2: B H m 4, k2: B H m 4, v2: B H m 4 -> B H (n + m) 4"
)


def from_lengths(q1: Tensor, k1: Tensor, v1: Tensor, q2: Tensor, k2: Tensor, v2: Tensor) -> Tensor:
    """cu_seqlens of the whole row: two documents of n and m tokens."""
    position = torch.cat((torch.arange(q1.shape[2]), torch.arange(q2.shape[2])))
    document = (position == 0).cumsum(0)
    q, k, v = (torch.cat(x, dim=2) for x in ((q1, q2), (k1, k2), (v1, v2)))
    return masked(q, k, v, document[:, None] == document)


def from_shards(q1: Tensor, k1: Tensor, v1: Tensor, q2: Tensor, k2: Tensor, v2: Tensor) -> Tensor:
    """cu_seqlens rebuilt from the positions of each half of the row, and set side by side."""
    position = torch.cat((torch.arange(q1.shape[2]), torch.arange(q2.shape[2])))
    document = torch.cat([(one == 0).cumsum(0) for one in position.tensor_split(2)])
    q, k, v = (torch.cat(x, dim=2) for x in ((q1, q2), (k1, k2), (v1, v2)))
    return masked(q, k, v, document[:, None] == document)


unlike(
    "lengths-of-shards",
    "PrimeIntellect-ai/prime-rl#2392",
    "cu_seqlens are rebuilt from position ids behind the sharding",
    from_lengths,
    from_shards,
    SHARDS,
)


PROMPT = "padding: B m 4, prompt: B n 4 -> B n 4"


def prompt_gathered(padding: Tensor, prompt: Tensor) -> Tensor:
    """The tokens of a prompt padded on the left, by gather."""
    x, count = torch.cat((padding, prompt), dim=1), prompt.shape[1]
    index = torch.arange(count) + (x.shape[1] - count)
    return torch.gather(x, 1, index[None, :, None].expand(x.shape[0], -1, x.shape[2]))


def prompt_indexed(padding: Tensor, prompt: Tensor) -> Tensor:
    x = torch.cat((padding, prompt), dim=1)
    return x[:, torch.arange(padding.shape[1], x.shape[1])]


def prompt_reversed(padding: Tensor, prompt: Tensor) -> Tensor:
    """Counted from the end."""
    x = torch.cat((padding, prompt), dim=1)
    return x[:, x.shape[1] - 1 - torch.arange(prompt.shape[1])]


alike(
    "gather",
    "huggingface/diffusers#13930",
    "gather replaced by an index",
    prompt_gathered,
    prompt_indexed,
    PROMPT,
)
unlike(
    "gather-reversed",
    "huggingface/diffusers#13930",
    "the index reverses the tokens of the prompt",
    prompt_gathered,
    prompt_reversed,
    PROMPT,
)


class LowerTriangular:
    """xformers' LowerTriangularMaskWithTensorBias: a bias, and that it is causal."""

    def __init__(self, bias: Tensor) -> None:
        self.bias = bias

    def materialize(self) -> Tensor:
        length = self.bias.shape[-1]
        hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
        return self.bias.masked_fill(hidden, float("-inf"))

    def to(self, dtype: torch.dtype) -> Tensor:
        """What torch does: the tensor alone is moved."""
        return self.bias.to(dtype)


BIASED = "q: B H n 4, k: B H n 4, v: B H n 4, bias: H n n add -> B H n 4"


def bias_causal(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
    return attention(q, k, v, LowerTriangular(bias).materialize())


def bias_moved(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
    return attention(q, k, v, LowerTriangular(bias).to(q.dtype))


unlike(
    "bias-moved",
    "facebookresearch/xformers#1185",
    "mask.to(..) loses its causality",
    bias_causal,
    bias_moved,
    BIASED,
)


LABELS = "x: B n 4, y: B m 4 -> B (n + m) 4"


def next_of_each(x: Tensor, y: Tensor) -> Tensor:
    """The target of a token is the next one of its document, and nothing behind the last."""
    return torch.cat(
        [torch.cat((one[:, 1:], torch.zeros_like(one[:, :1])), dim=1) for one in (x, y)], dim=1
    )


def next_rolled(x: Tensor, y: Tensor) -> Tensor:
    """Rolled over the packed row: the first token of y is the target of the last of x."""
    both = torch.cat((x, y), dim=1)
    return torch.cat((both[:, 1:], torch.zeros_like(both[:, :1])), dim=1)


unlike(
    "labels-rolled",
    "verl-project/verl#6564",
    "labels are rolled across packed samples",
    next_of_each,
    next_rolled,
    LABELS,
)
