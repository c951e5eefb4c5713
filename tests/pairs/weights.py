"""Weights that are stored otherwise: permuted, fused, sharded, padded; modules with both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, scaled_dot_product_attention, silu

from .corpus import alike, unlike
from .plain import attention, heads, joined, rotate_half, rotate_pairs

# Two heads of 4 features; tokens have 6.
SCORES = "x: B n 6, wq: 8 6, wk: 8 6, angles: n 2 -> B 2 n n"


def permute(w: Tensor, count: int = 2) -> Tensor:
    """transformers' convert_llama_weights_to_hf: pairs to halves, head by head."""
    rows, width = w.shape
    return w.view(count, rows // count // 2, 2, width).transpose(1, 2).reshape(rows, width)


def scores_of_pairs(x: Tensor, wq: Tensor, wk: Tensor, angles: Tensor) -> Tensor:
    q, k = (rotate_pairs(heads(x @ w.T, 2), angles) for w in (wq, wk))
    return q @ k.transpose(-1, -2)


def scores_of_halves(x: Tensor, wq: Tensor, wk: Tensor, angles: Tensor) -> Tensor:
    """The repack reads the tensor as it is stored."""
    q, k = (rotate_half(heads(x @ w.T, 2), angles) for w in (wq, wk))
    return q @ k.transpose(-1, -2)


def scores_permuted(x: Tensor, wq: Tensor, wk: Tensor, angles: Tensor) -> Tensor:
    return scores_of_halves(x, permute(wq), permute(wk), angles)


def scores_permuted_as_one_head(x: Tensor, wq: Tensor, wk: Tensor, angles: Tensor) -> Tensor:
    return scores_of_halves(x, permute(wq, 1), permute(wk, 1), angles)


alike(
    "permuted",
    "ggml-org/llama.cpp#22611",
    "halves rotated, of permuted weights of q and k",
    scores_of_pairs,
    scores_permuted,
    SCORES,
)
unlike(
    "not-permuted",
    "ggml-org/llama.cpp#22611",
    "the repack skips the permutation of q and k",
    scores_of_pairs,
    scores_of_halves,
    SCORES,
)
unlike(
    "permuted-as-one-head",
    "foundation-model-stack/foundation-model-stack#527",
    "heads are counted wrongly: the permutation is of all rows at once",
    scores_of_pairs,
    scores_permuted_as_one_head,
    SCORES,
)


class Layer(nn.Module):
    """Llama's attention without an output projection; angles are given."""

    rotate = staticmethod(rotate_half)

    def __init__(self) -> None:
        super().__init__()
        self.q_proj = nn.Linear(6, 8, bias=False)
        self.k_proj = nn.Linear(6, 8, bias=False)
        self.v_proj = nn.Linear(6, 8, bias=False)

    def forward(self, x: Tensor, angles: Tensor) -> Tensor:
        q, k, v = (heads(one(x), 2) for one in (self.q_proj, self.k_proj, self.v_proj))
        return joined(attention(self.rotate(q, angles), self.rotate(k, angles), v))


class MetaLayer(nn.Module):
    """The same as Meta's checkpoints have it: pairs are rotated."""

    def __init__(self) -> None:
        super().__init__()
        self.wq = nn.Linear(6, 8, bias=False)
        self.wk = nn.Linear(6, 8, bias=False)
        self.wv = nn.Linear(6, 8, bias=False)

    def forward(self, x: Tensor, angles: Tensor) -> Tensor:
        q, k, v = (heads(one(x), 2) for one in (self.wq, self.wk, self.wv))
        return joined(attention(rotate_pairs(q, angles), rotate_pairs(k, angles), v))


PERMUTED = [0, 2, 1, 3, 4, 6, 5, 7]
LAYER = "x: B n 6, angles: n 2 -> B n 8"


def converted(held: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    return {
        "q_proj.weight": held["wq.weight"][PERMUTED],
        "v_proj.weight": held["wv.weight"],
        "k_proj.weight": held["wk.weight"][PERMUTED],
    }


def loaded(held: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    return {f"{name}_proj.weight": held[f"w{name}.weight"] for name in "qkv"}


alike(
    "checkpoint",
    "nurl-lang/nurl#584",
    "a checkpoint of pairs, permuted for a layer of halves",
    MetaLayer(),
    Layer(),
    LAYER,
    weights_by_hand=converted,
    weights="q_proj.weight = wq.weight[[0, 2, 1, 3, 4, 6, 5, 7]], "
    "k_proj.weight = wk.weight[[0, 2, 1, 3, 4, 6, 5, 7]], v_proj.weight = wv.weight",
)
unlike(
    "checkpoint-as-stored",
    "nurl-lang/nurl#584",
    "safetensors are loaded without the permutation",
    MetaLayer(),
    Layer(),
    LAYER,
    weights_by_hand=loaded,
    weights="q_proj.weight = wq.weight, k_proj.weight = wk.weight, v_proj.weight = wv.weight",
)


class Fused(nn.Module):
    """One projection for queries, keys and values; two groups of two queries, a key and a value."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(6, 16)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        grouped = self.qkv(x).view(batch, length, 2, 4, 2)
        q, k, v = grouped.split((2, 1, 1), dim=3)
        q = q.reshape(batch, length, 4, 2).transpose(1, 2)
        k, v = (
            one.expand(-1, -1, -1, 2, -1).reshape(batch, length, 4, 2).transpose(1, 2)
            for one in (k, v)
        )
        return joined(scaled_dot_product_attention(q, k, v))


class Separate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q = nn.Linear(6, 8)
        self.k = nn.Linear(6, 4)
        self.v = nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = heads(self.q(x), 4), heads(self.k(x), 2), heads(self.v(x), 2)
        k, v = k.repeat_interleave(2, dim=1), v.repeat_interleave(2, dim=1)
        return joined(scaled_dot_product_attention(q, k, v))


Q_ROWS = [0, 1, 2, 3, 8, 9, 10, 11]
K_ROWS, V_ROWS = [4, 5, 12, 13], [6, 7, 14, 15]


def rows(**told: list[int]) -> dict[str, Any]:
    """Which rows of the fused weight and bias are those of q, k and v."""

    def by_hand(held: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {
            f"{name}.{kind}": held[f"qkv.{kind}"][own]
            for name, own in told.items()
            for kind in ("weight", "bias")
        }

    text = ", ".join(
        f"{name}.{kind} = qkv.{kind}[{own}]"
        for name, own in told.items()
        for kind in ("weight", "bias")
    )
    return {"weights": text, "weights_by_hand": by_hand}


TOKENS = "x: B n 6 -> B n 8"
alike(
    "fused-groups",
    "vllm-project/vllm#55335",
    "Megatron's fused QKV in groups, taken apart",
    Fused(),
    Separate(),
    TOKENS,
    **rows(q=Q_ROWS, k=K_ROWS, v=V_ROWS),
)
unlike(
    "fused-as-blocks",
    "AI-Hypercomputer/maxtext#1839",
    "groups are read as all q, all k, all v",
    Fused(),
    Separate(),
    TOKENS,
    **rows(q=list(range(8)), k=list(range(8, 12)), v=list(range(12, 16))),
)


SHARDED = "x: B n 6, qkv: 24 6 -> B n 8"


def whole_qkv(x: Tensor, qkv: Tensor) -> Tensor:
    q, k, v = (heads(one, 4) for one in (x @ qkv.T).chunk(3, dim=-1))
    return joined(attention_of_2(q, k, v))


def attention_of_2(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return scaled_dot_product_attention(q, k, v)


def resharded(x: Tensor, qkv: Tensor) -> Tensor:
    """Two ranks: of q, k and v each its half."""
    outs = []
    for rank in (0, 1):
        own = torch.cat([w.chunk(2)[rank] for w in qkv.chunk(3)])
        outs.append(attention_of_2(*(heads(one, 2) for one in (x @ own.T).chunk(3, dim=-1))))
    return joined(torch.cat(outs, dim=1))


def resharded_as_rows(x: Tensor, qkv: Tensor) -> Tensor:
    """Two ranks: of the fused rows the first half and the second."""
    parts = [(x @ own.T).chunk(3, dim=-1) for own in qkv.chunk(2)]
    outs = [attention_of_2(*(heads(one, 2) for one in part)) for part in parts]
    return joined(torch.cat(outs, dim=1))


alike(
    "resharded",
    "ai-dynamo/modelexpress#650",
    "fused rows resharded part by part",
    whole_qkv,
    resharded,
    SHARDED,
)
unlike(
    "resharded-as-rows",
    "ai-dynamo/modelexpress#650",
    "fused rows cut in two as they stand",
    whole_qkv,
    resharded_as_rows,
    SHARDED,
)


GATED = "x: B n 4, gate: 6 4, up: 6 4, down: 4 6 -> B n 4"


def swiglu(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    return (silu(x @ gate.T) * (x @ up.T)) @ down.T


def merged_gate_up(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    """vLLM's gate_up_proj and SiluAndMul."""
    both = linear(x, torch.cat((gate, up)))
    half = both.shape[-1] // 2
    return linear(silu(both[..., :half]) * both[..., half:], down)


def merged_up_gate(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    return merged_gate_up(x, up, gate, down)


alike(
    "gate-up",
    "NVIDIA-NeMo/RL#1513",
    "a fused gate and up projection",
    swiglu,
    merged_gate_up,
    GATED,
)
unlike(
    "up-gate",
    "NVIDIA-NeMo/Automodel#787",
    "gate and up are stored in the other order",
    swiglu,
    merged_up_gate,
    GATED,
)
