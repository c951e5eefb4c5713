"""The equations that laws of encodings and laws of code share, of plain functions.

An encoding's law speaks of what its hooks say, and a law of code of what a call gives; where both
say the same, both read it here.  Each function gives the two sides, which should be equal.  They
are written for terms, residues, numpy and torch alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .law import Sides

__all__ = ["by_offset", "linear", "permuted", "unordered"]

Call = Callable[..., Any]


def by_offset(score: Call, m: Any, n: Any, s: Any) -> Sides:
    """score(m + s, n + s) = score(m, n): of two positions their offset alone counts.

    >>> by_offset(lambda m, n: m - n, 5, 3, 40)
    (2, 2)
    """
    return score(m + s, n + s), score(m, n)


def linear(turn: Call, x: Any, y: Any, a: Any) -> Sides:
    """turn(a·x + y) = a·turn(x) + turn(y).

    >>> linear(lambda x: x + 1, 3, 4, 2)  # it adds a number
    (11, 13)
    """
    return turn(a * x + y), a * turn(x) + turn(y)


def permuted(call: Call, inputs: Sequence[Any], sigma: Any, axes: Sequence[int]) -> Sides:
    """call(x[σ], ...) = call(x, ...)[σ], each input permuted along its axis of tokens.

    ``axes`` has that axis of each input; of the result it is that of the first.

    >>> import numpy as np
    >>> permuted(lambda x: 2 * x, [np.asarray([1, 2])], [1, 0], [0])
    (array([4, 2]), array([4, 2]))
    """
    moved = [along(x, axis, sigma) for x, axis in zip(inputs, axes, strict=True)]
    return call(*moved), along(call(*inputs), axes[0], sigma)


def unordered(call: Call, inputs: Sequence[Any], sigma: Any, axes: Sequence[int]) -> Sides:
    """call(x[σ], ...) = call(x, ...), each input permuted along its axis.

    >>> import numpy as np
    >>> unordered(lambda x: x.sum(), [np.asarray([1, 2])], [1, 0], [0])
    (np.int64(3), np.int64(3))
    """
    moved = [along(x, axis, sigma) for x, axis in zip(inputs, axes, strict=True)]
    return call(*moved), call(*inputs)


def along(x: Any, axis: int, index: Any) -> Any:
    """``x[index]`` along one axis."""
    return x[(*[slice(None)] * axis, index)]
