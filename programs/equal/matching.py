"""Where two programs part: the first step of one that no step of the other does."""

from __future__ import annotations

from dataclasses import dataclass

from .pair import Two


@dataclass(frozen=True)
class Parted:
    first: str
    second: str

def parted(both: Two, seconds: float) -> Parted | None:
    return None
