"""Results about code: a finding for each law and method, and an identity with its parts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from attnproof.documents.verdict_line import Condition

if TYPE_CHECKING:
    from torch import Tensor

METHODS = ("traced", "exact", "measured")
BROKEN_AS_GUESSED = "broken under the guessed call"  # but not as called by another fitting line
NOT_MEASURED = "not measured: the output is not finite"  # prefix for the other laws
LEFT_OPEN = "left open in finite fields"  # followed by what is not decided there
AT_OTHER_LENGTHS = (
    "at lengths that the code asks about"  # prefix for findings about these lengths only
)
DIFFERS_FROM_GRAPH = "the code differs from its graph"  # preceded by the lengths
VERDICTS = ("holds", "broken", "undecided", "not asked", "internal error")


def involves_gradients(law: str, kind: str) -> bool:
    """Whether a law, as stated for this kind of code, also makes a claim about gradients.

    In a graph a detached tensor is just its value, and finite fields have no gradients, so both
    show the law for values only.

    >>> involves_gradients("causal", "layer"), involves_gradients("causal", "mask")
    (True, False)
    >>> involves_gradients("rows-of-batch-apart", "rotary")
    True
    """
    return law in ("causal", "rows-of-batch-apart") and kind != "mask"


@dataclass(frozen=True)
class Counterexample:
    """A counterexample: inputs for which the law fails, as small as could be found.

    ``inputs``: names with plain numbers, strings and nested lists of them (JSON), small enough to
    read.  ``here`` and ``there`` are the two sides that should agree, each with a description and
    its value.  ``difference`` is their distance; ``allowed`` what rounding would explain.
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
    """The verdict on one law by one method: traced (a proof), exact (finite fields) or measured.

    ``why`` is one sentence for a reader: what was seen, or why the law was not asked.  ``error`` is
    the largest difference observed, ``bound`` what rounding allows there.  ``assuming``: the
    conditions under which a proof holds.  ``seed``, ``dtype``, ``device`` and ``sizes`` are those
    of the run that shows it.  ``traceback``: of an internal error, if code of attnproof raised.
    """

    law: str
    method: str
    verdict: str
    why: str
    error: float | None = None
    bound: float | None = None
    witness: Counterexample | None = None
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
    """One property read off the code.

    ``name`` such as layout, width, base, scale, mask; ``value`` plain data (JSON); ``words`` its
    part of the sentence ("base 500000"); ``evidence`` how it was read ("fitted to 64 frequencies,
    read off angles at 18 positions; largest difference 2e-8"); ``certain`` is False if other values
    would fit as well.
    """

    name: str
    value: Any
    words: str
    evidence: str
    certain: bool = True


@dataclass(frozen=True)
class Identity:
    """What the code was identified as: its kind and the properties read off it.

    ``kind``: rotary, attention, bias, additive, mask, layer, or unknown.
    ``answers`` are plain answers to questions people ask ("is my rotate_half right?").
    ``numbers`` are the arrays behind the parts (frequencies, slopes), as tuples.
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
        """Return the part of that name, or None if it was not read."""
        return next((part for part in self.parts if part.name == name), None)


@dataclass(frozen=True)
class Remark:
    """A remark; ``about`` names a part of the identity, the other fields are phrases.

    >>> Remark("base", "base 1000000", "base = 1000000.0 of Rope", "base 10000").found
    'base 10000'
    """

    about: str
    expected: str
    why: str
    found: str


def nearest_factor(x: Tensor, y: Tensor) -> float:
    """Return the number a for which a·x is nearest to y, by least squares.

    >>> import torch
    >>> nearest_factor(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 6.0]))
    3.0
    """
    return float((x * y).sum() / (x * x).sum())


DIGITS = 15


def simplest(low: float, high: float) -> float:
    """Return the number with the fewest decimal digits in [low, high], nearest to the middle.

    A power of two up to 2^30 takes precedence, since lengths often are powers of two.

    Raises ``ValueError`` if the interval is empty or not finite.

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


def format_number(value: float) -> str:
    """Return a number as one would write it.

    >>> format_number(500000.0), format_number(1.1386294361), format_number(2.5e-07)
    ('500000', '1.13863', '2.5e-07')
    """
    if value == int(value) and abs(value) < 1e9:
        return str(int(value))
    return f"{value:.6g}"
