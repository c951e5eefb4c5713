"""A rule of one number, applied to a number or to each of a list of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic.array import Array
from attnproof.symbolic.claim import rows
from attnproof.symbolic.divisors import opened
from attnproof.symbolic.scalars import integer, is_integer


def each(numbers: Any, rule: Callable[[Any], Any]) -> Any:
    """rule(p) for one number p, or row i = rule(p_i) for a list: () -> (..), (n,) -> (n, ..).

    For rules that no array function writes, such as a power with any number of factors.  A
    symbolic list gives one symbolic table, whole numbers a plain array.  Raises ``ValueError`` for
    numbers that are not whole.

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
        raise ValueError(f"the rule is one for whole numbers; it was given {number}")
    return int(number)


def _written_out(number: Array) -> Array:
    """An entry of a list of whole numbers as one: p_0 + i for entry i of p_0 + (0, 1, 2, ..).

    A stack of layers wants its depth so.
    """
    written = integer(opened(number.term).right)
    return Array(written) if is_integer(written) else number
