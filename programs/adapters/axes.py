"""Tensors in the order of axes that code wants, and back."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["from_order", "held", "placed", "to_order", "turning"]


Raw = Callable[[tuple[Tensor, ...], Tensor], tuple[Tensor, ...]]


def to_order(x: Tensor, order: str) -> Tensor:
    """From (B, H, T, D) to the order; an axis that is not in it has length 1 and is dropped.

    It is a view always: code that changes the shape of what it is given changes that of the view.
    """
    here = "bhtd"
    for letter in here:
        if letter not in order:
            x = x.squeeze(here.index(letter))
            here = here.replace(letter, "")
    return x.permute(*(here.index(letter) for letter in order))


def from_order(x: Tensor, order: str) -> Tensor:
    """Back to (B, H, T, D)."""
    here = "".join(letter for letter in "bhtd" if letter in order)
    x = x if here == order else x.permute(*(order.index(letter) for letter in here))
    for index, letter in enumerate("bhtd"):
        if letter not in order:
            x = x.unsqueeze(index)
    return x


def placed(positions: Tensor, places: str) -> Tensor:
    """From (B, T) or (B, T, axes) to the order of positions; without b it is the first row's."""
    here = "bta" if positions.dim() == 3 else "bt"
    if "b" not in places:
        positions, here = positions[0], here[1:]
    return positions.permute(*(here.index(letter) for letter in places))


def turning(raw: Raw, order: str, places: str) -> Callable[..., tuple[Tensor, ...]]:
    """A call on several tensors in an order, as one on (B, H, T, D) with positions (B, T[, axes]).

    Heads the code does not know become rows.  Positions without rows are given row by row, or
    once where all rows have the same.
    """

    def one(xs: tuple[Tensor, ...], positions: Tensor) -> tuple[Tensor, ...]:
        out = raw(tuple(to_order(x, order) for x in xs), placed(positions, places))
        return tuple(from_order(x, order) for x in out)

    def turn(*xs: Tensor, positions: Tensor) -> tuple[Tensor, ...]:
        rows, heads = xs[0].shape[:2]
        if "h" not in order and heads > 1:
            flat = tuple(x.flatten(0, 1).unsqueeze(1) for x in xs)
            many = positions.repeat_interleave(heads, 0)
            return tuple(x.reshape(rows, heads, *x.shape[2:])
                         for x in turn(*flat, positions=many))  # fmt: skip
        if rows == 1 or ("b" in order and ("b" in places or _alike(positions))):
            return one(xs, positions)
        apart = [one(tuple(x[b : b + 1] for x in xs), positions[b : b + 1]) for b in range(rows)]
        return tuple(torch.cat(parts) for parts in zip(*apart, strict=True))

    return turn


def held(positions: Tensor) -> Tensor:
    """The numbers of positions, for a look of the adapter's own at them.

    Where runs are followed, what the code does with positions is told; what is done here is not.
    """
    numbers: Tensor = getattr(positions, "numbers", positions)
    return numbers


def _alike(positions: Tensor) -> bool:
    if torch.compiler.is_exporting():
        return False
    positions = held(positions)
    return bool((positions == positions[:1]).all())
