"""Square roots and equations modulo a prime.

√m = s · √l₁ · √l₂ .. for m = s² l₁ l₂ .. with different primes l.  Once each prime has one chosen
root, √a √b = √(ab) and √(a²) = a hold for all integers.  Choosing the root that is itself a square
would not work, since √4 would be −2 whenever 2 is not a square.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import torch
from torch import Tensor

from attnproof.symbolic.givens import SIGNED, Given

from ..torch_reading import TorchReading
from .hypothesis import Hypothesis
from .residue import FieldArithmetic, NoResidue
from .towers import prime_factors

# Equations modulo a prime: linear ones by elimination, quadratic ones entry by entry


class Solutions:
    """x plus any combination of the columns of ``kernel``, which solve the homogeneous system."""

    def __init__(self, one: Tensor, kernel: Tensor) -> None:
        self.one, self.kernel = one, kernel


def linear(field: FieldArithmetic, matrix: Tensor, right: Tensor) -> Solutions | None:
    """All x with matrix @ x = right, or None if there is none.

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
    """A root of every entry, and where one exists, for a prime that is 3 modulo 4.

    x^((p + 1)/4) squared is x times x^((p − 1)/2), which is 1 for every nonzero square.
    """
    power, left = torch.ones_like(x), (field.prime + 1) // 4
    square = x
    while left:
        if left & 1:
            power = field.reduced(power * square)
        square, left = field.reduced(square * square), left >> 1
    return power, field.reduced(power * power) == x


# Square roots of integers in a field that multiply like those of real numbers


@cache
def root(m: int, prime: int) -> int | None:
    """√m modulo a prime that is 3 modulo 4, or None if it does not exist.

    >>> root(4, 23), root(18, 23) ** 2 % 23, root(5, 23)
    (2, 18, None)
    """
    if m < 0:
        raise NoResidue(f"a root of {m}")
    found = 1 if m else 0
    for factor in prime_factors(m):
        count = 0
        while m % factor == 0:
            m, count = m // factor, count + 1
        found = found * pow(factor, count // 2, prime) % prime
        if count % 2:
            one = pow(factor, (prime + 1) // 4, prime)
            if one * one % prime != factor % prime:
                return None
            found = found * one % prime
    return found


def has_root(m: int, prime: int) -> bool:
    """Whether √m exists, with the roots of all primes that it needs."""
    return root(m, prime) is not None


def roots(numbers: Tensor, prime: int) -> Tensor:
    """√m for every integer of an array."""
    different, place = torch.unique(numbers, return_inverse=True)
    found = [root(int(m), prime) for m in different]
    missing = [int(m) for m, one in zip(different, found, strict=True) if one is None]
    if missing:
        raise NoResidue(f"√{missing[0]} modulo {prime} does not exist")
    return torch.tensor(found, dtype=torch.int64)[place]


SCALES = (1.0, 0.1, 0.01)  # of the given that is solved for: its row may need to be short
DRAWS = 4
ROUNDED = 1e-6  # relative rounding error allowed for a discriminant
NUMBERS = ("real", "frequency", "angle", *SIGNED)


def real_roots(
    h: Hypothesis,
    name: str,
    givens: Mapping[str, Given],
    sizes: Mapping[str, int],
    whole: Mapping[str, Any],
) -> bool:
    """Whether the first number of every row of a given has two real roots at some real draw."""
    for k in range(DRAWS):
        drawn = {**whole}
        for other in h.names:
            generator = torch.Generator().manual_seed(1_000 * k + len(drawn))
            value = _number(givens[other], sizes, generator)
            drawn |= {} if value is None else {other: value}
        if any(_roots_exist(h, name, {**drawn, name: drawn[name] * s}, sizes) for s in SCALES):
            return True
    return False


def _number(given: Given, sizes: Mapping[str, int], generator: torch.Generator) -> Tensor | None:
    shape, _ = given.shape_and_range(sizes)
    value = torch.randn(shape, generator=generator, dtype=torch.float64)
    if given.kind == "orthogonal":
        found: Tensor = torch.linalg.qr(value).Q
        return found
    if given.kind not in NUMBERS:
        return None
    return value.abs() if given.kind in SIGNED else value


def _roots_exist(
    h: Hypothesis, name: str, values: Mapping[str, Any], sizes: Mapping[str, int]
) -> bool:
    def gaps(first: float) -> Tensor:
        new = values[name].clone()
        new[place] = first
        reading = TorchReading(
            dict(sizes), {**values, name: new}, torch.float64, torch.device("cpu")
        )
        sides = map(reading, h.claim.sides)
        left, right = (torch.as_tensor(side, dtype=torch.float64) for side in sides)
        return left - right

    place: Any = ...
    rows = len([n for n in gaps(0.0).shape if n > 1])
    place = (..., *(0,) * (values[name].ndim - rows))
    zero, one, two = (gaps(t) for t in (0.0, 1.0, 2.0))
    square = (two - 2 * one + zero) / 2
    slope = one - zero - square
    size = slope.square() + (4 * square * zero).abs()
    return bool((slope.square() - 4 * square * zero > ROUNDED * size).all())
