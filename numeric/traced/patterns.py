"""Stored constants that are known at any length: a range, one number everywhere, a triangle.

A module keeps a causal mask of 1024 rows and uses the first n of them.  What the stored numbers
show to be a triangle is read as the triangle of the length that is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array, as_array

from .operations.reading import Notes, constant, noted

__all__ = ["Pattern", "pattern_of"]

LARGEST = 1 << 24


@dataclass(frozen=True)
class Pattern:
    """A stored constant as a term, and the same at other lengths."""

    array: Array
    remade: Callable[[tuple[Any, ...]], Array]


def pattern_of(value: Tensor) -> Pattern | None:
    """The pattern of a stored tensor, or None; parameters are any numbers, whatever they hold."""
    small = 0 < value.numel() <= LARGEST and value.ndim > 0
    if not small or value.is_complex() or isinstance(value, nn.Parameter):
        return None
    plain = value.detach().to("cpu")
    values: Tensor = plain.unique()  # type: ignore[no-untyped-call]
    if len(values) == 1:
        return _made(plain, lambda shape: xp.broadcast_to(_number(values[0]), shape))
    last = torch.arange(plain.shape[-1])
    if plain.dtype != torch.bool and bool((plain == last).all()):
        return _made(plain, lambda shape: xp.broadcast_to(xp.arange(as_array(shape[-1])), shape))
    return _triangle(plain, values) if plain.ndim > 1 and len(values) == 2 else None


def _made(plain: Tensor, remade: Callable[[tuple[Any, ...]], Array]) -> Pattern:
    return Pattern(remade(tuple(plain.shape)), remade)


def _triangle(plain: Tensor, values: Tensor) -> Pattern | None:
    """One value up to a diagonal of the last two axes, and another one above it."""
    rows, columns = plain.shape[-2:]
    gap = torch.arange(columns)[None, :] - torch.arange(rows)[:, None]
    below = plain.reshape(-1, rows, columns)[0, -1, 0]
    above = values[values != below][0]
    first_row = (plain.reshape(-1, rows, columns)[0, 0] == below).sum()
    diagonal = int(first_row) - 1
    if not bool((plain == torch.where(gap <= diagonal, below, above)).all()):
        return None

    def remade(shape: tuple[Any, ...]) -> Array:
        columns, rows = (xp.arange(as_array(n)) for n in (shape[-1], shape[-2]))
        keep = (columns[None, :] - rows[:, None]) <= diagonal
        if plain.dtype == torch.bool:
            return xp.broadcast_to(keep if bool(below) else ~keep, shape)
        return xp.broadcast_to(xp.where(keep, _number(below), _number(above)), shape)

    return _made(plain, remade)


def _number(value: Tensor) -> Array:
    if value.dtype == torch.bool:
        return as_array(int(value.item())) == as_array(1)
    with noted(Notes()):
        return constant(value.item())
