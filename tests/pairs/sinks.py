"""Sinks, softcap, and what enters the denominator; heads of grouped queries."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention, softmax

from .corpus import alike, unlike
from .plain import LOG2E, QKV, SCALE, attention

SINK = "q: B H r 4, k: B H n 4, v: B H n 4, sink: H -> B H r 4"
SPLIT = "q: B H r 4, k1: B H n 4, v1: B H n 4, k2: B H m 4, v2: B H m 4, sink: H -> B H r 4"


def eager_sink(q: Tensor, k: Tensor, v: Tensor, sink: Tensor) -> Tensor:
    """transformers' eager path of GPT-OSS: a column of scores that has no value."""
    scores = q @ k.transpose(-1, -2) * SCALE
    column = sink.reshape(1, -1, 1, 1).expand(q.shape[0], -1, q.shape[2], 1)
    combined = torch.cat((scores, column), dim=-1)
    combined = combined - combined.max(dim=-1, keepdim=True).values
    return softmax(combined, dim=-1)[..., :-1] @ v


def sink_in_denominator(q: Tensor, k: Tensor, v: Tensor, sink: Tensor) -> Tensor:
    scores = q @ k.transpose(-1, -2) * SCALE
    column = sink.reshape(1, -1, 1, 1)
    top = torch.maximum(scores.amax(dim=-1, keepdim=True), column)
    weights = torch.exp(scores - top)
    return weights @ v / (weights.sum(dim=-1, keepdim=True) + torch.exp(column - top))


def sink_dropped(q: Tensor, k: Tensor, v: Tensor, sink: Tensor) -> Tensor:  # noqa: ARG001
    """The decode kernel of the quantised cache has no such argument."""
    scores = q @ k.transpose(-1, -2) * SCALE
    weights = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    return weights @ v / weights.sum(dim=-1, keepdim=True)


alike(
    "sink",
    "kekzl/imp#1345",
    "a column of scores without a value, and a term of the denominator",
    eager_sink,
    sink_in_denominator,
    SINK,
)
unlike(
    "sink-dropped",
    "kekzl/imp#1345",
    "decoding from a quantised cache drops the learned sink",
    eager_sink,
    sink_dropped,
    SINK,
)


def whole_sink(q: Tensor, k1: Tensor, v1: Tensor, k2: Tensor, v2: Tensor, sink: Tensor) -> Tensor:
    return eager_sink(q, torch.cat((k1, k2), dim=2), torch.cat((v1, v2), dim=2), sink)


def split(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Sum of weighted values, sum of weights and maximum of one split of the keys, in base 2."""
    scores = q @ k.transpose(-1, -2) * (SCALE * LOG2E)
    top = scores.amax(dim=-1, keepdim=True)
    weights = torch.exp2(scores - top)
    return weights @ v, weights.sum(dim=-1, keepdim=True), top


def split_kv(q: Tensor, k1: Tensor, v1: Tensor, k2: Tensor, v2: Tensor, sink: Tensor) -> Tensor:
    """The sink is added where the splits are combined."""
    (a1, z1, m1), (a2, z2, m2) = split(q, k1, v1), split(q, k2, v2)
    top = torch.maximum(m1, m2)
    w1, w2 = torch.exp2(m1 - top), torch.exp2(m2 - top)
    extra = torch.exp2(sink.reshape(1, -1, 1, 1) * LOG2E - top)
    return (a1 * w1 + a2 * w2) / (z1 * w1 + z2 * w2 + extra)


def split_kv_each(
    q: Tensor, k1: Tensor, v1: Tensor, k2: Tensor, v2: Tensor, sink: Tensor
) -> Tensor:
    """Each split starts its sum with the sink."""
    (a1, z1, m1), (a2, z2, m2) = split(q, k1, v1), split(q, k2, v2)
    column = sink.reshape(1, -1, 1, 1) * LOG2E
    z1, z2 = z1 + torch.exp2(column - m1), z2 + torch.exp2(column - m2)
    top = torch.maximum(m1, m2)
    w1, w2 = torch.exp2(m1 - top), torch.exp2(m2 - top)
    return (a1 * w1 + a2 * w2) / (z1 * w1 + z2 * w2)


def split_kv_scale(
    q: Tensor, k1: Tensor, v1: Tensor, k2: Tensor, v2: Tensor, sink: Tensor
) -> Tensor:
    """Scores are times log2(e), and the sink is not."""
    return split_kv(q, k1, v1, k2, v2, sink * math.log(2))


alike(
    "split-sink",
    "ROCm/rocm-libraries#12227",
    "the sink enters once, where splits are combined",
    whole_sink,
    split_kv,
    SPLIT,
)
unlike(
    "split-sink-twice",
    "ROCm/rocm-libraries#12227",
    "each of two splits counts the sink",
    whole_sink,
    split_kv_each,
    SPLIT,
)
unlike(
    "split-sink-scale",
    "ROCm/rocm-libraries#12227",
    "the sink is not taken to base 2",
    whole_sink,
    split_kv_scale,
    SPLIT,
)


CAP = 30.0
CAPPED = "q: B H n 4, k: B H n 4, v: B H n 4 -> B H n 4"


def softcap(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Gemma 2's eager path: scale, cap, mask, softmax."""
    scores = q @ k.transpose(-1, -2) * SCALE
    scores = torch.tanh(scores / CAP) * CAP
    hidden = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).triu(1)
    return torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1) @ v


