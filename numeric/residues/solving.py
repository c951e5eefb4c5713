"""Equations modulo a prime: linear ones by elimination, quadratic ones entry by entry."""

from __future__ import annotations

import torch
from torch import Tensor

from .arithmetic import FieldArithmetic

__all__ = ["Solutions", "inverse", "linear", "square_roots"]


class Solutions:
    """x + any sum of multiples of the columns of ``kernel``; the columns are all solutions of 0."""

    def __init__(self, one: Tensor, kernel: Tensor) -> None:
        self.one, self.kernel = one, kernel


def linear(field: FieldArithmetic, matrix: Tensor, right: Tensor) -> Solutions | None:
    """All x with matrix @ x = right, or None where there is none.

    >>> field = FieldArithmetic(23)
    >>> matrix, right = torch.tensor([[1.0, 2.0]]).double(), torch.tensor([5.0]).double()
    >>> found = linear(field, matrix, right)
    >>> found.one.tolist(), found.kernel.T.tolist()
    ([5.0, 0.0], [[-2.0, 1.0]])
    """
    width = matrix.shape[1]
    rows, pivots = _eliminated(field, torch.cat((matrix, right[:, None]), 1), width)
    if bool(rows[len(pivots) :, -1].any()):
        return None
    others = [k for k in range(width) if k not in set(pivots)]
    one = torch.zeros(width, dtype=matrix.dtype, device=matrix.device)
    kernel = torch.zeros(width, len(others), dtype=matrix.dtype, device=matrix.device)
    one[pivots] = rows[: len(pivots), -1]
    kernel[pivots] = -rows[: len(pivots), others]
    kernel[others, range(len(others))] = 1
    return Solutions(one, kernel)


def inverse(field: FieldArithmetic, matrix: Tensor) -> Tensor | None:
    """The inverse of a square matrix, or None."""
    n = len(matrix)
    one = torch.eye(n, dtype=matrix.dtype, device=matrix.device)
    rows, pivots = _eliminated(field, torch.cat((matrix, one), 1), n)
    return rows[:, n:] if len(pivots) == n else None


def _eliminated(field: FieldArithmetic, rows: Tensor, width: int) -> tuple[Tensor, list[int]]:
    """The reduced row echelon form with respect to the first columns, and its pivots."""
    rows, pivots = rows.clone(), list[int]()
    for column in range(width):
        done = len(pivots)
        below = rows[done:, column].nonzero()
        if not len(below):
            continue
        place = done + int(below[0])
        if place != done:
            rows[[done, place]] = rows[[place, done]]
        rows[done] = field.reduced(rows[done] * field.inverted(rows[done, column]))
        factors = rows[:, column].clone()
        factors[done] = 0
        rows = field.reduced(rows - field.reduced(factors[:, None] * rows[done]))
        pivots.append(column)
        if len(pivots) == len(rows):
            break
    return rows, pivots


def square_roots(field: FieldArithmetic, x: Tensor) -> tuple[Tensor, Tensor]:
    """A root of every entry, and where there is one, for a prime that is 3 modulo 4.

    x^((p + 1)/4) squared is x times x^((p − 1)/2), and that is 1 for every square but 0.
    """
    power, left = torch.ones_like(x), (field.prime + 1) // 4
    square = x
    while left:
        if left & 1:
            power = field.reduced(power * square)
        square, left = field.reduced(square * square), left >> 1
    return power, field.reduced(power * power) == x
