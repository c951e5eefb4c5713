"""The simplest number in an interval: what was meant, where only an interval is known."""

from __future__ import annotations

import math

__all__ = ["simplest", "told"]

DIGITS = 15


def simplest(low: float, high: float) -> float:
    """The number with the fewest decimal digits in [low, high]; of several the nearest the middle.

    Powers of two up to 2^30 count as one digit: lengths are often that.

    Raises ``ValueError`` where there is no number between them.

    >>> simplest(499_999.2, 500_000.3), simplest(8191.9, 8192.1), simplest(0.1, 0.1)
    (500000.0, 8192.0, 0.1)
    """
    if not low <= high or not math.isfinite(low) or not math.isfinite(high):
        raise ValueError(f"wanted an interval; got from {low} to {high}")
    middle = (low + high) / 2
    if low <= 0 <= high:
        return 0.0
    if middle > 1 and low <= (power := 2.0 ** round(math.log2(middle))) <= high <= 2.0**30:
        return power
    for digits in range(1, DIGITS + 1):
        rounded = float(f"{middle:.{digits - 1}e}")
        if low <= rounded <= high:
            return rounded
    return middle


def told(value: float, digits: int = 6) -> str:
    """A number as one would write it.

    >>> told(500000.0), told(1.1386294361), told(2.5e-07)
    ('500000', '1.13863', '2.5e-07')
    """
    if value == int(value) and abs(value) < 10 ** (digits + 3):
        return str(int(value))
    return f"{value:.{digits}g}"
