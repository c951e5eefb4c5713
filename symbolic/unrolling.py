"""Up to which literal length an axis is written out entry by entry.

Statements have symbolic lengths, and the few literal ones are small: two channels of a pair, three
parts of a proof.  A program has literal lengths everywhere, heads and features, and sums over them
are best left as sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["USUAL", "longest_written_out", "written_out"]

USUAL = 8
_longest: ContextVar[int] = ContextVar("longest", default=USUAL)


def longest_written_out() -> int:
    """The longest literal axis that is written out."""
    return _longest.get()


@contextmanager
def written_out(most: int) -> Iterator[None]:
    """Write out axes of literal length up to ``most`` only, while this lasts."""
    token = _longest.set(most)
    try:
        yield
    finally:
        _longest.reset(token)
