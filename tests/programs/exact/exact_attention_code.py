"""Attention and layers as people write them, right and with a fault planted, for finite fields."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.subjects import Attention

from .exact_code import D, H, rotate


def plain(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    often = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(often, 1), v.repeat_interleave(often, 1)
    scores = torch.einsum("bhtd,bhsd->bhts", q, k) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9) if mask.dtype == torch.bool else scores + mask
    return torch.einsum("bhts,bhsd->bhtd", scores.softmax(-1), v)


def by_hand(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    often = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(often, 1), v.repeat_interleave(often, 1)
    scores = q @ k.mT * 0.25
    if mask is not None:
        if mask.dtype == torch.bool:
            mask = (1.0 - mask.to(q.dtype)) * torch.finfo(q.dtype).min
        scores = scores + mask
    weights = torch.exp(scores - scores.amax(-1, keepdim=True))
    return weights / weights.sum(-1, keepdim=True) @ v


def fused(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)


def causal(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    n, m = q.shape[2], k.shape[2]
    seen = torch.arange(n)[:, None] + m - n >= torch.arange(m)
    return fused(q, k, v, seen if mask is None else seen & mask)


CAUSAL = DeclaredAttention(causal=True)


def attention(how: Any = plain, **more: Any) -> Attention:
    given = {"masks": ("bool", "float"), **more}
    return Attention(name="attention", attend=how, heads=H, groups=2, width=D, **given)


def by_key(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    return fused(q, k * torch.arange(k.shape[2])[:, None], v, mask)


def top_left(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    return functional.scaled_dot_product_attention(
        q, k, v, is_causal=mask is None, attn_mask=mask, enable_gqa=True
    )


class Block(nn.Module):
    """RMSNorm, attention and SwiGLU as in a decoder, without positions; ``fault`` names one."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(12, 36, bias=False), nn.Linear(12, 12, bias=False)
        self.gate, self.up, self.down = nn.Linear(12, 20), nn.Linear(12, 20), nn.Linear(20, 12)
        self.weight, self.fault = nn.Parameter(torch.rand(12)), fault
        self.drop = nn.Dropout(0.1)

    def norm(self, x: Tensor) -> Tensor:
        dim = 1 if self.fault == "norm over tokens and causal" else -1
        return x * torch.rsqrt(x.pow(2).mean(dim, keepdim=True) + 1e-6) * self.weight

    def mixed(self, x: Tensor) -> Tensor:
        b, t, _ = x.shape
        q, k, v = self.qkv(x).split(12, -1)
        if self.fault == "heads by view alone":
            q, k, v = (p.reshape(b, 3, t, 4) for p in (q, k, v))
        else:
            q, k, v = (p.unflatten(-1, (3, 4)).transpose(1, 2) for p in (q, k, v))
        scores = q @ k.transpose(-1, -2) / 2
        if "causal" in self.fault:
            scores = scores.masked_fill(torch.ones(t, t).tril() == 0, float("-inf"))
        found = self.drop(functional.softmax(scores, -1)) @ v
        if self.fault == "heads by view alone":
            mixed: Tensor = self.out(found.reshape(b, t, 12))
        else:
            mixed = self.out(found.transpose(1, 2).contiguous().view(b, t, 12))
        return mixed

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.mixed(self.norm(x))
        y = self.norm(x)
        if self.fault == "a token of the past":
            y = y + y.roll(1, 1)
        found: Tensor = x + self.down(functional.silu(self.gate(y)) * self.up(y))
        return found


class Cached(nn.Module):
    """Causal attention on tokens, with a cache; ``fault`` names one."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        self.qkv, self.fault = nn.Linear(D, 3 * D), fault

    def forward(self, x: Tensor) -> Tensor:
        return self.step(x, None)[0]

    def step(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        q, k, v = self.qkv(x)[:, None].chunk(3, -1)
        start = 0 if state is None or self.fault == "place" else state[0].shape[2]
        places = torch.arange(start, start + x.shape[1])[None]
        q, k = rotate(q, places), rotate(k, places)
        if state is not None:
            k, v = torch.cat([state[0], k], 2), torch.cat([state[1], v], 2)
        n, m = q.shape[2], k.shape[2]
        seen = torch.ones(n, m, dtype=torch.bool).tril(0 if self.fault == "mask" else m - n)
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)[:, 0], (k, v)


def cached(fault: str = "") -> Attention:
    module = Cached(fault)
    return Attention(
        name="cached", layer=module, step=module.step, module=module, embed=D, declared=CAUSAL
    )


class Documents(nn.Module):
    """Attention within documents, by position ids that start again."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        self.qkv, self.fault = nn.Linear(D, 3 * D), fault

    def forward(self, x: Tensor, ids: Tensor) -> Tensor:
        q, k, v = self.qkv(x)[:, None].chunk(3, -1)
        document = (ids == 0).cumsum(-1)
        seen = document[:, None, :, None] == document[:, None, None, :]
        if self.fault:
            seen = torch.ones_like(seen)
        q, k = rotate(q, ids), rotate(k, ids)
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)[:, 0]


def documents(fault: str = "") -> Attention:
    module = Documents(fault)
    return Attention(
        name="packed",
        layer=lambda x: module(x, torch.arange(x.shape[1]).expand(x.shape[:2])),
        documents=module,
        module=module,
        embed=D,
    )


def with_(subject: Any, **more: Any) -> Any:
    return replace(subject, **more)
