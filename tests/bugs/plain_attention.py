"""A layer of attention with a cache and rotary positions that is right; mutants change a place."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.subjects import Attention

from .plain_rotary import Rope

State = tuple[Tensor, Tensor] | None


class CachedAttention(nn.Module):
    """Causal attention of tokens (B, T, E); the state is the rotated keys and the values so far."""

    def __init__(self, embed: int = 8, heads: int = 2, seed: int = 0) -> None:
        super().__init__()
        self.embed, self.heads = embed, heads
        drawn = torch.randn(4, embed, embed, generator=torch.Generator().manual_seed(seed))
        self.weight = nn.Parameter(drawn / math.sqrt(embed))
        self.rope = Rope(embed // heads)

    def project(self, x: Tensor, which: int) -> Tensor:
        """Queries, keys or values of the tokens (B, H, T, D)."""
        made = linear(x, self.weight[which].to(x.dtype))
        return made.reshape(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def positions(self, x: Tensor, state: State) -> Tensor:
        """The positions (1, T) of these tokens, after those in the cache."""
        start = 0 if state is None else state[0].shape[2]
        return start + torch.arange(x.shape[1], device=x.device)[None]

    def rotate(self, x: Tensor, positions: Tensor) -> Tensor:
        rotated: Tensor = self.rope(x, positions)
        return rotated

    def visible(self, queries: int, keys: int) -> Tensor:
        """The last query sees all keys, the one before it one less (T, S)."""
        return torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)

    def step(
        self, x: Tensor, state: State = None, seen: Tensor | None = None
    ) -> tuple[Tensor, State]:
        """A chunk of tokens after those in the cache; ``seen`` further hides keys (B, 1, 1, S)."""
        positions = self.positions(x, state)
        q = self.rotate(self.project(x, 0), positions)
        k = self.rotate(self.project(x, 1), positions)
        v = self.project(x, 2)
        if state is not None:
            k, v = torch.cat((state[0], k), 2), torch.cat((state[1], v), 2)
        visible = self.visible(q.shape[2], k.shape[2]).to(x.device)
        if seen is not None:
            visible = visible & seen
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(~visible, torch.finfo(x.dtype).min)
        out = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        return linear(out, self.weight[3].to(x.dtype)), (k, v)

    def forward(self, x: Tensor) -> Tensor:
        return self.step(x)[0]


def attention(build: Callable[[], CachedAttention]) -> Attention:
    """The subject of a layer."""
    layer = build()
    return Attention(
        name=type(layer).__name__,
        layer=layer,
        step=layer.step,
        module=layer,
        embed=layer.embed,
        heads=layer.heads,
        groups=layer.heads,
        width=layer.embed // layer.heads,
        make=lambda: attention(build),
        declared=DeclaredAttention(causal=True),
    )
