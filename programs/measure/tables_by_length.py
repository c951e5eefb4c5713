"""Tables that all instances share, cached under the length of a call alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import count
from typing import Any

from ..execution.calling import seeded_call
from ..execution.draw import Draw
from ..execution.response import differences, place_of_largest
from ..execution.running import in_a_line
from ..subjects import Additive, Rotary, Subject
from .base import Outcome, broken
from .calls import Inputs, Way, allowed_difference, witness_inputs

Earlier = Iterable[tuple[str, Callable[[int], Any]]]
FIRST, SPAN = 71, 400  # lengths that no other probe uses
ROUNDED = 257 + FIRST  # from here on, the last positions are rounded in bfloat16
_LENGTHS = count(FIRST, 2)
TWICE = 2.0  # both sides are rounded, each with its own table


def cached_by_length(
    subject: Subject, way: Way, draw: Draw, earlier: Earlier, least: int = FIRST
) -> Outcome | None:
    """Return a broken outcome if a call of a new length differs after another call of that length.

    A table shared by all instances, cached under an incomplete key, is invisible in a fresh
    instance: it is cached already.  So lengths are used that no call has had; the reference is the
    same tokens at the beginning of a longer call.  ``earlier``: calls by their description, each
    taking a length.  None if nothing differs, and if the beginning of a longer call differs even
    without an earlier call.
    """
    axis = {"rotate": 2, "key": 2, "added": 1}.get(way.attribute)
    if axis is None or not isinstance(subject, Rotary | Additive) or subject.most < least + SPAN:
        return None

    def apart(call: Callable[[int], Any]) -> bool:
        off, bound, _, _ = _gap(way, draw, axis, subject, call, least)
        return not off <= bound

    if any(apart(_nothing) for _ in range(2)):
        return None
    for told, call in (*_of_functions(subject, way, draw), *earlier):
        # at a single length, tables may change on purpose, as for a longer context
        if apart(call) and apart(call):
            off, bound, given, sides = _gap(way, draw, axis, subject, call, least)
            raises = isinstance(sides[0], str)
            return broken(
                f"after {told} a call raises an error that it did not raise before"
                if raises
                else f"a call gives a different result after {told}",
                {"before": told, "call": way.attribute, "inputs": witness_inputs(given)},
                (f"after {told}", sides[0]),
                ("the same tokens at the beginning of a longer call", sides[1]),
                off,
                bound,
                B=1,
                n=int(given[0].shape[axis]),
            )
    return None


def _nothing(_: int) -> None:
    """Make no earlier call."""


def _of_functions(subject: Subject, way: Way, draw: Draw) -> Earlier:
    """Yield calls of a function, which has no size or device: all callers share its table."""
    if subject.module is not None:
        return

    def narrow(n: int) -> Any:
        x, *rest = way.make_inputs(draw, 1, n, 0)
        return way.call(x[..., : x.shape[-1] // 4 * 2], *rest)

    def meta(n: int) -> None:
        with suppress(Exception):  # a result on meta has no numbers
            way.call(*(x.to("meta") for x in way.make_inputs(draw, 1, n, 0)))

    if way.make_inputs(draw, 1, 1, 0)[0].shape[-1] >= 4:
        yield "a call of the same length on fewer channels", narrow
    yield "a call of the same length on another device (meta)", meta


def _gap(
    way: Way, draw: Draw, axis: int, subject: Subject, before: Callable[[int], Any], least: int
) -> tuple[float, float, Inputs, tuple[float | str, float | str]]:
    """Return how far a call, after another, is from the start of a longer one, and the details."""
    n = least + (next(_LENGTHS) - FIRST) % (SPAN - 2)
    longer = way.make_inputs(draw, 1, n + 1, 0)
    given = tuple(x.narrow(axis if k == 0 else 1, 0, n).contiguous() for k, x in enumerate(longer))
    try:
        before(n)
    except Exception:  # noqa: BLE001 (code may refuse a call)
        return 0.0, 0.0, given, (0.0, 0.0)
    try:
        after = seeded_call(way.call, *given)
    except Exception as error:
        if before is _nothing:
            raise
        return math.inf, 0.0, given, (in_a_line(error, 160), "no error")
    whole = seeded_call(way.call, *longer)
    first = whole.narrow(axis, 0, n)
    off = differences(after, first)
    place = place_of_largest(off)
    bound = TWICE * allowed_difference(subject, draw, longer, whole)
    return float(off.max()), bound, given, (float(after[place]), float(first[place]))
