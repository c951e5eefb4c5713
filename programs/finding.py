"""What was found out about one law of some code, in one way."""

from __future__ import annotations

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
