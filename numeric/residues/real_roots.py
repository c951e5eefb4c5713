"""Whether a quadratic equation that was solved in a field has roots among the real numbers too.

A field has roots of half of its numbers, the real line of the positive ones: x² + y² + z² = 0 has
many solutions modulo p, and one in real numbers.  Where the discriminants of all rows are positive
at some real numbers, they are so near these as well, and there a polynomial that is 0 at all real
solutions is 0 at those of the field.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from attnproof.symbolic.givens import Given
from attnproof.symbolic.scalars import length_value

from ..torch_reading import TorchReading
from .hypothesis import SIGNED, Hypothesis

__all__ = ["real_roots"]

SCALES = (1.0, 0.1, 0.01)  # of the given that is solved for: its row may have to be short
DRAWS = 4
ROUNDED = 1e-6  # of a discriminant, that it may be off
NUMBERS = ("real", "frequency", "angle", *SIGNED)


def real_roots(
    h: Hypothesis, name: str, givens: Mapping[str, Given], sizes: Mapping[str, int],
    whole: Mapping[str, Any],
) -> bool:  # fmt: skip
    """Whether the first number of every row of a given has two real roots at some real draw."""
    for k in range(DRAWS):
        drawn = {**whole}
        for other in h.names:
            generator = torch.Generator().manual_seed(1_000 * k + len(drawn))
            value = _number(givens[other], sizes, generator)
            drawn |= {} if value is None else {other: value}
        if any(_there(h, name, {**drawn, name: drawn[name] * s}, sizes) for s in SCALES):
            return True
    return False


def _number(given: Given, sizes: Mapping[str, int], generator: torch.Generator) -> Tensor | None:
    shape = tuple(length_value(n, dict(sizes)) for n in given.shape)
    value = torch.randn(shape, generator=generator, dtype=torch.float64)
    if given.kind == "orthogonal":
        found: Tensor = torch.linalg.qr(value).Q
        return found
    if given.kind not in NUMBERS:
        return None
    return value.abs() if given.kind in SIGNED else value


def _there(
    h: Hypothesis, name: str, values: Mapping[str, Any], sizes: Mapping[str, int]
) -> bool:
    def gaps(first: float) -> Tensor:
        new = values[name].clone()
        new[place] = first
        reading = TorchReading(
            dict(sizes), {**values, name: new}, torch.float64, torch.device("cpu")
        )
        left, right = (torch.as_tensor(reading(side), dtype=torch.float64) for side in h.sides)
        return left - right

    place: Any = ...
    rows = len([n for n in gaps(0.0).shape if n > 1])
    place = (..., *(0,) * (values[name].ndim - rows))
    zero, one, two = (gaps(t) for t in (0.0, 1.0, 2.0))
    square = (two - 2 * one + zero) / 2
    slope = one - zero - square
    size = slope.square() + (4 * square * zero).abs()
    return bool((slope.square() - 4 * square * zero > ROUNDED * size).all())
