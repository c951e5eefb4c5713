"""What one way of checking a kernel at scale found, as plain data."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..measurement import STATUSES, Judged

__all__ = ["Found", "chance"]

SHARE = 0.1  # the fraction of wrong rows that the chance is written out for


@dataclass(frozen=True)
class Found:
    """One way, on one kernel, device, dtype and size.

    ``error`` and ``tolerance`` are those of the entry ``worst`` = (head, row, column), where error
    over tolerance is largest; ``looked`` says in words which rows were compared, and ``misses``
    what could pass all the same.  ``seconds`` is all that the check takes, the kernel included,
    and ``forwards`` the same in forwards over all rows (0 where none was run); ``bytes_beyond`` is
    the peak of memory beyond the inputs, None where it is not known.
    """

    way: str
    kernel: str
    device: str
    dtype: str
    tokens: int
    heads: int
    width: int
    causal: bool
    seed: int
    looked: str
    misses: str
    status: str
    error: float
    tolerance: float
    worst: tuple[int, ...]
    reason: str
    rounding: str
    judged: tuple[Judged, ...] = ()
    seconds: float = 0.0
    kernel_seconds: float = 0.0
    forwards: float = 0.0
    bytes_of_inputs: int = 0
    bytes_beyond: int | None = None

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"status {self.status!r} is none of {', '.join(STATUSES)}")
        if self.status == "skipped" and not self.reason:
            raise ValueError("a check that was skipped must say why")


def chance(random: int, chosen: int = 0, wrong: str = "all rows is wrong") -> str:
    """What a sample of rows can say, in words; ``wrong`` says of which rows, and what.

    m rows drawn without replacement all miss a set that holds a fraction e of the rows with
    probability at most (1−e)^m.  Drawn m/H from each of H heads the same holds: the product of
    (1−e_h)^(m/H) is at most (1−e)^m for e the mean of the e_h, since log(1−e) is concave.

    >>> chance(48)[:62]
    'if a fraction e of all rows is wrong, the 48 random rows miss '
    """
    text = (
        f"if a fraction e of {wrong}, the {random} random rows miss them all with "
        f"probability at most (1−e)^{random}: {(1 - SHARE) ** random:.1e} for e = {SHARE:.0%}; "
        f"of a single wrong row they say nothing"
    )
    if chosen:
        text += f" ({chosen} more rows are the two ends of each head)"
    return text


def ratio(error: float, tolerance: float) -> float:
    """error / tolerance; 0 where there is no error."""
    if error == 0:
        return 0.0
    return error / tolerance if tolerance else math.inf
