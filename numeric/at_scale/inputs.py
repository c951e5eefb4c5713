"""Queries, keys and values of a call, from its seed, written in the dtype piece by piece."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from ..scale import scale_named
from .call import Call
from .threads import mapped

__all__ = ["Arrays", "Clusters", "arrays", "clustered", "filled", "generator"]

PIECE = 1 << 20  # entries drawn in float32 at once, before they are stored
STREAMS = 16  # of random numbers of one head
SPREAD = scale_named("default").spread  # scores then spread 3: a few keys stand out in every row


class Arrays(NamedTuple):
    """Queries, keys and values, (heads, tokens, width), in the dtype on the device."""

    query: Tensor
    key: Tensor
    value: Tensor

    @property
    def bytes(self) -> int:
        """What they hold together."""
        return sum(x.numel() * x.element_size() for x in self)


class Clusters(NamedTuple):
    """Arrays whose keys take few distinct values: ``key[h, j] = centres[h, label[j]]``."""

    arrays: Arrays
    centres: Tensor
    label: Tensor

    def head(self, h: int) -> Clusters:
        """One head of them."""
        one = Arrays(*(part[h : h + 1] for part in self.arrays))
        return Clusters(one, self.centres[h : h + 1], self.label)


def generator(call: Call, stream: int, piece: int = 0) -> torch.Generator:
    """Random numbers of one piece of one stream of a seed, the same on every device."""
    return torch.Generator().manual_seed(call.seed * 1_000_003 + stream + (piece << 40))


def filled(
    call: Call, rows: int, stream: int, scale: float | Tensor = 1.0, heads: range | None = None,
    plus: Callable[[int, int, int], Tensor] | None = None,
) -> Tensor:  # fmt: skip
    """(heads, rows, width) normal entries times a scale, drawn in float32, stored in the dtype.

    The scale is one number, or one for each row.

    Every head has its own random numbers, so that some heads alone are what they are among all;
    so has every piece of a head, so that threads share out the work.
    ``plus(head, a, b)`` is added to rows a to b before they are stored.
    """
    heads = range(call.heads) if heads is None else heads
    found = torch.empty((len(heads), rows, call.width), dtype=call.dtype, device=call.device)
    step = max(1, PIECE // call.width)

    def fill(item: tuple[int, int]) -> None:
        k, a = item
        b = min(rows, a + step)
        source = generator(call, stream + STREAMS * (heads[k] + 1), a // step)
        piece = torch.randn((b - a, call.width), generator=source)
        piece.mul_(scale[a:b, None] if isinstance(scale, Tensor) else scale)
        found[k, a:b] = piece if plus is None else piece.add_(plus(heads[k], a, b))

    every = [(k, a) for k in range(len(heads)) for a in range(0, rows, step)]
    mapped(fill, every, call.device)
    return found


def arrays(call: Call, rows: int | None = None, heads: range | None = None) -> Arrays:
    """Independent normal tokens; ``rows`` queries, for some of the heads.

    Every other query is calm, its scores of spread 1: there no key of 10⁵ is lost among others.
    """
    n = call.tokens
    rows = n if rows is None else rows
    spread = torch.full((rows,), SPREAD)
    spread[1::2] = 1 / SPREAD
    return Arrays(
        filled(call, rows, 1, spread, heads),
        filled(call, n, 2, SPREAD, heads), filled(call, n, 3, 1.0, heads),
    )  # fmt: skip


def clustered(call: Call, count: int) -> Clusters:
    """Keys of ``count`` distinct values, a mean of values for each, and independent normal parts.

    The clusters are of uneven sizes, each of one key at least, in random order.
    """
    n, source = call.tokens, generator(call, 4)
    label = torch.randint(count, (n,), generator=source)
    label = torch.minimum(label, torch.randint(count, (n,), generator=source))
    label[torch.randperm(n, generator=source)[:count]] = torch.arange(count)[:n]
    means = torch.randn((call.heads, count, call.width), generator=generator(call, 6))
    centres = filled(call, count, 5, SPREAD)
    values = filled(call, n, 7, plus=lambda head, a, b: means[head, label[a:b]])
    queries = filled(call, n, 8, SPREAD)
    label = label.to(call.device)
    return Clusters(Arrays(queries, centres[:, label], values), centres, label)
