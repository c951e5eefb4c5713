"""What was found out about some code: of one law, in one way; and what it is, part by part."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from attnproof.verdict_line import Condition

METHODS = ("traced", "exact", "measured")
GUESSED = "broken as it was guessed to be called"  # and not as another line that fits says
NOT_MEASURED = "not measured: the output is not finite"  # begins what is said of other laws
LEFT_OPEN = "left open in finite fields"  # before what they say nothing of
LONGER = "at lengths that the code asks about"  # begins what is said of these alone
UNLIKE = "the code differs from its graph"  # at lengths that are told before it
VERDICTS = ("holds", "broken", "undecided", "not asked", "internal error")


def speaks_of_gradients(law: str, kind: str) -> bool:
    """Whether the words of a law of such code speak of gradients too.

    A graph has what is detached by its value, and finite fields have no gradients: what either
    shows is said of values alone.

    >>> speaks_of_gradients("causal", "layer"), speaks_of_gradients("causal", "mask")
    (True, False)
    """
    return law == "causal" and kind != "mask"


@dataclass(frozen=True)
class Seen:
    """A witness: inputs for which the law fails, as small as could be found.

    ``inputs``: names to plain numbers, strings and nested lists of them (JSON), small enough to
    read.  ``here`` and ``there`` are the two sides that should agree, with what each is in words
    and its value.  ``difference`` is their distance; ``allowed`` what rounding would explain.
    ``certified``: whether the difference was bounded in ball arithmetic.
    """

    inputs: Mapping[str, Any]
    here: tuple[str, Any]
    there: tuple[str, Any]
    difference: float
    allowed: float = 0.0
    certified: bool = False


@dataclass(frozen=True)
class Finding:
    """One law, one method: traced (a proof about the graph), exact (finite fields), or measured.

    ``why`` is one sentence for a reader: what was seen, or why the law was not asked.  ``error``
    is the largest difference that was met, ``bound`` what rounding allows at that place.
    ``assuming``: the conditions under which a proof holds.  ``seed``, ``dtype``, ``device`` and
    ``sizes`` are those of the run that shows it.  ``traceback``: of an internal error: code
    of attnproof raised.
    """

    law: str
    method: str
    verdict: str
    why: str
    error: float | None = None
    bound: float | None = None
    witness: Seen | None = None
    seed: int = 0
    dtype: str = "float32"
    device: str = "cpu"
    sizes: Mapping[str, int] = field(default_factory=dict)
    assuming: tuple[Condition, ...] = ()
    seconds: float = 0.0
    traceback: str = ""

    def __post_init__(self) -> None:
        if self.method not in METHODS or self.verdict not in VERDICTS:
            raise AssertionError(
                f"method {self.method!r}, verdict {self.verdict!r}: {METHODS}, {VERDICTS}"
            )
        if self.verdict == "broken" and self.witness is None:
            raise AssertionError(f"{self.law}: broken wants a witness")

    def __bool__(self) -> bool:
        raise TypeError("a finding has a verdict: holds, broken, undecided, not asked")


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
