"""Partial results merged by their log-sum-exp, ring attention, and heads shared out (Ulysses)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .corpus import alike, unlike
from .plain import LOG2E, QKV, SCALE, TWO_SHARDS, attention, causal, masked

Partial = tuple[Tensor, Tensor]


def full(q: Tensor, k1: Tensor, v1: Tensor, k2: Tensor, v2: Tensor) -> Tensor:
    return attention(q, torch.cat((k1, k2), dim=2), torch.cat((v1, v2), dim=2))


def with_lse(q: Tensor, k: Tensor, v: Tensor) -> Partial:
    """The output of some keys and its log-sum-exp (B, H, r)."""
    scores = q @ k.transpose(-1, -2) * SCALE
    top = scores.amax(dim=-1, keepdim=True)
    weights = torch.exp(scores - top)
    total = weights.sum(dim=-1, keepdim=True)
    return weights @ v / total, (top + torch.log(total)).squeeze(-1)


def with_lse2(q: Tensor, k: Tensor, v: Tensor) -> Partial:
    """The same as FlashInfer has it: scores times log2(e), powers of 2, and the LSE in base 2."""
    scores = q @ k.transpose(-1, -2) * (SCALE * LOG2E)
    top = scores.amax(dim=-1, keepdim=True)
    weights = torch.exp2(scores - top)
    total = weights.sum(dim=-1, keepdim=True)
    return weights @ v / total, (top + torch.log2(total)).squeeze(-1)


def merged(one: Partial, other: Partial) -> Tensor:
    """Triton's merge_attn_states: natural logarithms."""
    (out1, lse1), (out2, lse2) = one, other
    top = torch.maximum(lse1, lse2)
    w1, w2 = torch.exp(lse1 - top), torch.exp(lse2 - top)
    return (out1 * w1[..., None] + out2 * w2[..., None]) / (w1 + w2)[..., None]


def prefix_and_suffix(q: Tensor, k1: Tensor, v1: Tensor, k2: Tensor, v2: Tensor) -> Tensor:
    return merged(with_lse(q, k1, v1), with_lse(q, k2, v2))


def prefix_in_base_2(q: Tensor, k1: Tensor, v1: Tensor, k2: Tensor, v2: Tensor) -> Tensor:
    return merged(with_lse2(q, k1, v1), with_lse2(q, k2, v2))


