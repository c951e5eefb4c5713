"""Rotary embeddings: layouts, partial widths, YaRN and LongRoPE, three axes, latent keys."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .corpus import alike, unlike
from .plain import SCALE, attention, rotate_half, rotate_pairs

ROPE = "x: B H n 4, angles: n 2 -> B H n 4"


def complex_rope(x: Tensor, angles: Tensor) -> Tensor:
    """Meta's Llama: channels 2i and 2i + 1 are a complex number."""
    numbers = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(numbers * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


def fused_rope(x: Tensor, angles: Tensor) -> Tensor:
    """candle's rope_i."""
    return rotate_pairs(x, angles)


def fused_rope_back(x: Tensor, angles: Tensor) -> Tensor:
    """Rotated, and by the opposite angle back again."""
    return rotate_pairs(rotate_pairs(rotate_pairs(x, angles), -angles), angles)


def half_split_rope(x: Tensor, angles: Tensor) -> Tensor:
    return rotate_half(x, angles)


alike(
    "rope-complex",
    "huggingface/candle#3612",
    "rotation of pairs, in complex and in real numbers",
    complex_rope,
    fused_rope,
    ROPE,
)
alike(
    "rope-opposite",
    "huggingface/candle#3612",
    "the rotation by the opposite angle undoes it",
    fused_rope,
    fused_rope_back,
    ROPE,
)
unlike(
    "rope-layout",
    "ooples/AiDotNet#2074",
    "half-split in the place of interleaved",
    complex_rope,
    half_split_rope,
    ROPE,
)


PARTIAL = "x: B H n 8, positions: n positions, freq: 2 -> B H n 8"
ROTARY_DIM = 4


def partial_rope(x: Tensor, positions: Tensor, freq: Tensor) -> Tensor:
    """rotary_dim = 4 of a head of 8; the rest is passed on."""
    angles = positions[:, None] * freq
    return torch.cat((rotate_pairs(x[..., :ROTARY_DIM], angles), x[..., ROTARY_DIM:]), dim=-1)


def partial_by_zeros(x: Tensor, positions: Tensor, freq: Tensor) -> Tensor:
    """Gemma 4's proportional RoPE: frequencies 0 for what is not rotated."""
    freq = torch.cat((freq, torch.zeros(2, dtype=freq.dtype)))
    return rotate_pairs(x, positions[:, None] * freq)


def whole_head(x: Tensor, positions: Tensor, freq: Tensor) -> Tensor:
    """rotary_dim is not handed on, and the kernel takes the head's width."""
    return rotate_pairs(x, positions[:, None] * torch.cat((freq, freq)))


def last_part(x: Tensor, positions: Tensor, freq: Tensor) -> Tensor:
    """DeepSeek's order of the two parts: the rotated one stands last."""
    angles = positions[:, None] * freq
    return torch.cat((x[..., :-ROTARY_DIM], rotate_pairs(x[..., -ROTARY_DIM:], angles)), dim=-1)


alike(
    "partial-zeros",
    "aws-neuron/neuronx-distributed-inference#106",
    "a part of the head is rotated; or all of it, with zeros among the frequencies",
    partial_rope,
    partial_by_zeros,
    PARTIAL,
)
unlike(
    "partial-lost",
    "vllm-project/vllm#43676",
    "rotary_dim does not reach the fused kernel",
    partial_rope,
    whole_head,
    PARTIAL,
)
unlike(
    "partial-end",
    "huggingface/transformers#48486",
    "the last channels rotated for the first",
    partial_rope,
    last_part,
    PARTIAL,
)


SCALED = "x: B H n 4, positions: n positions, freq: 2 -> B H n 4"
FACTOR = 8.0


def scaled_frequencies(x: Tensor, positions: Tensor, freq: Tensor) -> Tensor:
    """transformers' linear scaling: inv_freq /= factor."""
    return rotate_half(x, positions[:, None] * (freq / FACTOR))


def scaled_positions(x: Tensor, positions: Tensor, freq: Tensor) -> Tensor:
    """Position interpolation as its paper has it."""
    return rotate_half(x, (positions / FACTOR)[:, None] * freq)


def scaling_unused(x: Tensor, positions: Tensor, freq: Tensor) -> Tensor:
    """rope_scaling is parsed, and is never looked at."""
    return rotate_half(x, positions[:, None] * freq)


alike(
    "linear-scaling",
    "Blaizzy/mlx-vlm#1709",
    "frequencies divided, or positions",
    scaled_frequencies,
    scaled_positions,
    SCALED,
)
unlike(
    "scaling-unused",
    "Blaizzy/mlx-vlm#1709",
    "rope scaling of the global layers is never used",
    scaled_frequencies,
    scaling_unused,
    SCALED,
)


YARN = "q: B H r 4, k: B H n 4, v: B H n 4, qa: r 2, ka: n 2 -> B H r 4"


def mscale(factor: float, weight: float) -> float:
    return 0.1 * weight * math.log(factor) + 1.0


def yarn_in_tables(q: Tensor, k: Tensor, v: Tensor, qa: Tensor, ka: Tensor) -> Tensor:
    """transformers' YaRN: cosines and sines are times the attention factor."""
    factor = mscale(40.0, 1.0)
    return attention(rotate_half(q, qa) * factor, rotate_half(k, ka) * factor, v)


def yarn_in_scale(q: Tensor, k: Tensor, v: Tensor, qa: Tensor, ka: Tensor) -> Tensor:
    """DeepSeek's: the scale of scores is times its square."""
    factor = mscale(40.0, 1.0)
    scores = rotate_half(q, qa) @ rotate_half(k, ka).transpose(-1, -2)
    return torch.softmax(scores * factor * factor * SCALE, dim=-1) @ v


def yarn_wrong_mscale(q: Tensor, k: Tensor, v: Tensor, qa: Tensor, ka: Tensor) -> Tensor:
    """The scale is made of mscale = 0.707 for mscale_all_dim = 1."""
    factor = mscale(40.0, 0.707)
    scores = rotate_half(q, qa) @ rotate_half(k, ka).transpose(-1, -2)
    return torch.softmax(scores * factor * factor * SCALE, dim=-1) @ v


def yarn_no_mscale(q: Tensor, k: Tensor, v: Tensor, qa: Tensor, ka: Tensor) -> Tensor:
    scores = rotate_half(q, qa) @ rotate_half(k, ka).transpose(-1, -2)
    return torch.softmax(scores * SCALE, dim=-1) @ v


alike(
    "yarn",
    "NVIDIA/Megatron-LM#1429",
    "YaRN's factor in the tables, or its square in the scale",
    yarn_in_tables,
    yarn_in_scale,
    YARN,
)
unlike(
    "yarn-mscale",
    "NVIDIA/Megatron-LM#1429",
    "the scale is made of mscale, not of mscale_all_dim",
    yarn_in_scale,
    yarn_wrong_mscale,
    YARN,
)
unlike(
    "yarn-no-mscale",
    "huggingface/transformers#47435",
    "the factor is missing from the scale",
    yarn_in_scale,
    yarn_no_mscale,
    YARN,
)


LONG = "q: B H m 4, k: B H n 4, k1: B H m 4, short: 2, long: 2 -> B H m (n + m)"


def long_factors(
    q: Tensor,
    k: Tensor,
    k1: Tensor,
    short: Tensor,  # noqa: ARG001
    long: Tensor,
) -> Tensor:
    k = torch.cat((k, k1), dim=2)
    angles = torch.arange(k.shape[2])[:, None] * long
    return rotate_half(q, angles[-q.shape[2] :]) @ rotate_half(k, angles).transpose(-1, -2)


def factors_of_each_chunk(q: Tensor, k: Tensor, k1: Tensor, short: Tensor, long: Tensor) -> Tensor:
    """The cached chunk was short when it was rotated; the next one is not."""
    old = rotate_half(k, torch.arange(k.shape[2])[:, None] * short)
    angles = (torch.arange(k1.shape[2]) + k.shape[2])[:, None] * long
    keys = torch.cat((old, rotate_half(k1, angles)), dim=2)
    return rotate_half(q, angles) @ keys.transpose(-1, -2)


unlike(
    "longrope-chunks",
    "trymirai/uzu#604",
    "LongRoPE's factors are chosen for each chunk anew",
    long_factors,
    factors_of_each_chunk,
    LONG,
)


MROPE = "x: B H n 8, cos: 3 n 8, sin: 3 n 8 -> B H n 8"
SECTION = (2, 1, 1)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    x1, x2 = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-x2, x1), dim=-1) * sin


