"""Small code that wants more than tokens: configs, forced masks, tables, two streams."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


@dataclass
class Sizes:
    """A config of which every size has a default that is large."""

    n_embd: int = 4096
    n_head: int = 32
    depth: int = 24
    bias: bool = True


class OfConfig(nn.Module):
    """Self-attention that reads its sizes off a config."""

    def __init__(self, config: Sizes, layer_index: int) -> None:
        super().__init__()
        torch.manual_seed(layer_index)
        self.attention = nn.MultiheadAttention(config.n_embd, config.n_head, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.attention(x, x, x)[0]
        return found


class OfArguments(nn.Module):
    """Self-attention that reads flags off a namespace, and wants one of two flags of its own."""

    def __init__(  # type: ignore[no-untyped-def]
        self, args, embed_dim: int, self_attention: bool = False, cross_attention: bool = False
    ) -> None:
        super().__init__()
        if self_attention == cross_attention:
            raise ValueError("wanted one of the two")
        self.args, self.scaled = args, not args.unscaled
        self.width = getattr(args, "inner_width", embed_dim)
        self.out = nn.Linear(embed_dim, args.encoder_embed_dim)

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        scores = query @ key.mT / (self.width**0.5 if self.scaled else 1.0)
        found: Tensor = self.out(scores.softmax(-1) @ value)
        return found


class HandedOn(OfConfig):
    """A constructor that hands on all that it gets."""

    def __init__(self, *args: Any, side: int = 2, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.side = side


class Unnamed(nn.Module):
    """A config with a size of which the name says nothing, and of which False is none."""

    def __init__(self, args) -> None:  # type: ignore[no-untyped-def]
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(8, 8) for _ in range(args.colour - 1))
        self.first = self.parts[0]

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.first(x)
        return found


class Projected(nn.Module):
    """What the following have: projections, and a sum over keys."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.q, self.k, self.v = (nn.Linear(12, 12) for _ in range(3))

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        found: Tensor = self.q(query) @ self.k(key).mT / math.sqrt(12)
        return found


class ForcedMask(Projected):
    """Attention that must be given its mask, (B, 1, n), True where a key is seen."""

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        scores = self.scores(query, key).masked_fill(mask.eq(0), -1e9)
        found: Tensor = scores.softmax(-1) @ self.v(value)
        return found


class Doubtful(Projected):
    """It must be given a mask, and does nothing with it."""

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        found: Tensor = (self.scores(query, key) + 0 * mask.sum()).softmax(-1) @ self.v(value)
        return found


class Replaced(Projected):
    """Causal if it is given no mask, and not causal if it is given one."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        scores = self.scores(x, x)
        if mask is None:
            late = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(late, -1e9)
        else:
            scores = scores.masked_fill(~mask[:, None], -1e9)
        found: Tensor = scores.softmax(-1) @ self.v(x)
        return found


class Relative(Projected):
    """Transformer-XL: scores of the offset of query and key, of a table that it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.of_offset = nn.Linear(12, 12, bias=False)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, pos_emb: Tensor) -> Tensor:
        rows = query.shape[1]
        if pos_emb.shape[1] != 2 * rows - 1:
            raise ValueError("wanted a row for each offset")
        offset = torch.arange(rows)[:, None] - torch.arange(rows)
        beside = self.q(query) @ self.of_offset(pos_emb).mT
        at = (rows - 1 - offset).expand(query.shape[0], -1, -1)
        scores = self.scores(query, key) + beside.gather(-1, at) / math.sqrt(12)
        found: Tensor = scores.softmax(-1) @ self.v(value)
        return found


class Streams(Projected):
    """Queries and keys, each with an encoding of its own; both come back."""

    def forward(
        self, queries: Tensor, keys: Tensor, query_pe: Tensor, key_pe: Tensor
    ) -> tuple[Tensor, Tensor]:
        scores = self.scores(queries + query_pe, keys + key_pe)
        return queries + scores.softmax(-1) @ self.v(keys), keys


