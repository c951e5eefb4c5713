"""Attention and layers in the forms in which people write them, for tests of their calls."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from tests.programs.adapting_code import plain


def by_key(q: Tensor, k: Tensor, v: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
    """Attention of one head, with a mask of keys that is True where one is padding."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if key_padding_mask is not None:
        scores = scores.masked_fill(key_padding_mask[:, None, None], -math.inf)
    out: Tensor = scores.softmax(-1) @ v
    return out


def causal(q: Tensor, k: Tensor, v: Tensor, pad_mask: Tensor | None = None) -> Tensor:
    """Causal attention of as many queries as keys; its mask is True where a key is seen."""
    n = q.shape[2]
    assert k.shape[2] == n
    seen = torch.ones(n, n, dtype=torch.bool).tril()
    if pad_mask is not None:
        seen = seen & pad_mask
    return plain(q, k, v, seen)


def causal_grouped(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The same, with query heads that share a key head beside each other."""
    shared = q.shape[1] // k.shape[1]
    return causal(q, k.repeat_interleave(shared, 1), v.repeat_interleave(shared, 1))


def causal_tiled(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The same, wrong: every second query head shares a key head."""
    shared = q.shape[1] // k.shape[1]
    return causal(q, k.repeat(1, shared, 1, 1), v.repeat(1, shared, 1, 1))


def causal_hides(q: Tensor, k: Tensor, v: Tensor, pad_mask: Tensor | None = None) -> Tensor:
    """The same, whose mask is True where a key is hidden."""
    return causal(q, k, v, None if pad_mask is None else ~pad_mask)


def masked(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """A mask that must be given though there is a default; its weights come back first."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        shown = scores.masked_fill(mask, -1e9)
    weights = shown.softmax(-1)
    return weights, weights @ v


def scaled(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    out: Tensor = (q @ k.mT * scale).softmax(-1) @ v
    return out


def may_be_causal(q: Tensor, k: Tensor, v: Tensor, is_causal: bool = False) -> Tensor:
    seen = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool)
    return plain(q, k, v, seen.tril(k.shape[2] - q.shape[2]) if is_causal else seen)


def flattened(q: Tensor, k: Tensor, v: Tensor, num_heads: int) -> Tensor:
    """Attention on (B, T, heads * width)."""
    q, k, v = (x.reshape(*x.shape[:2], num_heads, -1).transpose(1, 2) for x in (q, k, v))
    return plain(q, k, v).transpose(1, 2).flatten(2)


def first_tokens(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention on (T, B, heads, width)."""
    q, k, v = (x.permute(1, 2, 0, 3) for x in (q, k, v))
    return plain(q, k, v).permute(2, 0, 1, 3)


class Projected(nn.Module):
    """Attention on tokens of one head, causal or not."""

    def __init__(self, d_model: int = 12, causal: bool = True) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.project, self.causal = nn.Linear(d_model, 3 * d_model), causal

    def weigh(self, q: Tensor, k: Tensor, seen: Tensor | None) -> Any:
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if self.causal:
            late = torch.ones(scores.shape[-2:]).triu(k.shape[1] - q.shape[1] + 1).bool()
            scores = scores.masked_fill(late, -math.inf)
        return (scores if seen is None else scores.masked_fill(seen == 0, -1e30)).softmax(-1)

    def attended(self, x: Tensor, seen: Tensor | None = None) -> Any:
        q, k, v = self.project(x).chunk(3, -1)
        return self.weigh(q, k, seen) @ v


class SelfAttention(Projected):
    """With a mask of integers."""

    def forward(self, x: Tensor, attention_mask: Any = None) -> Any:
        ones = None if attention_mask is None else (1 - (1 - attention_mask))[:, None]
        return self.attended(x, ones)


class GivesBack(Projected):
    """Attention whose cache goes in and out."""

    def forward(self, x: Tensor, cache: Any = None) -> Any:
        q, k, v = self.project(x).chunk(3, -1)
        if cache is not None:
            k, v = (torch.cat(pair, 1) for pair in zip(cache, (k, v), strict=True))
        return self.weigh(q, k, None) @ v, (k, v)


class WritesInPlace(Projected):
    """Attention whose cache is a dictionary that is written to."""

    def forward(self, x: Tensor, cache: Any = None) -> Any:
        q, k, v = self.project(x).chunk(3, -1)
        if cache is not None:
            if cache:
                k, v = torch.cat((cache["k"], k), 1), torch.cat((cache["v"], v), 1)
            cache["k"], cache["v"] = k, v
        return self.weigh(q, k, None) @ v


class Kept:
    """The keys and values of earlier tokens."""

    tokens: tuple[Tensor, Tensor] | None = None


class WritesToObject(Projected):
    """Attention whose cache is an object that is written to."""

    def forward(self, x: Tensor, cache: Kept | None = None) -> Any:
        q, k, v = self.project(x).chunk(3, -1)
        if cache is not None:
            if cache.tokens is not None:
                k, v = (torch.cat(both, 1) for both in zip(cache.tokens, (k, v), strict=True))
            cache.tokens = k, v
        return self.weigh(q, k, None) @ v


class Keeps(Projected):
    """Attention whose cache is its own; where its tokens start is told."""

    kept: Any = None

    def forward(self, x: Tensor, start_pos: int = 0) -> Any:
        q, k, v = self.project(x).chunk(3, -1)
        if start_pos:
            k, v = (
                torch.cat((a[:, :start_pos], b), 1) for a, b in zip(self.kept, (k, v), strict=True)
            )
        self.kept = (k, v)
        return self.weigh(q, k, None) @ v


class Forgets(GivesBack):
    """Each step sees its own tokens alone."""

    def forward(self, x: Tensor, cache: Any = None) -> Any:  # noqa: ARG002
        q, k, v = self.project(x).chunk(3, -1)
        return self.weigh(q, k, None) @ v, (k, v)


class Cross(Projected):
    """Attention to a context."""

    def forward(self, x: Tensor, context: Tensor) -> Any:
        q, _, _ = self.project(x).chunk(3, -1)
        _, k, v = self.project(context).chunk(3, -1)
        return (q @ k.mT / 12**0.5).softmax(-1) @ v


class Model(Projected):
    """Attention that gives an object with a field."""

    def forward(self, x: Tensor) -> Any:
        return SimpleNamespace(last_hidden_state=self.attended(x))


class OfImages(Projected):
    """Attention between the places of images (B, C, h, w)."""

    def forward(self, x: Tensor) -> Any:
        out = self.attended(x.flatten(2).transpose(1, 2))
        return out.transpose(1, 2).reshape(x.shape)


def multihead() -> nn.MultiheadAttention:
    """Tokens before rows, as torch has it."""
    torch.manual_seed(0)
    return nn.MultiheadAttention(16, 2)