def joined(
    q: Tensor, k1: Tensor, v1: Tensor, k2: Tensor, v2: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    return q, torch.cat((k1, k2), dim=2), torch.cat((v1, v2), dim=2)


BOTH = "k: joined of k1, k2 along n; v: joined of v1, v2 along n"
alike(
    "merge-prefix",
    "sgl-project/sglang#40903",
    "the cached prefix and the new chunk, merged by natural LSE, are attention over both",
    prefix_and_suffix,
    attention,
    TWO_SHARDS,
    other=QKV,
    where=BOTH,
    by_hand=joined,
)
unlike(
    "merge-prefix-bases",
    "sgl-project/sglang#40903",
    "a kernel that returns base-2 LSE is merged by exp",
    prefix_in_base_2,
    attention,
    TWO_SHARDS,
    other=QKV,
    where=BOTH,
    by_hand=joined,
)


def decode_ranks_base2(q: Tensor, k1: Tensor, v1: Tensor, k2: Tensor, v2: Tensor) -> Tensor:
    """Decode context parallel: all-gather the LSEs, correct each output, reduce-scatter."""
    parts = [with_lse2(q, k, v) for k, v in ((k1, v1), (k2, v2))]
    lses = torch.stack([lse for _, lse in parts])
    top = lses.amax(dim=0)
    lse = top + torch.log2(torch.exp2(lses - top).sum(dim=0))
    corrected = [out * torch.exp2(own - lse)[..., None] for out, own in parts]
    return torch.stack(corrected).sum(dim=0)


def decode_ranks_mixed(q: Tensor, k1: Tensor, v1: Tensor, k2: Tensor, v2: Tensor) -> Tensor:
    parts = [with_lse2(q, k, v) for k, v in ((k1, v1), (k2, v2))]
    lses = torch.stack([lse for _, lse in parts])
    top = lses.amax(dim=0)
    lse = top + torch.log(torch.exp(lses - top).sum(dim=0))
    corrected = [out * torch.exp(own - lse)[..., None] for out, own in parts]
    return torch.stack(corrected).sum(dim=0)


alike(
    "decode-ranks",
    "vllm-project/vllm#43919",
    "two ranks of decode context parallelism, corrected in base 2 throughout",
    full,
    decode_ranks_base2,
    TWO_SHARDS,
)
unlike(
    "decode-ranks-bases",
    "vllm-project/vllm#43919",
    "two ranks of FlashInfer's base-2 LSE, corrected as if they were natural",
    full,
    decode_ranks_mixed,
    TWO_SHARDS,
)


LSE = "q: B H r 4, k: B H n 4 -> B H r"


def lse_of_scores(q: Tensor, k: Tensor) -> Tensor:
    return torch.logsumexp(q @ k.transpose(-1, -2) * SCALE, dim=-1)


def lse_from_base2(q: Tensor, k: Tensor) -> Tensor:
    return with_lse2(q, k, k)[1] * math.log(2)


def lse_divided(q: Tensor, k: Tensor) -> Tensor:
    return with_lse2(q, k, k)[1] / math.log(2)


def lse_mixed(q: Tensor, k: Tensor) -> Tensor:
    """The running maximum in natural units, the logarithm of the sum in base 2."""
    scores = q @ k.transpose(-1, -2) * SCALE
    top = scores.amax(dim=-1)
    lse: Tensor = top + torch.log2(torch.exp(scores - top[..., None]).sum(dim=-1))
    return lse


alike(
    "lse-units",
    "flashinfer-ai/flashinfer#2113",
    "base-2 LSE times log 2 is the natural one",
    lse_of_scores,
    lse_from_base2,
    LSE,
)
unlike(
    "lse-divided",
    "flashinfer-ai/flashinfer#4485",
    "base-2 LSE divided by log 2 where it should be multiplied",
    lse_of_scores,
    lse_divided,
    LSE,
)
unlike(
    "lse-mixed",
    "lightseekorg/tokenspeed#571",
    "prefill stores a natural maximum plus a base-2 logarithm",
    lse_of_scores,
    lse_mixed,
    LSE,
)


def merged_by_sigmoid(q: Tensor, k1: Tensor, v1: Tensor, k2: Tensor, v2: Tensor) -> Tensor:
    """ring-flash-attention's update of out and lse by a block."""
    out, lse = with_lse(q, k1, v1)
    block, block_lse = with_lse(q, k2, v2)
    return out - torch.sigmoid(block_lse - lse)[..., None] * (out - block)


alike(
    "merge-sigmoid",
    "meta-pytorch/attention-gym#200",
    "ring-flash-attention's merge by a sigmoid of the difference of LSEs",
    full,
    merged_by_sigmoid,
    TWO_SHARDS,
)


RING = (
    "q1: B H n 4, k1: B H n 4, v1: B H n 4, q2: B H m 4, k2: B H m 4, v2: B H m 4 -> B H (n + m) 4"
)


def one_rank(q1: Tensor, k1: Tensor, v1: Tensor, q2: Tensor, k2: Tensor, v2: Tensor) -> Tensor:
    return attention(*(torch.cat(x, dim=2) for x in ((q1, q2), (k1, k2), (v1, v2))))


def ring_rank(q: Tensor, blocks: list[tuple[Tensor, Tensor]]) -> Tensor:
    """One rank of a ring: keys and values come by, with a running maximum and sum."""
    k, v = blocks[0]
    scores = q @ k.transpose(-1, -2) * SCALE
    top = scores.amax(dim=-1, keepdim=True)
    weights = torch.exp(scores - top)
    out, total = weights @ v, weights.sum(dim=-1, keepdim=True)
    for k, v in blocks[1:]:
        scores = q @ k.transpose(-1, -2) * SCALE
        new = torch.maximum(top, scores.amax(dim=-1, keepdim=True))
        weights, old = torch.exp(scores - new), torch.exp(top - new)
        out, total = out * old + weights @ v, total * old + weights.sum(dim=-1, keepdim=True)
        top = new
    return out / total


def ring(q1: Tensor, k1: Tensor, v1: Tensor, q2: Tensor, k2: Tensor, v2: Tensor) -> Tensor:
    one = ring_rank(q1, [(k1, v1), (k2, v2)])
    other = ring_rank(q2, [(k2, v2), (k1, v1)])
    return torch.cat((one, other), dim=2)


def ring_at_rest(q1: Tensor, k1: Tensor, v1: Tensor, q2: Tensor, k2: Tensor, v2: Tensor) -> Tensor:
    """Each rank sees its own block at every step: nobody sends."""
    one = ring_rank(q1, [(k1, v1), (k1, v1)])
    other = ring_rank(q2, [(k2, v2), (k2, v2)])
    return torch.cat((one, other), dim=2)


alike(
    "ring",
    "sgl-project/sglang#33353",
    "a ring of two ranks is attention over the whole sequence",
    one_rank,
    ring,
    RING,
)
unlike(
    "ring-at-rest",
    "sgl-project/sglang#33353",
    "ring degree 2 is accepted, and keys and values are never passed on",
    one_rank,
    ring_at_rest,
    RING,
)


DOCUMENTS = "q: B H n 4, k: B H n 4, v: B H n 4, document: n ids -> B H n 4"


def documents_apart(q: Tensor, k: Tensor, v: Tensor, document: Tensor) -> Tensor:
    length = q.shape[2]
    keep = (document[:, None] == document[None]) & causal(length, length)
    return masked(q, k, v, keep)


def ring_over_documents(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    document: Tensor,  # noqa: ARG001 (which is the fault)
) -> Tensor:
    """Two shards of a packed row; where a query may see is asked of positions alone."""
    half, length = q.shape[2] // 2, q.shape[2]
    place = torch.arange(length)
    first = masked(
        q[:, :, :half], k[:, :, :half], v[:, :, :half], place[:half, None] >= place[None, :half]
    )
    second = masked(q[:, :, half:], k, v, place[half:, None] >= place[None])
    return torch.cat((first, second), dim=2)


unlike(
    "ring-over-documents",
    "axolotl-ai-cloud/axolotl#4002",
    "the ring ignores the boundaries of packed documents",
    documents_apart,
    ring_over_documents,
    DOCUMENTS,
)


ROBIN = "q: B H (2 n) 4, k: B H (2 n) 4, v: B H (2 n) 4 -> B H (2 n) 4"


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return masked(q, k, v, causal(q.shape[2], k.shape[2]))


def round_robin(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Rank 0 has the even tokens, rank 1 the odd ones; keys are gathered."""
    place = torch.arange(q.shape[2])
    parts = [masked(q[:, :, rank::2], k, v, place[rank::2, None] >= place) for rank in (0, 1)]
    return torch.stack(parts, dim=3).flatten(2, 3)


def round_robin_local(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The backend is given how many tokens of its own rank came before."""
    place = torch.arange(q.shape[2])
    local = torch.arange(q.shape[2] // 2)
    parts = [masked(q[:, :, rank::2], k, v, local[:, None] >= place) for rank in (0, 1)]
    return torch.stack(parts, dim=3).flatten(2, 3)


alike(
    "round-robin",
    "sgl-project/sglang#28463",
    "queries dealt out round-robin to two ranks, masked by their global positions",
    causal_attention,
    round_robin,
    ROBIN,
)
unlike(
    "round-robin-local",
    "sgl-project/sglang#28463",
    "queries dealt out round-robin to two ranks, masked by their local positions",
    causal_attention,
    round_robin_local,
    ROBIN,
)


ULYSSES = (
    "q1: B n 2 4, k1: B n 2 4, v1: B n 2 4, q2: B m 2 4, k2: B m 2 4, v2: B m 2 4 -> B (n + m) 2 4"
)


def all_heads(q1: Tensor, k1: Tensor, v1: Tensor, q2: Tensor, k2: Tensor, v2: Tensor) -> Tensor:
    whole = [torch.cat(x, dim=1).transpose(1, 2) for x in ((q1, q2), (k1, k2), (v1, v2))]
    return attention(*whole).transpose(1, 2)


def ulysses(q1: Tensor, k1: Tensor, v1: Tensor, q2: Tensor, k2: Tensor, v2: Tensor) -> Tensor:
    """Each rank gets all tokens of its heads, and behind attention all heads of its tokens."""
    outs = []
    for rank in (0, 1):
        own = slice(rank, rank + 1)
        q, k, v = (
            torch.cat((a[:, :, own], b[:, :, own]), dim=1).transpose(1, 2)
            for a, b in ((q1, q2), (k1, k2), (v1, v2))
        )
        outs.append(attention(q, k, v).transpose(1, 2))
    cut = q1.shape[1]
    ranks = [
        torch.cat([out[:, part] for out in outs], dim=2)
        for part in (slice(None, cut), slice(cut, None))
    ]
    return torch.cat(ranks, dim=1)


def ulysses_never_sent(
    q1: Tensor, k1: Tensor, v1: Tensor, q2: Tensor, k2: Tensor, v2: Tensor
) -> Tensor:
    parts = [
        attention(*(x.transpose(1, 2) for x in one)).transpose(1, 2)
        for one in ((q1, k1, v1), (q2, k2, v2))
    ]
    return torch.cat(parts, dim=1)


alike(
    "ulysses",
    "ByteDance-Seed/VeOmni#1158",
    "heads shared out to two ranks, and gathered again",
    all_heads,
    ulysses,
    ULYSSES,
)
unlike(
    "ulysses-never-sent",
    "ByteDance-Seed/VeOmni#1158",
    "the path without overlap never does the all-to-all: each rank sees its own tokens",
    all_heads,
    ulysses_never_sent,
    ULYSSES,
)


def keys_twice(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return attention(q, torch.cat((k, k), dim=2), torch.cat((v, v), dim=2))


def keys_twice_summed(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Each rank attends by itself, and what it gives is added up."""
    return attention(q, k, v) + attention(q, k, v)


alike(
    "keys-twice",
    "vllm-project/vllm-omni#1233",
    "replicated text keys gathered from two ranks: every weight is halved, and nothing changes",
    attention,
    keys_twice,
    QKV,
)
unlike(
    "keys-twice-summed",
    "vllm-project/vllm-omni#1233",
    "replicated text keys attended to on both ranks, and the results added",
    attention,
    keys_twice_summed,
    QKV,
)


BIASED = "q: B 4 r 4, k: B 4 n 4, v: B 4 n 4, bias: B 4 r n add -> B 4 r 4"


def biased(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
    return attention(q, k, v, bias)


def biased_shards(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
    ranks = zip(*(x.chunk(2, dim=1) for x in (q, k, v, bias)), strict=True)
    return torch.cat([attention(*own) for own in ranks], dim=1)


def biased_shards_first(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
    """The plan shards q, k and v; of the mask every rank reads the heads from 0 on."""
    q1, q2 = q.chunk(2, dim=1)
    (k1, k2), (v1, v2) = k.chunk(2, dim=1), v.chunk(2, dim=1)
    first = bias[:, : q1.shape[1]]
    return torch.cat((attention(q1, k1, v1, first), attention(q2, k2, v2, first)), dim=1)


alike(
    "mask-shards",
    "huggingface/diffusers#14316",
    "a mask for each head, sharded with the heads",
    biased,
    biased_shards,
    BIASED,
)
unlike(
    "mask-not-sharded",
    "huggingface/diffusers#14316",
    "the context-parallel plan leaves the mask's head axis whole",
    biased,
    biased_shards_first,
    BIASED,
)
