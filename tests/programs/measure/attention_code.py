"""Attention code as people write it, right and (by an argument) wrong, for tests of probes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.execution.draw import Draw
from attnproof.programs.measure.examine import examine
from attnproof.programs.subjects import Attention, Layer, Subject

CAUSAL = DeclaredAttention(causal=True)
FULL = DeclaredAttention(causal=False)
THREE = DeclaredAttention(causal=True, window=3)


def found(subject: Subject, law: str, seed: int = 1) -> Any:
    one, *_ = examine(subject, [Draw(seed)], {law})  # what gives no numbers is found first
    return one


def refused(subject: Subject, law: str) -> Any:
    """What is found of a fault, which is refused with a witness."""
    one = found(subject, law)
    assert one.verdict == "broken", one.why
    assert one.witness.difference > one.witness.allowed
    return one


def in_formats(names: Iterable[str]) -> list[tuple[str, torch.dtype]]:
    """Each in bfloat16, which rounds most, one in float32; both are looked at in float64 first."""
    short = [(name, torch.bfloat16) for name in names]
    return [(short[0][0], torch.float32), *short]


def quiet(subject: Subject, dtype: torch.dtype, laws: tuple[str, ...]) -> None:
    """No law is broken, or cannot be decided, of correct code."""
    for one in examine(subject, [Draw(3, dtype)], laws):
        assert one.verdict in ("holds", "not asked"), (one.law, one.why)


class Experts(nn.Module):
    """A causal sum that rounds, then the expert of each token, by one product of all rows."""

    def __init__(self, leak: float) -> None:
        super().__init__()
        drawn = torch.randn(2, 32, 32, generator=torch.Generator().manual_seed(1))
        self.experts, self.leak = nn.Parameter(drawn), leak

    def forward(self, x: Tensor) -> Tensor:
        total = x.sum(1, keepdim=True)
        x = (x.cumsum(1) + total) - total + self.leak * total
        rows = x.flatten(0, 1)
        order = torch.sort((rows[:, 0] > 0).int(), stable=True)
        ends = torch.stack(((order.values == 0).sum(), torch.tensor(len(rows)))).int()
        found = torch._grouped_mm(rows[order.indices], self.experts, offs=ends)
        return found[order.indices.argsort()].reshape(x.shape)


def eager(  # noqa: C901
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    *,
    fault: str = "",
    causal: bool = False,
    window: int = 0,
    scale: float | None = None,
) -> Tensor:
    """softmax(q kᵀ scale + mask) v, in einsum, with groups of heads; hidden rows read zeros."""
    heads, groups = q.shape[1], k.shape[1]
    each = heads // groups
    if fault == "tiled":
        k, v = k.repeat(1, each, 1, 1), v.repeat(1, each, 1, 1)
    else:
        k, v = k.repeat_interleave(each, 1), v.repeat_interleave(each, 1)
    if fault == "head-of-values":
        v = v.roll(1, 1)
    width = q.shape[-1]
    by = scale if scale is not None else 1 / math.sqrt(width)
    wrong = {"no-scale": 1.0, "inverse": math.sqrt(width), "embed": 1 / math.sqrt(heads * width)}
    by = wrong.get(fault, by)
    scores = torch.einsum("bhtd,bhsd->bhts", q, k) * by
    t, s = scores.shape[-2:]
    offset = 0 if fault == "start" else s - t
    ahead = torch.arange(s)[None] - (torch.arange(t)[:, None] + offset)
    hidden = torch.zeros(1, 1, t, s, dtype=torch.bool)
    if causal and fault != "no-mask":
        hidden = hidden | (ahead > 0)
    if window and not (fault == "window-needs-mask" and mask is None):
        hidden = hidden | (ahead <= -(window + (1 if fault == "window-plus-one" else 0)))
    if fault == "forgets-first":
        hidden = hidden | ((torch.arange(s) == 0) & (ahead < 0))
    if mask is not None and mask.dtype == torch.bool:
        hidden = hidden | (mask if fault == "inverted" else ~mask)
    elif mask is not None:
        if fault == "float-as-bool":
            hidden = hidden | (mask != 0)
        else:
            scores = scores + mask
    fill = {"small-fill": -1e-9, "finfo": torch.finfo(scores.dtype).min}.get(fault, -math.inf)
    scores = scores.masked_fill(hidden, fill)
    if fault == "queries":
        weights = scores.softmax(-2)
    elif fault == "unstable":
        weights = scores.exp() / scores.exp().sum(-1, keepdim=True)
    elif fault == "bent":
        weights = (scores * torch.arange(1, s + 1)).softmax(-1)
    else:
        weights = scores.softmax(-1)
        if fault not in ("nan-rows", "finfo"):
            weights = weights.masked_fill(scores.isneginf().all(-1, keepdim=True), 0.0)
    out = torch.einsum("bhts,bhsd->bhtd", weights, v)
    if fault == "mixes-heads":
        out = out + 0.01 * out.roll(1, 1)
    if fault == "dropout":
        out = functional.dropout(out, 0.3)
    return out


def code(
    fault: str = "",
    declared: DeclaredAttention | None = None,
    heads: int = 4,
    groups: int = 4,
    masks: tuple[str, ...] = ("bool", "float"),
    **settings: Any,
) -> Attention:
    """Eager attention on queries, keys and values."""

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        return eager(q, k, v, mask, fault=fault, **settings)

    return Attention(
        name=fault or "eager",
        attend=attend,
        heads=heads,
        groups=groups,
        width=5,
        masks=masks,
        declared=declared,
    )


def sdpa(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)


def sdpa_causal(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    assert mask is None
    return functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


class Cached(nn.Module):
    """Causal attention with RoPE and a preallocated cache; positions count what is there."""

    frequency: Tensor

    def __init__(
        self,
        embed: int = 20,
        heads: int = 4,
        groups: int = 2,
        window: int = 0,
        dropout: float = 0.0,
        fault: str = "",
    ) -> None:
        super().__init__()
        self.heads, self.groups, self.width, self.window = heads, groups, embed // heads, window
        self.fault, self.dropout = fault, dropout
        self.width -= self.width % 2
        self.q = nn.Linear(embed, heads * self.width)
        self.kv = nn.Linear(embed, 2 * groups * self.width)
        self.out = nn.Linear(heads * self.width, embed)
        self.register_buffer("frequency", 10000.0 ** (-torch.arange(0, self.width, 2) / self.width))

    def rotate(self, x: Tensor, positions: Tensor) -> Tensor:
        angles = positions[:, None, :, None].to(x) * self.frequency.to(x)
        a, b = x.chunk(2, -1)
        cos, sin = angles.cos(), angles.sin()
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    def forward(  # noqa: C901
        self,
        x: Tensor,
        state: Any = None,
        pads: Tensor | None = None,
        cached: bool = False,
        start: int = 0,
        ids: Tensor | None = None,
    ) -> Any:
        b, t, _ = x.shape
        n = 0 if state is None else state[2]
        place = torch.arange(n, n + t).expand(b, t) + start
        if pads is not None and not (self.fault == "shared-positions" and n):
            place = place - pads[:, None]
        if self.fault == "no-offset" and n:
            place = place - n
        if ids is not None:
            place = ids
        q = self.q(x).view(b, t, self.heads, self.width).transpose(1, 2)
        k, v = self.kv(x).view(b, t, self.groups, 2 * self.width).transpose(1, 2).chunk(2, -1)
        q, k = self.rotate(q, place), self.rotate(k, place)
        if self.fault == "absolute":
            v = v * (1 + place[:, None, :, None].to(v) / 10)
        if cached:
            if state is None:
                state = (k.new_zeros(b, self.groups, 64, self.width),) * 2 + (0,)
            keys, values = state[0].clone(), state[1].clone()
            keys[:, :, n : n + t], values[:, :, n : n + t] = k, v
            state = keys, values, n + t
            long = 64 if self.fault == "whole-cache" else n + t
            k, v = keys[:, :, :long], values[:, :, :long]
        s = k.shape[2]
        ahead = torch.arange(s)[None] - (torch.arange(t)[:, None] + n)
        seen = ahead <= 0
        if self.fault == "square" and n:
            seen = (torch.arange(t)[None] <= torch.arange(t)[:, None]).expand(t, s)
        if self.fault == "start" and n:
            seen = torch.arange(s)[None] <= torch.arange(t)[:, None]
        if (self.fault == "no-mask" and cached) or self.fault == "whole-cache":
            seen = torch.ones_like(seen)
        if self.window:
            seen = seen & (ahead > -self.window - (self.fault == "window"))
        mask = seen.expand(b, 1, t, s)
        if pads is not None and self.fault != "sees-padding":
            mask = mask & (torch.arange(s)[None] >= pads[:, None])[:, None, None]
        if ids is not None and self.fault != "one-document":
            number = (ids == 0).cumsum(1)
            mask = mask & (number[:, None, :, None] == number[:, None, None, :])
        drop = self.dropout if self.training or self.fault == "always-drops" else 0.0
        if self.fault == "training-leaks" and self.training:
            mask = torch.ones_like(mask)
        out = eager(q, k, v, mask, scale=self.width**-0.5)
        out = functional.dropout(out, drop)
        if self.fault == "dropout-lost" and not self.training:
            self.dropout = 0.0
        out = self.out(out.transpose(1, 2).flatten(2))
        return (out, state) if cached else out


def cached(
    fault: str = "",
    declared: DeclaredAttention = CAUSAL,
    window: int = 0,
    dropout: float = 0.0,
    seed: int = 0,
) -> Attention:
    torch.manual_seed(seed)
    one = Cached(fault=fault, window=window, dropout=dropout)
    return Attention(
        name=fault or "cached",
        module=one,
        layer=one,
        embed=20,
        heads=4,
        groups=2,
        width=4,
        step=lambda x, state: one(x, state, cached=True),
        padded_step=lambda x, state, pads: one(x, state, pads, cached=True),
        hide=lambda x, counts: (
            one(x, None, (~counts).sum(1)) if bool(counts[:, -1].all()) else one(x)
        ),
        documents=lambda x, ids: one(x, ids=ids),
        whole_layer=lambda x, start: one(x, start=start),
        dropout=dropout,
        declared=declared,
        make=lambda dropout=0.0: cached(fault, declared, window, dropout, seed),
    )


def multihead(fast: bool = True, fault: str = "", seed: int = 0, dropout: float = 0.0) -> Attention:
    """nn.MultiheadAttention over tokens; the fast path runs where no weights are asked for."""
    torch.manual_seed(seed)
    one = nn.MultiheadAttention(20, 4, batch_first=fault != "batch-first", dropout=dropout)

    def layer(x: Tensor) -> Tensor:
        output: Tensor = one(x, x, x, need_weights=not fast)[0]
        return output

    def hide(x: Tensor, counts: Tensor) -> Tensor:
        hidden = counts if fault == "inverted" else ~counts
        if fault == "ignored":
            hidden = torch.zeros_like(counts)
        output: Tensor = one(x, x, x, key_padding_mask=hidden, need_weights=not fast)[0]
        return output

    return Attention(
        name="multihead",
        module=one,
        layer=layer,
        hide=hide,
        embed=20,
        heads=4,
        groups=4,
        width=5,
        dropout=dropout,
        declared=FULL,
        make=lambda dropout=0.0: multihead(fast, fault, seed, dropout),
    )


def encoder(seed: int = 0) -> Attention:
    """nn.TransformerEncoderLayer, in evaluation on its fast path."""
    torch.manual_seed(seed)
    one = nn.TransformerEncoderLayer(20, 4, 24, dropout=0.1, batch_first=True)
    return Attention(
        name="encoder",
        module=one,
        layer=one,
        embed=20,
        heads=4,
        groups=4,
        width=5,
        hide=lambda x, counts: one(x, src_key_padding_mask=~counts),
        declared=FULL,
        dropout=0.1,
    )


class Split(nn.Module):
    """Attention over tokens without a mask; faults: heads by view only, softmax of queries."""

    def __init__(self, fault: str = "", embed: int = 20, heads: int = 4) -> None:
        super().__init__()
        self.heads, self.fault = heads, fault
        self.qkv, self.out = nn.Linear(embed, 3 * embed), nn.Linear(embed, embed)

    def forward(self, x: Tensor) -> Tensor:
        b, t, e = x.shape
        q, k, v = self.qkv(x).chunk(3, -1)
        if self.fault == "view":
            q, k, v = (one.reshape(b, self.heads, t, e // self.heads) for one in (q, k, v))
            mixed: Tensor = self.out(eager(q, k, v).reshape(b, t, e))
            return mixed
        q, k, v = (one.view(b, t, self.heads, -1).transpose(1, 2) for one in (q, k, v))
        output: Tensor = self.out(eager(q, k, v, fault=self.fault).transpose(1, 2).flatten(2))
        return output


def split(
    fault: str = "", declared: DeclaredAttention | None = FULL, heads: int = 4, seed: int = 0
) -> Attention:
    torch.manual_seed(seed)
    one = Split(fault, heads=heads)
    return Attention(
        name=fault or "split",
        module=one,
        layer=one,
        embed=20,
        heads=heads,
        groups=heads,
        width=20 // heads,
        declared=declared,
    )


def any_layer(one: nn.Module, embed: int = 20, declared: DeclaredAttention | None = None) -> Layer:
    return Layer(name="layer", module=one, call=one, embed=embed, declared=declared)
