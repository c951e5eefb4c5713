"""Binary digits of a natural number."""

from __future__ import annotations

from typing import Any

from attnproof.symbolic.claim import rows

from .powers import number_power

__all__ = ["binary_digit", "binary_digits"]


def binary_digit(number: Any, place: Any) -> Any:
    """⌊i / 2^t⌋ mod 2, the digit of 2^t in the number i."""
    return number // number_power(2, place) % 2


def binary_digits(number: Any, count: Any) -> Any:
    """The digits of 1, 2, 4, .., 2^{b−1}, the last of them first: (b,)."""
    return rows(count, lambda place: binary_digit(number, place))
