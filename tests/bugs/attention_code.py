"""Attention code that is right, in the shapes in which people write it: mutants change one place.

Queries are (B, H, T, D), keys and values (B, G, S, D), tokens (B, T, E).  A mask is truth values
that are True where a query sees a key, or numbers to add; both broadcast to (B, H, T, S).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.subjects import Attention, Mask

EMBED, HEADS, GROUPS = 24, 4, 2
M = TypeVar("M", bound=nn.Module)


def seeded(module: M, seed: int = 0) -> M:
    """The module with weights drawn from a seed, so that two of a kind are equal."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in module.parameters():
            width = weight.shape[-1]
            weight.copy_(torch.randn(weight.shape, generator=generator) / math.sqrt(width))
    return module


class Eager(nn.Module):
    """softmax(q·kᵀ·scale, hidden by masks)·v, step by step.

    Mutants differ in ``scale``, ``repeated``, ``seen``, ``masked`` and ``weights``.
    """

    def __init__(self, *, causal: bool = False, window: int | None = None) -> None:
        super().__init__()
        self.causal, self.window = causal, window

    def scale(self, q: Tensor) -> float:
        return float(q.shape[-1] ** -0.5)

    def repeated(self, kv: Tensor, heads: int) -> Tensor:
        """Each key head once for every query head of its group: 0, 0, 1, 1, .."""
        return kv.repeat_interleave(heads // kv.shape[1], 1)

    def seen(self, queries: int, keys: int) -> Tensor:
        """Which keys the last ``queries`` of ``keys`` tokens see (T, S), by index alone."""
        back = torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)
        seen = back >= 0 if self.causal else torch.ones_like(back, dtype=torch.bool)
        return seen if self.window is None else seen & (back < self.window)

    def masked(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        """Scores with -inf where a key is hidden, and the numbers of a mask of numbers added."""
        scores = scores.masked_fill(~self.seen(*scores.shape[-2:]), -math.inf)
        if mask is None:
            return scores
        if mask.dtype == torch.bool:
            return scores.masked_fill(~mask, -math.inf)
        return (scores + mask).masked_fill(mask == -math.inf, -math.inf)

    def weights(self, scores: Tensor) -> Tensor:
        """Softmax over the keys; a query that sees none has weights of zero."""
        hidden = scores == -math.inf
        lowest = torch.finfo(scores.dtype).min
        return scores.masked_fill(hidden, lowest).softmax(-1).masked_fill(hidden, 0.0)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        k, v = (self.repeated(kv, q.shape[1]) for kv in (k, v))
        scores = self.masked((q @ k.mT) * self.scale(q), mask)
        # Zero times NaN is NaN: what stands in a key that no query sees must not be read at all.
        nobody = (scores == -math.inf).all(-2)[..., None]
        return self.weights(scores) @ v.masked_fill(nobody, 0.0)


@dataclass(frozen=True)
class Cache:
    """Keys and values (B, G, S, D) of the tokens so far; a new one is made at each step."""

    keys: Tensor | None = None
    values: Tensor | None = None

    def __len__(self) -> int:
        return 0 if self.keys is None else self.keys.shape[-2]

    def extended(self, keys: Tensor, values: Tensor) -> Cache:
        if self.keys is None or self.values is None:
            return Cache(keys, values)
        return Cache(torch.cat((self.keys, keys), -2), torch.cat((self.values, values), -2))


class AttentionLayer(nn.Module):
    """Causal attention with projections, groups of key heads, and a cache of keys and values.

    Mutants differ in ``split``, ``rotated`` and ``mask``; ``positions`` is what it looks at itself.
    """

    positions = "none"

    def __init__(
        self,
        core: Eager | None = None,
        *,
        groups: int = GROUPS,
        causal: bool = True,
        window: int | None = None,
    ) -> None:
        super().__init__()
        self.core = Eager() if core is None else core
        self.groups, self.width = groups, EMBED // HEADS
        self.order = Eager(causal=causal, window=window)
        self.query = nn.Linear(EMBED, EMBED, bias=False)
        self.key = nn.Linear(EMBED, groups * self.width, bias=False)
        self.value = nn.Linear(EMBED, groups * self.width, bias=False)
        self.output = nn.Linear(EMBED, EMBED, bias=False)
        seeded(self)

    def split(self, x: Tensor, heads: int) -> Tensor:
        return x.reshape(*x.shape[:-1], heads, -1).transpose(1, 2)

    def rotated(self, x: Tensor, first: int, pads: Tensor | None) -> Tensor:  # noqa: ARG002
        """Queries or keys (B, H, c, D) rotated to their positions; this layer has none."""
        return x

    def mask(self, queries: int, cache: Cache | None, keep: Tensor | None) -> Tensor | None:
        """Truth values (1 or B, 1, c, S); ``keep`` (B, S) is False for keys of padding."""
        seen = self.order.seen(queries, queries + len(cache or Cache()))[None, None]
        return seen if keep is None else seen & keep[:, None, None]

    def forward(
        self,
        x: Tensor,
        cache: Cache | None = None,
        *,
        keep: Tensor | None = None,
        pads: Tensor | None = None,
        more: Tensor | None = None,
    ) -> tuple[Tensor, Cache]:
        """Tokens (B, c, E) that follow those in the cache; ``more`` is a mask to be joined."""
        past = len(cache or Cache())
        if pads is not None:
            keep = torch.arange(past + x.shape[1]) >= pads[:, None]
        q = self.rotated(self.split(self.query(x), HEADS), past, pads)
        k = self.rotated(self.split(self.key(x), self.groups), past, pads)
        after = (cache or Cache()).extended(k, self.split(self.value(x), self.groups))
        assert after.keys is not None
        assert after.values is not None
        mask = self.mask(x.shape[1], cache, keep)
        if more is not None:
            mask = more if mask is None else mask & more
        out = self.core(q, after.keys, after.values, mask)
        return self.output(out.transpose(1, 2).flatten(2)), after

    def step(self, x: Tensor, state: Cache | None) -> tuple[Tensor, Cache]:
        return self.forward(x, Cache() if state is None else state)

    def padded_step(self, x: Tensor, state: Cache | None, pads: Tensor) -> tuple[Tensor, Cache]:
        return self.forward(x, Cache() if state is None else state, pads=pads)


class Dropping(AttentionLayer):
    """Attention without a cache that drops weights while it is trained."""

    def __init__(self, dropout: float = 0.3) -> None:
        super().__init__(causal=False)
        self.dropout = dropout

    def probability(self) -> float:
        return self.dropout if self.training else 0.0

    def forward(self, x: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Cache]:
        q = self.split(self.query(x), HEADS)
        k, v = (self.split(p(x), self.groups) for p in (self.key, self.value))
        out = nn.functional.scaled_dot_product_attention(
            q, k, v, dropout_p=self.probability(), enable_gqa=True
        )
        return self.output(out.transpose(1, 2).flatten(2)), Cache()


def said(order: Eager, positions: str = "none") -> DeclaredAttention:
    """What code of this order is meant to be; a query that sees no key reads zeros."""
    return DeclaredAttention(
        causal=order.causal, window=order.window, positions=positions, hidden_row="zero"
    )


def attention(
    build: Callable[[], Eager], *, masks: tuple[str, ...] = ("bool", "float"), **fields: Any
) -> Attention:
    """The subject of a core that is called on queries, keys and values."""
    core = build()
    settings = {
        "declared": said(core),
        "heads": HEADS,
        "groups": GROUPS,
        "width": EMBED // HEADS,
        **fields,
    }
    return Attention(
        name=type(core).__name__,
        attend=core,
        module=core,
        masks=masks,
        make=lambda: attention(build, masks=masks, **fields),
        **settings,
    )


def eager() -> Attention:
    """What is right beside many mutants: one function, so that it is looked at once."""
    return attention(Eager)


METHODS = ("step", "padded_step", "hide", "documents", "whole_layer", "paths")


def layered(
    build: Callable[[], AttentionLayer], *, cached: bool = True, **fields: Any
) -> Attention:
    """The subject of a layer; ``fields`` that are functions of the layer are called with it."""
    module = build()
    settings: dict[str, Any] = {
        "declared": said(module.order, module.positions),
        **({"step": module.step} if cached else {}),
        **{name: value(module) if name in METHODS else value for name, value in fields.items()},
    }
    return Attention(
        name=type(module).__name__,
        layer=lambda x: module(x)[0],
        module=module,
        embed=EMBED,
        heads=HEADS,
        groups=module.groups,
        width=module.width,
        make=lambda: layered(build, cached=cached, **fields),
        **settings,
    )


def causal_mask(make: Callable[[int, int], Tensor]) -> Mask:
    """The subject of a function that makes causal masks."""
    return Mask(
        name="causal mask",
        mask=make,
        declared=DeclaredAttention(causal=True),
        make=lambda: causal_mask(make),
    )


def eager_mask() -> Mask:
    """A causal mask that is right."""
    return causal_mask(Eager(causal=True).seen)