def mrope(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Qwen2-VL: sections of time, height and width, twice."""
    parts = list(SECTION * 2)
    cos, sin = (
        torch.cat([m[i % 3] for i, m in enumerate(torch.split(table, parts, dim=-1))], dim=-1)
        for table in (cos, sin)
    )
    return rotate(x, cos, sin)


def mrope_by_slices(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """The halves of a head rotated, each with the channels of its three axes."""

    def half(table: Tensor, first: int) -> Tensor:
        ends = (first, first + 2, first + 3, first + 4)
        return torch.cat([table[axis, :, ends[axis] : ends[axis + 1]] for axis in range(3)], dim=-1)

    x1, x2 = x[..., :4], x[..., 4:]
    return torch.cat(
        (x1 * half(cos, 0) - x2 * half(sin, 0), x2 * half(cos, 4) + x1 * half(sin, 4)), dim=-1
    )


def mrope_not_twice(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """The sections are taken to be of the whole head."""
    parts = [2 * size for size in SECTION]
    cos, sin = (
        torch.cat([m[i] for i, m in enumerate(torch.split(table, parts, dim=-1))], dim=-1)
        for table in (cos, sin)
    )
    return rotate(x, cos, sin)


alike(
    "mrope",
    "NVIDIA-NeMo/Megatron-Bridge#1776",
    "M-RoPE's sections cut out of a head, or of its halves",
    mrope,
    mrope_by_slices,
    MROPE,
)
unlike(
    "mrope-sections",
    "NVIDIA-NeMo/Megatron-Bridge#1776",
    "sections of half a head taken for a head",
    mrope,
    mrope_not_twice,
    MROPE,
)


INDEXER = "q: B H r 4, k: B n 4 -> B H r n"
HADAMARD = ((1.0, 1.0, 1.0, 1.0), (1.0, -1.0, 1.0, -1.0),
            (1.0, 1.0, -1.0, -1.0), (1.0, -1.0, -1.0, 1.0))  # fmt: skip


def indexer(q: Tensor, k: Tensor) -> Tensor:
    return q @ k[:, None].transpose(-1, -2)


def rotated_indexer(q: Tensor, k: Tensor) -> Tensor:
    hadamard = torch.tensor(HADAMARD, dtype=q.dtype) * 0.5
    return (q @ hadamard) @ (k @ hadamard)[:, None].transpose(-1, -2)


def rotated_query(q: Tensor, k: Tensor) -> Tensor:
    hadamard = torch.tensor(HADAMARD, dtype=q.dtype) * 0.5
    return (q @ hadamard) @ k[:, None].transpose(-1, -2)


alike(
    "hadamard",
    "ROCm/ATOM#1507",
    "a Hadamard rotation of queries and keys leaves the scores",
    indexer,
    rotated_indexer,
    INDEXER,
)
unlike(
    "hadamard-query",
    "ROCm/ATOM#1507",
    "the rotation is applied to the query alone",
    indexer,
    rotated_query,
    INDEXER,
)


MLA = (
    "q: B 2 r 4, qr: B 2 r 4, c: B n 3, kr: B n 4, wk: 2 4 3, wv: 2 5 3, "
    "qa: r 2, ka: n 2 -> B 2 r 5"
)
MLA_SCALE = 8**-0.5


def latent_expanded(
    q: Tensor, qr: Tensor, c: Tensor, kr: Tensor, wk: Tensor, wv: Tensor, qa: Tensor, ka: Tensor
) -> Tensor:
    """Training: keys and values are made of the latents, one rotary key for all heads."""
    k = torch.einsum("bsl,hdl->bhsd", c, wk)
    v = torch.einsum("bsl,hdl->bhsd", c, wv)
    shared = rotate_pairs(kr, ka)[:, None].expand(-1, k.shape[1], -1, -1)
    q, k = torch.cat((q, rotate_pairs(qr, qa)), dim=-1), torch.cat((k, shared), dim=-1)
    return torch.softmax(q @ k.transpose(-1, -2) * MLA_SCALE, dim=-1) @ v


def latent_absorbed(
    q: Tensor, qr: Tensor, c: Tensor, kr: Tensor, wk: Tensor, wv: Tensor, qa: Tensor, ka: Tensor
) -> Tensor:
    """Decoding: the projections go into query and output."""
    scores = torch.einsum("bhtd,hdl,bsl->bhts", q, wk, c)
    scores = scores + torch.einsum("bhtd,bsd->bhts", rotate_pairs(qr, qa), rotate_pairs(kr, ka))
    weights = torch.softmax(scores * MLA_SCALE, dim=-1)
    return torch.einsum("bhts,bsl,hdl->bhtd", weights, c, wv)


def latent_scaled_by_width(
    q: Tensor, qr: Tensor, c: Tensor, kr: Tensor, wk: Tensor, wv: Tensor, qa: Tensor, ka: Tensor
) -> Tensor:
    """The scale is of the latent and the rotary part, 3 + 4, which the kernel multiplies."""
    query = torch.cat((torch.einsum("bhtd,hdl->bhtl", q, wk), rotate_pairs(qr, qa)), dim=-1)
    key = torch.cat((c, rotate_pairs(kr, ka)), dim=-1)
    scores = torch.einsum("bhtl,bsl->bhts", query, key) * query.shape[-1] ** -0.5
    return torch.einsum("bhts,bsl,hdl->bhtd", torch.softmax(scores, dim=-1), c, wv)


alike(
    "latent",
    "vllm-project/vllm#48305",
    "MLA as the trainer has it, and as the engine decodes",
    latent_expanded,
    latent_absorbed,
    MLA,
)
unlike(
    "latent-scale",
    "vllm-project/vllm#48305",
    "the engine's scale is of the latent's width",
    latent_expanded,
    latent_scaled_by_width,
    MLA,
)