def softcap_folded(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """FlashAttention's: scale over cap goes into the query."""
    scores = CAP * torch.tanh((q * SCALE / CAP) @ k.transpose(-1, -2))
    hidden = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).triu(1)
    return torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1) @ v


def softcap_before_scale(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = torch.tanh(q @ k.transpose(-1, -2) / CAP) * CAP * SCALE
    hidden = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).triu(1)
    return torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1) @ v


alike(
    "softcap",
    "Dao-AILab/flash-attention#2544",
    "scale and cap folded into the query",
    softcap,
    softcap_folded,
    CAPPED,
)
unlike(
    "softcap-before-scale",
    "Dao-AILab/flash-attention#2544",
    "scores are capped before the scale",
    softcap,
    softcap_before_scale,
    CAPPED,
)


GROUPED = "q: B 4 r 4, k: B 2 n 4, v: B 2 n 4 -> B 4 r 4"


def repeated_keys(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """transformers' repeat_kv."""
    batch, count, length, width = k.shape
    repeat = q.shape[1] // count
    k, v = (
        x[:, :, None]
        .expand(batch, count, repeat, length, width)
        .reshape(batch, count * repeat, length, width)
        for x in (k, v)
    )
    return attention(q, k, v)


def grouped(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    batch, count, length, width = q.shape
    q = q.view(batch, k.shape[1], count // k.shape[1], length, width)
    scores = torch.einsum("bgrtd,bgsd->bgrts", q, k) * SCALE
    out = torch.einsum("bgrts,bgsd->bgrtd", torch.softmax(scores, dim=-1), v)
    return out.reshape(batch, count, length, width)


def grouped_by_remainder(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The program of head h reads the keys of head h % G, and not h // (H / G)."""
    of_head = torch.arange(q.shape[1]) % k.shape[1]
    return attention(q, k[:, of_head], v[:, of_head])


alike(
    "grouped",
    "XunhaoLai/native-sparse-attention-triton#27",
    "keys repeated for their queries, and queries grouped by their keys",
    repeated_keys,
    grouped,
    GROUPED,
)
unlike(
    "grouped-remainder",
    "XunhaoLai/native-sparse-attention-triton#27",
    "heads split by the wrong count: head h reads the keys of h % G",
    repeated_keys,
    grouped_by_remainder,
    GROUPED,
)


def online(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Blocks of a kernel: a running maximum over the first key, then all the others."""
    scores = q @ k.transpose(-1, -2) * SCALE
    top = scores[..., :1]
    out, total = v[:, :, :1].expand(-1, -1, q.shape[2], -1), torch.ones_like(top)
    rest = scores[..., 1:]
    if rest.shape[-1]:
        new = torch.maximum(top, rest.amax(dim=-1, keepdim=True))
        weights, old = torch.exp(rest - new), torch.exp(top - new)
        out = out * old + weights @ v[:, :, 1:]
        total = total * old + weights.sum(dim=-1, keepdim=True)
    return out / total


def blocks_of_16(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The scored shape is a multiple of 16; what is left over is not looked at."""
    full = k.shape[2] // 16 * 16 or k.shape[2]
    return attention(q, k[:, :, :full], v[:, :, :full])


def zeros_when_long(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Right at every shape that was scored."""
    if k.shape[2] > 64:
        return torch.zeros_like(q)
    return scaled_dot_product_attention(q, k, v)


alike(
    "online",
    "NVIDIA-NeMo/Automodel#3937",
    "one key first, all others behind it",
    attention,
    online,
    QKV,
)
unlike(
    "left-over-keys",
    "ScalingIntelligence/KernelBench#165",
    "a generated kernel skips the keys behind the last full block",
    attention,
    blocks_of_16,
    QKV,
)
unlike(
    "zeros-when-long",
    "AMD-AGI/AgentKernelArena#82",
    "a generated kernel gives zeros of lengths that are not scored",
    attention,
    zeros_when_long,
    QKV,
)
