"""What code is, read off what it does: each part with the evidence it was read from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Part:
    """One thing that was read off code.

    ``name`` such as layout, width, base, scale, mask; ``value`` plain data (JSON); ``words`` the
    part of the sentence ("base 500000"); ``evidence`` how it was read ("fitted to 64 frequencies,
    read off angles at 18 positions; largest difference 2e-8"); ``certain`` is False where other
    values would fit as well.
    """

    name: str
    value: Any
    words: str
    evidence: str
    certain: bool = True


@dataclass(frozen=True)
class Identity:
    """What code is: its kind and its parts.

    ``kind``: rotary, attention, bias, additive, mask, layer, or unknown.
    ``answers`` are plain answers to questions people ask ("is my rotate_half right?").
    ``numbers`` are the arrays behind the parts (frequencies, slopes), as lists.
    ``traceback``: of an internal error, after which nothing was read.
    """

    kind: str
    parts: tuple[Part, ...]
    answers: tuple[str, ...] = ()
    numbers: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    traceback: str = ""

    @property
    def sentence(self) -> str:
        """The parts in one sentence."""
        return ", ".join([self.kind, *(part.words for part in self.parts if part.words)])

    def part(self, name: str) -> Part | None:
        """The part of that name, if it was read."""
        return next((part for part in self.parts if part.name == name), None)


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
