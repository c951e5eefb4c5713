"""Stored tables of whole numbers, as windows of attention keep them."""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor

from attnproof.programs.prove import Traced

SECONDS = 40.0  # far more than any proof takes: a slow machine decides nothing


def offsets(*window: int) -> Tensor:
    """Query less key in each coordinate, (axes, R, R)."""
    grid = torch.meshgrid(*map(torch.arange, window), indexing="ij")
    places = torch.stack(grid).flatten(1)
    return places[:, :, None] - places[:, None, :]


def index(*window: int) -> Tensor:
    """Swin's index for a window of any number of axes."""
    found = torch.zeros(prod(window), prod(window), dtype=torch.int64)
    for offset, length in zip(offsets(*window), window, strict=True):
        found = found * (2 * length - 1) + offset + length - 1
    return found


def away(n: int) -> Tensor:
    return torch.arange(n)[None, :] - torch.arange(n)[:, None]


def by_distance(*window: int) -> Tensor:
    """LeViT's index: by the distance in each coordinate, whatever the direction."""
    found = torch.zeros(prod(window), prod(window), dtype=torch.int64)
    for offset, length in zip(offsets(*window), window, strict=True):
        found = found * length + offset.abs()
    return found


def verdicts(found: Traced) -> dict[str, str]:
    return {finding.law: finding.verdict for finding in found.findings}
