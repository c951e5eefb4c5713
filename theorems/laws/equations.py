"""The equations that laws of encodings and laws of code share, of plain functions.

An encoding's law speaks of what its hooks say, and a law of code of what a call gives; where both
say the same, both read it here.  Each function gives the two sides, which should be equal.  They
are written for terms, residues, numpy and torch alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from array_api_compat import array_namespace

from .law import Sides

Call = Callable[..., Any]


def by_offset(call: Call, *positions: Any, s: Any) -> Sides:
    """call(m + s, n + s, ...) = call(m, n, ...): where all positions are moved alike, nothing is.

    >>> by_offset(lambda m, n: m - n, 5, 3, s=40)
    (2, 2)
    """
    return call(*(p + s for p in positions)), call(*positions)


def composed(rotate: Call, x: Any, a: Any, b: Any, both: Any) -> Sides:
    """rotate(rotate(x, a), b) = rotate(x, both), where ``both`` is a + b.

    >>> composed(lambda x, p: x + p, 1, 2, 3, 5)
    (6, 6)
    """
    return rotate(rotate(x, a), b), rotate(x, both)


def shifted(rotate: Call, move: Call, x: Any, p: Any, s: Any) -> Sides:
    """rotate(x, p + s) = move(rotate(x, p)): what moves it on by s need not know where it was.

    >>> shifted(lambda x, p: x + p, lambda y: 2 * y, 1, 2, 3)  # it should add 3
    (6, 6)
    >>> shifted(lambda x, p: x + p, lambda y: 2 * y, 1, 4, 3)
    (8, 10)
    """
    return rotate(x, p + s), move(rotate(x, p))


def linear(rotate: Call, x: Any, y: Any, a: Any) -> Sides:
    """rotate(a·x + y) = a·rotate(x) + rotate(y).

    >>> linear(lambda x: x + 1, 3, 4, 2)  # it adds a number
    (11, 13)
    """
    return rotate(a * x + y), a * rotate(x) + rotate(y)


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


def each_alone(
    call: Callable[..., Any],
    first: Sequence[Any],
    second: Sequence[Any],
    axes: Sequence[int] = (0, 0, 0),
) -> Sides:
    """Two parts put together along an axis give what each gives: rows of a batch, or tokens.

    ``axes`` has the axis of each input; of the result it is that of the first.
    """
    xp, axis = array_namespace(first[0]), axes[0]
    pairs = zip(first, second, axes, strict=False)
    both = call(*(xp.concat((a, b), axis=k) for a, b, k in pairs))
    before, cut = (slice(None),) * axis, first[0].shape[axis]
    left = [both[(*before, slice(None, cut))], both[(*before, slice(cut, None))]]
    return left, [call(*first), call(*second)]


def along(x: Any, axis: int, index: Any) -> Any:
    """``x[index]`` along one axis."""
    return x[(*[slice(None)] * axis, index)]
