"""Scores of an encoding at numbers: one content, at positions in a row, in any format."""

from __future__ import annotations

from time import thread_time
from typing import Any

import numpy as np

from ..encoding import Encoding
from .precision import Rounded

SEED = 0


def at(numeric: Encoding, places: Any, form: type[Rounded] | None = None) -> Any:
    """Positions at whole numbers; those of several coordinates along the first axis."""
    if numeric.whole:
        return np.asarray(places, dtype=np.int64)  # an index: no format rounds it
    line = np.asarray(places, dtype=np.float64)
    if numeric.axes:
        line = np.stack((line, *[0 * line] * (numeric.axes - 1)), axis=-1)
    return line if form is None else form.wide().of(line)


def content(numeric: Encoding, count: int, form: type[Rounded] | None = None) -> Any:
    """The same content so many times."""
    one = np.random.default_rng(SEED).normal(size=numeric.width)
    tokens = np.tile(one, (count, 1))
    return tokens if form is None else form.of(tokens)


def scores(numeric: Encoding, m: Any, n: Any) -> Any:
    """The scores of that content at m with itself at n; NaN where a mask hides the key."""
    found = numeric.scores(content(numeric, len(m)), content(numeric, len(n)), m, n)
    found = np.broadcast_to(np.asarray(found, dtype=float), (len(m), len(n)))
    if numeric.defines("sees"):
        found = np.where(numeric.sees(m[:, None], n[None]), found, np.nan)
    return found


def reach(numeric: Encoding, far: int, slow: float = float("inf")) -> tuple[int, bool]:
    """The last position up to ``far`` to draw, and whether it is defined further on.

    Code that makes one step for each position is followed, in powers of ten, as far as one score
    takes less than ``slow`` seconds.  Raises what it raises at 0.
    """

    def took(place: int) -> float | None:
        start = thread_time()
        try:
            scores(numeric, at(numeric, [place]), at(numeric, [place]))
        except Exception:  # noqa: BLE001 (the question is whether it raises)
            return None
        return thread_time() - start

    scores(numeric, at(numeric, [0]), at(numeric, [0]))
    low, high = 0, 1
    while (seconds := took(high)) is not None:
        if high == far:
            return far, True
        if seconds > slow and (took(high) or 0) > slow:
            return low, True
        low, high = high, min(10 * high, far)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if took(middle) is None else (middle, high)
    return low, False
