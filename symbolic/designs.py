"""Random numbers of mean 0 and covariance 1 on a few equally likely outcomes, exactly.

A design is an array z of N outcomes by n numbers with Σ_ω z_ωi = 0 and Σ_ω z_ωi z_ωj = N [i = j].
"""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

import numpy as np

__all__ = ["design", "is_design", "outcomes", "rational_orthogonal"]

# Five outcomes, and eight: not all numbers have the same size.
_FIVE = [[2, "-1/2", "-1/2", "-1/2", "-1/2"], [0, "3/2", "-3/2", "1/2", "-1/2"],
         [0, "1/2", "-1/2", "-3/2", "3/2"]]  # fmt: skip
_EIGHT = [[2, -2, 0, 0, 0, 0, 0, 0]]


def outcomes(n: int) -> tuple[int, ...]:
    """Numbers of outcomes on which there is a design of n numbers, the fewest first.

    >>> outcomes(1), outcomes(3)
    ((2, 5, 4), (4, 5, 8))
    """
    few = 2
    while few < n + 1:
        few *= 2
    return (few, *((5,) if n <= len(_FIVE) else ()), 2 * few)


def is_design(z: Any) -> bool:
    """Whether the numbers have mean 0 and covariance 1, exactly."""
    count, n = z.shape
    products = z.T @ z
    return bool((z.sum(0) == 0).all() and (products == count * np.eye(n, dtype=int)).all())


def design(shape: tuple[int, ...], random: Random) -> Any:
    """A design of this shape, (outcomes, numbers), or None if none is known."""
    count, n = shape
    columns = _columns(count, n, random)
    if columns is None:
        return None
    z = np.array([[Fraction(x) for x in column] for column in columns], dtype=object).T
    return z @ rational_orthogonal(n, random) if n > 1 and random.random() < 0.5 else z


def _columns(count: int, n: int, random: Random) -> Any:
    if count == 5 and n <= len(_FIVE):
        return _FIVE[:n]
    if count == 8 and n == 1 and random.random() < 0.5:
        return _EIGHT
    if count < n + 1 or count & (count - 1):
        return None
    chosen = [1 + k for k in range(n)] if random.random() < 0.5 else (
        random.sample(range(1, count), n)
    )  # fmt: skip
    return [[(-1) ** (k & outcome).bit_count() for outcome in range(count)] for k in chosen]


def rational_orthogonal(n: int, random: Random) -> Any:
    """A product of a signed permutation and a reflection x - 2v(v·x)/(v·v), exact."""
    order, signs = random.sample(range(n), n), [random.choice((1, -1)) for _ in range(n)]
    turned = _matrix(n, [signs[i] if order[i] == j else 0 for i in range(n) for j in range(n)])
    v = [random.choice((0, 1, 2)) for _ in range(n)]
    if not any(v) or random.random() < 0.5:
        return turned
    return turned @ reflection([Fraction(x) for x in v])


def reflection(v: list[Fraction]) -> Any:
    """The matrix 1 - 2 v vᵀ/(v·v), for v not 0."""
    n, length = len(v), sum(x * x for x in v)
    return _matrix(n, [(i == j) - 2 * v[i] * v[j] / length for i in range(n) for j in range(n)])


def _matrix(n: int, entries: list[Any]) -> Any:
    return np.array([Fraction(x) for x in entries], dtype=object).reshape(n, n)