class Pooler(Projected):
    """Three queries of its own over the tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.queries = nn.Parameter(torch.randn(3, 12))

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.scores(self.queries, x).softmax(-1) @ self.v(x)
        return found


class FirstPooler(Pooler):
    """One that looks at the first token twice: their order matters."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + x[:, :1]


class Squares(Projected):
    """Attention over the places of a square."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if math.isqrt(q.shape[1]) ** 2 != q.shape[1]:
            raise ValueError("wanted a square")
        found: Tensor = self.scores(q, k).softmax(-1) @ self.v(v)
        return found


class RotatingAttention(nn.Module):
    """Attention over tables that it is given, one by one."""

    def __init__(self) -> None:
        super().__init__()
        self.head_dim = 8
        self.qkv = nn.Linear(16, 24)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        if cos.dim() != 3 or cos.shape[-1] != 8:
            raise ValueError("wanted tables of (rows, tokens, 8)")
        q, k, v = self.qkv(x).chunk(3, -1)
        q, k = (y * cos + torch.cat((-y[..., 4:], y[..., :4]), -1) * sin for y in (q, k))
        found: Tensor = (q @ k.mT).softmax(-1) @ v
        return torch.cat((found, found), -1)


class OnlyAngles(nn.Module):
    """A table of angles of positions, for :func:`apply_rotary` and nothing else."""

    inv_freq: Tensor

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.register_buffer("inv_freq", 10000.0 ** (-torch.arange(0, dim, 2) / dim))

    def forward(self, seq: Tensor) -> Tensor:
        if seq.dim() != 1:
            raise ValueError("wanted positions (n)")
        angles = seq[:, None] * self.inv_freq
        return torch.cat((angles, angles), -1)


def apply_rotary(pos: Tensor, t: Tensor) -> Tensor:
    u, v = t.chunk(2, -1)
    return t * pos.cos() + torch.cat((-v, u), -1) * pos.sin()


class Mask:
    """A mask in an object."""

    def __init__(self, seen: Tensor) -> None:
        self.seen = seen


def causal_of(query: Tensor, key: Tensor) -> Mask:
    """Causal, aligned at the end, in an object."""
    rows, keys = query.shape[2], key.shape[2]
    return Mask(torch.ones(keys, keys, dtype=torch.bool).tril()[keys - rows :][None, None])


def causal_by(
    config: Any, inputs_embeds: Tensor, attention_mask: Tensor, past_key_values: Tensor | None
) -> Tensor:
    """Causal, built from a config, tokens and a mask of padding."""
    rows = inputs_embeds.shape[1] + (0 if past_key_values is None else past_key_values.shape[1])
    seen = torch.ones(rows, rows, dtype=torch.bool).tril() & attention_mask[:, None, None].bool()
    return seen if not config.inverted else ~seen


class Powers(nn.Module):
    """xPos: a query is multiplied by a power of its position, counted from the middle."""

    scale: Tensor

    def __init__(self, head_dim: int) -> None:
        super().__init__()
        self.register_buffer("scale", torch.linspace(0.5, 0.9, head_dim // 2))

    def forward(self, x: Tensor, offset: int = 0, downscale: bool = False) -> Tensor:
        whole = x.shape[1] + offset
        at = torch.arange(whole, dtype=torch.float32)
        angles = at[:, None] * 10000.0 ** (-torch.arange(self.scale.numel()) / self.scale.numel())
        factor = self.scale ** ((at - whole // 2) / 512)[:, None]
        factor = 1 / factor if downscale else factor
        u, v = x.chunk(2, -1)
        cos, sin = ((f * factor)[offset:] for f in (angles.cos(), angles.sin()))
        return torch.cat((u * cos - v * sin, u * sin + v * cos), -1)


class Undone(Powers):
    """The same, with a flag that undoes nothing: keys are scaled as queries are."""

    def forward(self, x: Tensor, offset: int = 0, downscale: bool = False) -> Tensor:
        found = super().forward(x, offset)
        return found + 0 if downscale else found


def offsets_and_tokens(x: Tensor) -> tuple[Tensor, Tensor]:
    """Tokens times 4, and a table of the offsets of n tokens, the largest first."""
    rows, width = x.shape[1:]
    offset = torch.arange(rows - 1, -rows, -1)[:, None]
    angles = offset * 10000.0 ** (-torch.arange(0, width, 2) / width)
    return x * 4, torch.stack((angles.sin(), angles.cos()), -1).flatten(1)[None]


def of_image(x: Tensor) -> Tensor:
    """Sines and cosines of the columns of an image, (B, E, h, w)."""
    angles = torch.arange(x.shape[3]) * 10000.0 ** (-torch.arange(0, 16, 2) / 16)[:, None]
    table = torch.stack((angles.sin(), angles.cos()), 1).flatten(0, 1)
    return table[None, :, None].expand(x.shape[0], -1, x.shape[2], -1)


def started(qlen: int, klen: int, step: int = 0) -> Tensor:
    """A bias of the offset, whose first query stands at step."""
    return -(torch.arange(klen) - torch.arange(step, step + qlen)[:, None]).abs()[None].float()


def rotated_bias(length: int) -> Tensor:
    """Products of two rotated vectors: of the offset alone, but for roundings of their angles."""
    generator = torch.Generator().manual_seed(0)
    a, b = torch.randn(2, 8, generator=generator) * 0.02
    angles = torch.arange(length).float()[:, None] * 10000.0 ** (-torch.arange(4) / 4)

    def rotated(x: Tensor) -> Tensor:
        (u, v), cos, sin = x.chunk(2), angles.cos(), angles.sin()
        return torch.cat((u * cos - v * sin, u * sin + v * cos), -1)

    return rotated(a) @ rotated(b).mT


class OfContext(nn.Module):
    """Cross-attention over a context of other features, which has a default that it refuses."""

    def __init__(self, query_dim: int = 32, context_dim: int = 24, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.to_q = nn.Linear(query_dim, 32)
        self.to_kv = nn.Linear(context_dim, 64)
        self.out = nn.Linear(32, query_dim)

    def forward(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        rows, count, _ = x.shape
        q = self.to_q(x).view(rows, count, self.heads, -1).transpose(1, 2)
        both = self.to_kv(context)
        k, v = both.view(rows, both.shape[1], 2, self.heads, -1).permute(2, 0, 3, 1, 4)
        weights = torch.softmax(q @ k.mT * q.shape[-1] ** -0.5, -1)
        found: Tensor = self.out((weights @ v).transpose(1, 2).reshape(rows, count, -1))
        return found


class OfContextAndTokens(OfContext):
    """The same of tokens that have met, as in the layer of a decoder."""

    def forward(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        return super().forward(x + x.mean(1, keepdim=True), context)


class Noisy(nn.Module):
    """Attention with dropout of its own, drawn in training by a generator that it keeps."""

    def __init__(self, embed_dim: int = 16) -> None:
        super().__init__()
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim)
        self.generator = torch.Generator().manual_seed(0)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        weights = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1)
        kept = torch.rand(weights.shape[-1:], generator=self.generator) > 0.1
        found: Tensor = (weights * kept if self.training else weights) @ v
        return found


def on_a_grid(dim: int, h: int, w: int) -> Tensor:
    """Sines and cosines of the two coordinates of an image, row by row."""
    down, along = torch.meshgrid(torch.arange(h).float(), torch.arange(w).float(), indexing="ij")
    ladder = 10000.0 ** (-torch.arange(dim // 4).float() / (dim // 4))
    down, along = down.flatten()[:, None] * ladder, along.flatten()[:, None] * ladder
    return torch.cat([along.sin(), along.cos(), down.sin(), down.cos()], 1)
