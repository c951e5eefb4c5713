"""How often one number occurs in an array: roundings of equal numbers are equal."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import torch
from torch import Tensor

__all__ = ["ALIKE", "copies", "multiplicity"]

ALIKE = 8  # equal numbers in an array, until its roundings are shared
SHORT = 256  # numbers that are counted sooner one by one
COUNTED = 1 << 13  # entries in which equal numbers are counted


def multiplicity(value: Tensor) -> int:
    """How often some size occurs in the array, or in lines of a large one: roundings alike."""
    if value.numel() <= COUNTED:
        return _most(value.reshape(-1))
    most = 1
    for axis, length in enumerate(value.shape):
        for back in (2, 1) if length > 1 else ():
            at: list[Any] = [n // back - (back == 1) for n in value.shape]
            at[axis] = slice(None)
            most = max(most, _most(value[tuple(at)]))
    return most


def copies(value: Tensor) -> int:
    """How often some size occurs in the whole array, wherever."""
    return _most(value.reshape(-1))


def _most(line: Tensor) -> int:
    if len(line) <= SHORT:
        often = Counter(x for x in line.abs().tolist() if 0 < x < math.inf)
        return max(often.values(), default=1)
    sizes = line.abs()
    sizes = sizes[(sizes > 0) & sizes.isfinite()]
    if len(sizes) < 2:
        return 1
    _, counts = torch.unique(sizes, return_counts=True)
    return int(counts.max())
