"""Powers of matrices and numbers, and the position encodings that powers of a matrix make."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic.claim import iterate, rows
from attnproof.symbolic.definition import definition


def power(matrix: Any, exponent: Any) -> Any:
    """M^j = M M .. M (j factors), M^0 = 1, for M: (d, d) and j = 0, 1, .."""
    xp = array_namespace(matrix)
    return iterate(exponent, xp.eye(matrix.shape[0]), lambda _, Y: matrix @ Y)


@definition(r"\operatorname{geo}")
def geometric_sum(matrix: Any, count: Any, step: Any) -> Any:
    """1 + M^p + M^{2p} + .. + M^{(k−1)p} for M: (d, d), k and p natural numbers."""
    xp = array_namespace(matrix)
    nothing = xp.zeros(matrix.shape)
    return iterate(count, nothing, lambda t, total: total + power(matrix, t * step))


def number_power(base: Any, exponent: Any) -> Any:
    """θ^k = θ θ .. θ (k factors), θ^0 = 1, for a number θ and k = 0, 1, .."""
    return iterate(exponent, 1, lambda _, y: base * y)


def powers(base: Any, count: Any) -> Any:
    """θ^0, θ^1, .., θ^{B−1} for a number θ: (B,)."""
    return rows(count, lambda k: number_power(base, k))


def embedding(matrix: Any, start: Any, length: Any) -> Any:
    """The table with row j = M^j x, j = 0, .., n − 1, for M: (d, d), x: (d,) -> (n, d).

    Ganev, Definition 3.1, with rows counted from 0.
    """
    return rows(length, lambda j: power(matrix, j) @ start)


def multiplicative(matrix: Any, data: Any) -> Any:
    """Row j of X becomes M^j x_j, j = 0, 1, ..: (d, d), (n, d) -> (n, d).

    Ganev, Definition 3.7, with rows counted from 0.
    """
    return rows(data.shape[0], lambda j: power(matrix, j) @ data[j])


@definition(r"\operatorname{alt}")
def last_of_each_pair(frequencies: Any) -> Any:
    """(0, 1, 0, 1, .., 0, 1), a pair for each frequency: (B,) -> (2B,)."""
    xp = array_namespace(frequencies)
    blocks = frequencies.shape[0]
    pairs = xp.stack((xp.zeros(blocks), xp.ones(blocks)), axis=-1)
    return xp.reshape(pairs, (2 * blocks,))
