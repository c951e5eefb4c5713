"""Sizes at which attention code is looked at, and inputs of these sizes."""

from __future__ import annotations

import torch
from torch import Tensor

from ..declared import DeclaredAttention
from ..subjects import Attention
from .scene import Scene

__all__ = ["Sizes", "attend_sizes", "inputs", "named"]

Sizes = tuple[int, int, int, int, int, int]  # B, T, S, H, G, D


def attend_sizes(subject: Attention, declared: DeclaredAttention) -> list[Sizes]:
    """Sizes from small to large: all different, then those that a broadcast confuses.

    A module has the heads it has; a function is asked with 4, 6 and 12 as well, where it takes
    them (a call with zeros is tried).
    """
    groups = declared.groups or subject.groups
    heads = [(subject.heads, groups)]
    if subject.module is None:
        if groups < subject.heads or declared.groups:
            heads += [(4, 2), (6, 2), (12, 4)]
        else:
            heads += [(4, 4), (6, 6), (12, 12)]
    width = subject.width or 5
    found: list[Sizes] = []
    for n, (many, few) in enumerate(dict.fromkeys(heads)):
        if n and not _takes(subject, many, few, width):
            continue
        sizes = [(1, 3, 3, many, few, width)] if n == 0 else []
        sizes.append((3, 6, 6, many, few, width))
        if n == 0:
            alike = max(2, min(many, 8))
            sizes += [(few, alike, alike, many, few, width), (5, 5, 5, many, few, width)]
        found += sizes
    return list(dict.fromkeys(found))


def _takes(subject: Attention, heads: int, groups: int, width: int) -> bool:
    query, key = torch.zeros(2, heads, 3, width), torch.zeros(2, groups, 3, width)
    try:
        assert subject.attend is not None
        return subject.attend(query, key, key, None).shape == query.shape
    except Exception:  # noqa: BLE001 (code of other heads raises what it likes)
        return False


def named(sizes: tuple[int, ...]) -> dict[str, int]:
    """The sizes by their letters.

    >>> named((1, 2, 3, 4, 4, 5))
    {'B': 1, 'T': 2, 'S': 3, 'H': 4, 'G': 4, 'D': 5}
    """
    return dict(zip("BTSHGD", sizes, strict=True))


def inputs(scene: Scene, sizes: Sizes, salt: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Normal queries, keys and values of these sizes."""
    b, t, s, h, g, d = sizes
    draw = scene.draw
    return (draw.normal(b, h, t, d, salt=salt + 1), draw.normal(b, g, s, d, salt=salt + 2),
            draw.normal(b, g, s, d, salt=salt + 3))  # fmt: skip
