"""What code is, read off what it does: each part with the evidence it was read from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Identity", "Part"]


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
