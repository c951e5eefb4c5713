"""Powers of matrices and numbers, for one exponent or many, and laws about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic.array import Array
from attnproof.symbolic.claim import Law, equal, for_all, iterate, rows
from attnproof.symbolic.definition import definition
from attnproof.symbolic.divisors import opened
from attnproof.symbolic.givens import natural
from attnproof.symbolic.scalars import integer, is_integer

from .rotary import block_rotation


def power(matrix: Any, exponent: Any) -> Any:
    """M^j = M M .. M (j factors), M^0 = 1, for M: (d, d) and j = 0, 1, .."""
    xp = array_namespace(matrix)
    return iterate(exponent, xp.eye(matrix.shape[0]), lambda _, Y: matrix @ Y)


@definition(r"\operatorname{geo}")
def geometric_sum(matrix: Any, count: Any, step: Any) -> Any:
    """1 + M^p + M^{2p} + .. + M^{(k−1)p} for M: (d, d), k and p natural numbers."""
    xp = array_namespace(matrix)
    zero = xp.zeros(matrix.shape)
    return iterate(count, zero, lambda t, total: total + power(matrix, t * step))


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


def each(numbers: Any, rule: Callable[[Any], Any]) -> Any:
    """rule(p) for one number p, or row i = rule(p_i) for a list: () -> (..), (n,) -> (n, ..).

    For rules that are not array functions, such as powers with a variable number of factors.  A
    symbolic list gives a symbolic table, a list of integers a plain array.  Raises ``ValueError``
    for numbers that are not integers.

    >>> import numpy as np
    >>> each(np.arange(4), lambda j: 2**j)
    array([1, 2, 4, 8])
    """
    if isinstance(numbers, Array):
        if not numbers.ndim:
            return rule(numbers)
        return rows(numbers.shape[0], lambda i: rule(_written_out(numbers[i])))
    xp = array_namespace(numbers)
    if not numbers.ndim:
        return xp.asarray(rule(_whole(numbers)))
    return xp.stack([xp.asarray(rule(_whole(number))) for number in numbers])


def _whole(number: Any) -> int:
    if number != int(number):
        raise ValueError(f"wanted an integer for the rule, got {number}")
    return int(number)


def _written_out(number: Array) -> Array:
    """Return an entry of a list of integers as an integer term: p_0 + i for p_0 + (0, 1, 2, ..).

    The depth of a stack of layers must have this form.
    """
    written = integer(opened(number.term).right)
    return Array(written) if is_integer(written) else number


def no_hypotheses() -> list[Any]:
    """No hypotheses, for a negative control that drops those of its theorem."""
    return []


def offset_of_powers(matrix: Any) -> Law:
    """(M^m)ᵀ M^{m+k} = M^k for an orthogonal M, and all natural m and k."""
    return for_all(
        {"m": natural(), "k": natural()},
        lambda m, k: equal(
            power(matrix, m).mT @ power(matrix, m + k), power(matrix, k)
        ).by_induction(m),
    )


def powers_of_blocks(angles: Any) -> Law:
    """M^j has the blocks R(j a_b) if M has the blocks R(a_b), for all natural j."""
    matrix = block_rotation(angles)
    return for_all(
        {"j": natural()},
        lambda j: equal(power(matrix, j), block_rotation(j * angles)).by_induction(j),
    )
