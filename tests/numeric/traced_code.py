"""Code that people write, to be traced: each with what it is, and false neighbours."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH = 16
LADDER = 10000.0 ** (-torch.arange(0, WIDTH, 2) / WIDTH)
TABLE = torch.arange(512)[:, None] * LADDER
COSINES, SINES = TABLE.cos(), TABLE.sin()


def angles(p: Tensor, ladder: Tensor = LADDER) -> Tensor:
    return p[:, None, :, None].float() * ladder


def neighbours(x: Tensor, a: Tensor) -> Tensor:
    e, o, c, s = x[..., ::2], x[..., 1::2], a.cos(), a.sin()
    return torch.stack((e * c - o * s, e * s + o * c), -1).flatten(-2)


def interleaved(x: Tensor, p: Tensor) -> Tensor:
    return neighbours(x, angles(p))


def half(x: Tensor, p: Tensor) -> Tensor:
    a = torch.cat((angles(p), angles(p)), -1)
    e, o = x.chunk(2, -1)
    return x * a.cos() + torch.cat((-o, e), -1) * a.sin()


def complex_numbers(x: Tensor, p: Tensor) -> Tensor:
    rotates = torch.polar(torch.ones_like(angles(p)), angles(p))
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * rotates).flatten(3).type_as(x)


def written_in_place(x: Tensor, p: Tensor) -> Tensor:
    c, s, y = angles(p).cos(), angles(p).sin(), torch.empty_like(x)
    y[..., ::2] = x[..., ::2] * c - x[..., 1::2] * s
    y[..., 1::2] = x[..., ::2] * s + x[..., 1::2] * c
    return y


def partial(x: Tensor, p: Tensor) -> Tensor:
    return torch.cat((neighbours(x[..., :8], angles(p, LADDER[:4])), x[..., 8:]), -1)


def two_axes(x: Tensor, p: Tensor) -> Tensor:
    parts = [p[..., k, None].float() * LADDER[::2] for k in (0, 1)]
    return neighbours(x, torch.cat(parts, -1)[:, None])


def stored_table(x: Tensor, p: Tensor) -> Tensor:
    c, s, e, o = COSINES[p][:, None], SINES[p][:, None], x[..., :8], x[..., 8:]
    return torch.cat((e * c - o * s, o * c + e * s), -1)


def mixed_layouts(x: Tensor, p: Tensor) -> Tensor:
    a = angles(p).repeat_interleave(2, -1)
    e, o = x.chunk(2, -1)
    return x * a.cos() + torch.cat((-o, e), -1) * a.sin()


def absolute_in_the_score(x: Tensor, p: Tensor) -> Tensor:
    return interleaved(x, p) * (1 + p[:, None, :, None].float() / 8)


def running(x: Tensor) -> Tensor:
    return neighbours(x, torch.arange(x.shape[2])[:, None].float() * LADDER)


class Heads(nn.Module):
    """Attention on several heads, through the fused call or by hand."""

    def __init__(
        self, *, causal: bool = False, by_hand: bool = False, groups: int = 4, embed: int = 16
    ) -> None:
        super().__init__()
        self.causal, self.by_hand, self.groups = causal, by_hand, groups
        narrow = embed // 4 * groups
        self.q, self.o = nn.Linear(embed, embed), nn.Linear(embed, embed)
        self.k, self.v = nn.Linear(embed, narrow), nn.Linear(embed, narrow)
        self.register_buffer("past", torch.tril(torch.ones(64, 64)).bool())

    def split(self, x: Tensor, heads: int) -> Tensor:
        return x.view(*x.shape[:2], heads, -1).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        q = self.split(self.q(x), 4)
        k, v = (self.split(part(x), self.groups) for part in (self.k, self.v))
        if self.by_hand:
            y = self.written_out(q, k, v)
        else:
            y = functional.scaled_dot_product_attention(
                q, k, v, is_causal=self.causal, enable_gqa=self.groups != 4
            )
        found: Tensor = self.o(y.transpose(1, 2).reshape(x.shape))
        return found

    def written_out(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        k, v = (t.repeat_interleave(4 // self.groups, 1) for t in (k, v))
        scores = torch.einsum("bhid,bhjd->bhij", q, k) / 4**0.5
        if self.causal:
            past: Tensor = self.get_buffer("past")
            scores = scores.masked_fill(~past[: q.shape[2], : q.shape[2]], float("-inf"))
            return torch.einsum("bhij,bhjd->bhid", scores.softmax(-1), v)
        weights = (scores - scores.amax(-1, keepdim=True)).exp()
        return torch.einsum("bhij,bhjd->bhid", weights / weights.sum(-1, keepdim=True), v)


class Gated(nn.Module):
    """A block of Llama's kind: norms, attention with grouped heads, a gated map."""

    def __init__(self, embed: int = 16) -> None:
        super().__init__()
        self.attention, self.first, self.second = (
            Heads(groups=2),
            nn.RMSNorm(embed),
            nn.RMSNorm(embed),
        )
        self.gate, self.up = (nn.Linear(embed, 24, bias=False) for _ in range(2))
        self.down = nn.Linear(24, embed, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.first(x))
        y = self.second(x)
        found: Tensor = x + self.down(functional.silu(self.gate(y)) * self.up(y))
        return found


class Added(nn.Module):
    """A sinusoidal table, stored or computed, added to tokens."""

    def __init__(self, *, stored: bool, width: int = 16) -> None:
        super().__init__()
        self.stored, self.width = stored, width
        self.register_buffer("table", self.made(128))

    def made(self, n: int) -> Tensor:
        steps = torch.exp(torch.arange(0, self.width, 2) * (-math.log(10000.0) / self.width))
        a = torch.arange(n)[:, None] * steps
        return torch.stack((a.sin(), a.cos()), -1).flatten(1)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        return x + (self.get_buffer("table")[:n] if self.stored else self.made(n))


def alibi(queries: int, keys: int) -> Tensor:
    slopes = torch.tensor([2.0**-k for k in range(1, 9)])
    at = torch.arange(keys - queries, keys)
    return slopes[:, None, None] * (torch.arange(keys)[None] - at[:, None])


def alibi_from_the_start(queries: int, keys: int) -> Tensor:
    slopes = torch.tensor([2.0**-k for k in range(1, 9)])
    away = torch.arange(keys)[None] - torch.arange(queries)[:, None]
    return -slopes[:, None, None] * away.abs()


def window_of_queries(queries: int, keys: int) -> Tensor:
    return torch.tril(torch.ones(queries, keys, dtype=torch.bool), diagonal=keys - queries)


def from_the_start(queries: int, keys: int) -> Tensor:
    return torch.tril(torch.ones(queries, keys, dtype=torch.bool))


ROTARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    f.__name__: f for f in (interleaved, half, complex_numbers, written_in_place, partial)
}
