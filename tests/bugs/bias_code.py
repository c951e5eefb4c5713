"""Biases that are right: slopes of ALiBi as published, buckets of T5, the window index of Swin."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from attnproof.programs.declarations import DeclaredBias
from attnproof.programs.subjects import Bias

from .attention_code import HEADS, AttentionLayer, Cache


def geometric(heads: int) -> list[float]:
    """The slopes of ALiBi for a power of two of heads: 2^(−8/heads) to the powers 1..heads."""
    return [2.0 ** (-8.0 * (head + 1) / heads) for head in range(heads)]


def published_slopes(heads: int) -> list[float]:
    """The slopes of ALiBi for any number of heads (Press, Smith, Lewis 2022, their code).

    Beyond the last power of two come every other slope of twice that number, so that the list
    is not monotone.
    """
    power = 2 ** (heads.bit_length() - 1)
    return geometric(power) + geometric(2 * power)[0::2][: heads - power]


class Alibi(nn.Module):
    """−slope · (query − key), (H, T, S); the queries are the last T of S."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads = heads

    def slopes(self) -> list[float]:
        return published_slopes(self.heads)

    def forward(self, queries: int, keys: int) -> Tensor:
        distance = torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)
        return -torch.tensor(self.slopes())[:, None, None] * distance


class AlibiLayer(AttentionLayer):
    """Causal attention with a published slope for each head, -slope · distance added to scores."""

    positions = "relative"

    def lengths(self, queries: int, keys: int) -> tuple[int, int]:
        return queries, keys

    def mask(self, queries: int, cache: Cache | None, keep: Tensor | None) -> Tensor:
        seen = super().mask(queries, cache, keep)
        assert seen is not None
        rows, columns = self.lengths(queries, seen.shape[-1])
        distance = torch.arange(columns - rows, columns)[:, None] - torch.arange(columns)
        bias = -torch.tensor(published_slopes(HEADS))[:, None, None] * distance
        return (bias + torch.zeros(seen.shape)).masked_fill(~seen, -torch.inf).to(self.dtype)

    @property
    def dtype(self) -> torch.dtype:
        return self.query.weight.dtype


class Buckets(nn.Module):
    """A learned number for each bucket of offsets and each head (Raffel et al. 2020, T5).

    Offsets up to half of the buckets have one each; those beyond share them, in steps of their
    logarithm, up to ``distance``.  Where both directions are seen, each has half of the buckets.
    """

    def __init__(
        self, heads: int = 3, *, bidirectional: bool = True, buckets: int = 32, distance: int = 128
    ) -> None:
        super().__init__()
        self.heads, self.bidirectional = heads, bidirectional
        self.buckets, self.distance = buckets, distance
        drawn = torch.randn(buckets, heads, generator=torch.Generator().manual_seed(7))
        self.table = nn.Parameter(drawn)

    def offsets(self, queries: int, keys: int) -> Tensor:
        """Key minus query (T, S)."""
        return torch.arange(keys) - torch.arange(keys - queries, keys)[:, None]

    def both_ways(self) -> bool:
        """Whether the buckets are shared out between the two directions."""
        return self.bidirectional

    def bucket(self, offset: Tensor) -> Tensor:
        count = self.buckets // 2 if self.both_ways() else self.buckets
        first = (offset > 0) * count if self.both_ways() else torch.zeros_like(offset)
        back = offset.abs() if self.both_ways() else (-offset).clamp(min=0)
        exact = count // 2
        ratio = (back.clamp(min=1) / exact).log() / math.log(self.distance / exact)
        far = (exact + (ratio * (count - exact)).long()).clamp(max=count - 1)
        return first + torch.where(back < exact, back, far)

    def forward(self, queries: int, keys: int) -> Tensor:
        return self.table[self.bucket(self.offsets(queries, keys))].permute(2, 0, 1)


def window_index(sizes: tuple[int, ...]) -> Tensor:
    """The place of each offset in the table of a window of any number of axes (R, R).

    Along an axis of length n there are 2n − 1 offsets: the number of one axis counts in steps of
    the product of the counts of the axes after it.
    """
    axes = torch.meshgrid(*(torch.arange(n) for n in sizes), indexing="ij")
    places = torch.stack(axes, -1).flatten(0, -2)
    offsets = places[:, None] - places[None] + torch.tensor(sizes) - 1
    index = torch.zeros(offsets.shape[:2], dtype=torch.long)
    for axis, step in enumerate(steps_of(sizes)):
        index += offsets[..., axis] * step
    return index


def steps_of(sizes: tuple[int, ...]) -> list[int]:
    """By how much the index grows with an offset along each axis."""
    return [math.prod(2 * n - 1 for n in sizes[axis + 1 :]) for axis in range(len(sizes))]


def biased(build: Callable[[], Alibi | Buckets], declared: DeclaredBias, *, causal: bool) -> Bias:
    """The subject of a module that makes a bias of two lengths."""
    module = build()
    return Bias(
        name=type(module).__name__,
        bias=module,
        module=module,
        heads=module.heads,
        causal=causal,
        declared=declared,
        make=lambda: biased(build, declared, causal=causal),
    )


def alibi(heads: int, build: type[Alibi] = Alibi) -> Bias:
    """The subject of ALiBi, declared with the published slopes."""
    return biased(lambda: build(heads), DeclaredBias(name="alibi", heads=heads), causal=True)


def bucketed(build: type[Buckets] = Buckets, *, bidirectional: bool = True) -> Bias:
    """The subject of T5's buckets, declared as the module is asked for."""
    declared = DeclaredBias(
        name="t5", heads=3, bidirectional=bidirectional, buckets=32, distance=128
    )
    return biased(lambda: build(bidirectional=bidirectional), declared, causal=not bidirectional)


def windowed(index: Callable[[tuple[int, ...]], Tensor] = window_index, heads: int = 2) -> Bias:
    """The subject of a learned table over the offsets in a window, read through an index."""
    table = torch.randn(4096, heads, generator=torch.Generator().manual_seed(8))
    return Bias(
        name=getattr(index, "__name__", "index"),
        heads=heads,
        index=index,
        window=lambda rows, columns: table[index((rows, columns))].permute(2, 0, 1),
        make=lambda: windowed(index, heads),
    )
