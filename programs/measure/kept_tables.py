"""A table that all instances keep, under less than what it depends on.

What a fresh instance gives shows nothing of it: the table is kept already.  So lengths are taken
that nobody asked for before.  There another call comes first, and then the call that is asked
about; its reference is the same tokens at the beginning of a longer call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from typing import Any

import torch

from ..calling import calm
from ..draw import Draw
from ..finding import Seen
from ..subjects import Additive, Rotary, Subject
from .base import Outcome, broken
from .state_calls import Inputs, Way, allowed_of, differ, shown

__all__ = ["kept_under_less"]

FIRST, SPAN = 71, 400  # lengths that no other look at code has
_LENGTHS = count(FIRST, 2)
TWICE = 2.0  # both sides are rounded, each with a table of its own

Earlier = Iterator[tuple[str, Callable[[int], Any]]]


def kept_under_less(subject: Subject, way: Way, draw: Draw, earlier: Earlier) -> Outcome | None:
    """Broken where a call at a new length gives another result after another call of that length.

    ``earlier``: calls by what they are in words, each given a length.  None where none is broken,
    and where even with none before it the beginning of a longer call is not the shorter one.
    """
    axis = {"turn": 2, "key": 2, "added": 1}.get(way.attribute)
    if axis is None or not isinstance(subject, Rotary | Additive) or subject.most < FIRST + SPAN:
        return None

    def apart(call: Callable[[int], Any]) -> bool:
        off, bound, _, _ = _gap(way, draw, axis, subject, call)
        return not off <= bound

    if any(apart(_nothing) for _ in range(2)):
        return None
    for told, call in (*_of_functions(subject, way, draw), *earlier):
        # of one length alone it may be that tables change there, as those of a longer context
        if apart(call) and apart(call):
            off, bound, given, sides = _gap(way, draw, axis, subject, call)
            raises = isinstance(sides[0], str)
            return broken(
                f"after {told} a call raises that did not before" if raises
                else f"a call gives another result after {told}",
                Seen({"before": told, "call": way.attribute, "inputs": shown(given)},
                     (f"after {told}", sides[0]),
                     ("the same tokens at the beginning of a longer call", sides[1]), off, bound),
                B=1, T=int(given[0].shape[axis]),
            )  # fmt: skip
    return None


def _nothing(_: int) -> None:
    """No call before."""


def _of_functions(subject: Subject, way: Way, draw: Draw) -> Earlier:
    """Calls of a function, which has no size and no device: all callers share its table."""
    if subject.module is not None:
        return

    def narrow(n: int) -> Any:
        x, *rest = way.given(draw, 1, n, 0)
        return way.call(x[..., : x.shape[-1] // 4 * 2], *rest)

    def meta(n: int) -> None:
        with suppress(Exception):  # its result has no numbers to look at
            way.call(*(x.to("meta") for x in way.given(draw, 1, n, 0)))

    if way.given(draw, 1, 1, 0)[0].shape[-1] >= 4:
        yield "one of the same length on fewer channels", narrow
    yield "one of the same length on another device (meta)", meta


def _gap(
    way: Way, draw: Draw, axis: int, subject: Subject, before: Callable[[int], Any]
) -> tuple[float, float, Inputs, tuple[float | str, float | str]]:
    """The largest difference of a call from the beginning of a longer one, after another call."""
    n = FIRST + (next(_LENGTHS) - FIRST) % (SPAN - 2)
    longer = way.given(draw, 1, n + 1, 0)
    given = tuple(
        x.narrow(axis if k == 0 else 1, 0, n).contiguous() for k, x in enumerate(longer)
    )
    try:
        before(n)
    except Exception:  # noqa: BLE001 (a call that it does not take)
        return 0.0, 0.0, given, (0.0, 0.0)
    try:
        after = calm(way.call, *given)
    except Exception as error:
        if before is _nothing:
            raise
        text = " ".join(str(error).split())[:160]
        return math.inf, 0.0, given, (f"{type(error).__name__}: {text}", "no error")
    whole = calm(way.call, *longer)
    first = whole.narrow(axis, 0, n)
    off = differ(after, first)
    place = torch.unravel_index(off.argmax(), off.shape)
    bound = TWICE * allowed_of(subject, draw, longer, whole, same=True)
    return float(off.max()), bound, given, (float(after[place]), float(first[place]))
