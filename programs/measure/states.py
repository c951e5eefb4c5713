"""The probe of statelessness, for code of every kind: effects of earlier calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..execution.calling import earlier_calls, evaluating, fresh, seeded_call
from ..execution.draw import Draw
from ..execution.finite import NotFinite
from ..execution.response import differences, place_of_largest
from ..execution.running import in_a_line
from ..subjects import Bias, Mask, Subject
from .base import (
    ALL_KINDS,
    CAST,
    Outcome,
    broken,
    formatted,
    holds,
    probe,
    undecided,
)
from .calls import (
    Inputs,
    Way,
    allowed_difference,
    other_ways,
    run_recorded,
    ways_of,
    witness_inputs,
)
from .tables_by_length import ROUNDED, Earlier, cached_by_length

SETTINGS: dict[str, tuple[Any, ...]] = {"base": (777.0,), "heads": (2, 4, 3), "width": (4, 6)}
ELSEWHERE = "a call of the same length from another start"
Call = tuple[Callable[..., Tensor] | None, Inputs]


def fresh_instance(subject: Subject, draw: Draw, **settings: Any) -> Subject | None:
    """Return a fresh instance, its weights in the dtype of the draw."""
    made = fresh(subject, **settings)
    if isinstance(made, CAST) and made.module is not None:
        for numbers in (*made.module.parameters(), *made.module.buffers()):
            if numbers.is_floating_point():
                numbers.data = numbers.data.to(draw.dtype)
    return made


def calls_before(
    subject: Subject, way: Way, draw: Draw, sizes: tuple[int, int]
) -> Iterator[tuple[str, list[Call]]]:
    """Yield what may have been called before, in words, and the calls.

    None stands for a call of the instance itself.
    """
    b, t = sizes
    short = _short(draw)
    yield "the same call", [(None, way.make_inputs(draw, b, t, 0))]
    yield ELSEWHERE, [(None, way.make_inputs(draw, b, t, 9))]
    yield "a longer call", [(None, way.make_inputs(draw, b, 2 * t + 3, 0))]
    yield "a longer call from another start", [(None, way.make_inputs(draw, b, 2 * t + 3, 5))]
    yield "a shorter call", [(None, way.make_inputs(draw, b, max(1, t // 2), 0))]
    yield "a call with one token", [(None, way.make_inputs(draw, b + 1, 1, 4))]
    yield "a call with more rows", [(None, way.make_inputs(draw, b + 2, t, 0))]
    yield f"a call on data in {short.format}", [(None, way.make_inputs(short, b, t, 0))]
    if way.attribute in ("bias", "mask"):
        queries, keys = way.make_inputs(draw, b, t, 0)
        yield "a call with fewer queries and as many keys", [(None, (max(1, queries // 2), keys))]
        yield "a call with as many queries as keys", [(None, (keys, keys))]
    for told, other in others_of(subject, draw):
        own = next((w for w in ways_of(other) if w.attribute == way.attribute), None)
        if own is not None:
            same = (own.call, own.make_inputs(draw, b, t, 0))
            yield told, [same, (own.call, own.make_inputs(draw, b, 2 * t + 3, 5))]
            between = (None, way.make_inputs(draw, b, t + 1, 2))
            yield (
                f"{told}, called in turn",
                [(own.call, own.make_inputs(draw, b, t, 9)), between, same],
            )


def _short(draw: Draw) -> Draw:
    """Return the same inputs in another dtype, coarser if possible."""
    return draw.cast(torch.bfloat16 if draw.dtype != torch.bfloat16 else torch.float32)


def _earlier(subject: Subject, way: Way, draw: Draw) -> Earlier:
    """Yield calls of one length that may leave a table to the next call of that length."""
    yield _on_short_data(way, draw)
    yield ELSEWHERE, partial(_called, way, draw, 9)
    for told, other in others_of(subject, draw):
        for own in ways_of(other):
            if own.attribute == way.attribute:
                yield f"{told}, of the same length", partial(_called, own, draw, 0)


def _on_short_data(way: Way, draw: Draw) -> tuple[str, Callable[[int], Any]]:
    short = _short(draw)
    return (
        f"a call of the same length on data in {short.format}",
        partial(_called, way, short, 0),
    )


def _rounded_earlier(subject: Subject, way: Way, draw: Draw) -> Outcome | None:
    """Return what a call on short data leaves where it rounds positions, in code never called."""
    made = fresh_instance(subject, draw)
    if made is None:
        return None
    own = replace(way, call=way.on(made))
    return cached_by_length(made, own, draw, [_on_short_data(own, draw)], ROUNDED)


def _called(way: Way, draw: Draw, start: int, length: int) -> Tensor:
    with earlier_calls():
        return seeded_call(way.call, *way.make_inputs(draw, 1, length, start))


def others_of(subject: Subject, draw: Draw) -> list[tuple[str, Subject]]:
    """Return another instance, and those that can be built with one setting changed."""
    others = [("another instance", fresh_instance(subject, draw))]
    for name, settings in SETTINGS.items():
        if hasattr(subject, name) or name == "base":
            current = getattr(subject, name, None)
            value = next(v for v in settings if v != current)
            try:
                made = fresh_instance(subject, draw, **{name: value})
            except Exception:  # noqa: BLE001 (code may refuse settings)
                continue
            others.append((f"another instance with {name} {value}", made))
    at = subject.run_at
    return [(told, replace(other, run_at=at)) for told, other in others if other is not None]


@dataclass(frozen=True)
class _Judged:
    """A call on some inputs, what it gives first, whose call that is, and the allowed difference.

    ``sizes``: rows and tokens.
    """

    way: Way
    inputs: Inputs
    firsts: Sequence[Tensor]
    whose: str
    bound: float
    sizes: tuple[int, int]

    def off(self, again: Tensor | None) -> float:
        """Return how far a later result is from each first one at most."""
        if again is None:
            return math.inf
        return max(float(_off(again, one).max()) for one in self.firsts)

    def broken(self, told: str, again: Tensor | None, error: str) -> Outcome | None:
        """Return the broken law if a call gave this after others, in words; None if it is not."""
        before = {"before": told, "call": self.way.attribute}
        if again is None:
            return broken(
                f"after {told} a call raises an error that it did not raise before",
                {**before, "inputs": witness_inputs(self.inputs)},
                ("after it", error),
                (self.whose, f"{tuple(self.firsts[0].shape)}"),
                float("inf"),
                self.bound,
            )
        offs = ((one, _off(again, one)) for one in self.firsts)
        beyond = next((pair for pair in offs if not float(pair[1].max()) <= self.bound), None)
        if beyond is None:
            return None
        one, off = beyond
        place = place_of_largest(off) if again.shape == one.shape else None
        here, there = (
            float(x[place]) if place is not None else tuple(x.shape) for x in (again, one)
        )
        at = [int(i) for i in place] if place is not None else []
        return broken(
            f"a call gives a different result after {told}",
            {**before, "inputs": witness_inputs(self.inputs), "place": at},
            (f"after {told}", here),
            (self.whose, there),
            float(off.max()),
            self.bound,
            B=self.sizes[0],
            T=self.sizes[1],
        )


@probe("stateless", ALL_KINDS)
@formatted
def stateless(subject: Subject, draw: Draw) -> Outcome:
    """Compare a call, after each of several others, with the same call of a fresh instance."""
    worst, bound, count = 0.0, 0.0, 0
    with evaluating(subject):
        for one, told, again, error, did in _later_calls(subject, draw):
            if (failed := one.broken(told, again, error)) is not None:
                return failed
            worst, bound, count = max(worst, one.off(again)), one.bound, count + did
        for way in ways_of(subject) if not subject.run_at else ():
            kept = cached_by_length(subject, way, draw, _earlier(subject, way, draw))
            kept = kept or _rounded_earlier(subject, way, draw)
            if kept is not None:
                return kept
    if not count:
        return undecided("no earlier call was possible")
    return holds(
        f"a call gives the same result after {count} others: longer, shorter, from another start, "
        "in another dtype, of another instance",
        worst,
        bound,
    )


Later = tuple[_Judged, str, Tensor | None, str, int]


def _later_calls(subject: Subject, draw: Draw) -> Iterator[Later]:
    """Yield each call, what came before it, in words, what it gives or its error, and how many.

    Calls of different kinds are made in pairs; at given lengths, all of them in a row.
    """
    # Caches that grew earlier may stay: these calls are longer than most.
    plain = (2, 4) if not isinstance(subject, Bias | Mask) else (3, 33 + draw.seed % 8)
    main, others = ways_of(subject), other_ways(subject)
    pairs = [] if subject.run_at else [*main, *others]
    for small in sizes_run(subject, (plain,)):
        row: list[_Judged] = []
        for way in (*main, *others):
            beside = way not in main
            try:
                row.append(_judged(subject, way, draw, small, beside=beside))
            except NotFinite:
                raise
            except Exception:
                if not beside:
                    raise
                continue
            if not beside:
                yield from _after(subject, row[-1], _histories(subject, way, draw, small))
            if others and pairs:
                across = _across(subject, way, pairs, draw, small, repeated=beside)
                yield from _after(subject, row[-1], across)
        if others and not pairs:
            yield from _in_a_row(subject, row, draw)


def _after(
    subject: Subject, one: _Judged, histories: Iterable[tuple[str, list[Call], Subject]]
) -> Iterator[Later]:
    """Make a call after each history, from where nothing was called."""
    with as_before(subject) as set_back:
        for told, calls, actor in histories:
            set_back()
            did = _calls_made(one.way, actor, calls)
            again, error = _result_or_error(one.way.on(actor), one.inputs)
            yield one, told, again, error, did


def _judged(
    subject: Subject, way: Way, draw: Draw, sizes: tuple[int, int], *, beside: bool
) -> _Judged:
    """Return a call and its first result.  Raises what the code raises."""
    inputs = way.make_inputs(draw, *sizes, 0)
    known = beside and bool(subject.run_at)
    firsts, dtype, whose = _first_results(subject, way, inputs, draw, known=known)
    coarse = draw.cast(dtype) if isinstance(subject, CAST) else draw
    bound = allowed_difference(subject, coarse, inputs, firsts[0])
    return _Judged(way, inputs, firsts, whose, bound, sizes)


def _in_a_row(subject: Subject, row: Sequence[_Judged], draw: Draw) -> Iterator[Later]:
    """Make calls of all kinds, one after the other, also in the reverse order.

    Before them each is made from another start.
    """
    actor = subject if subject.as_before else fresh_instance(subject, draw) or subject
    found: list[Later] = []
    with as_before(subject):
        for one in row:
            b, t = one.sizes
            _calls_made(one.way, actor, [(None, one.way.make_inputs(draw, b, t, 9))])
        last = row[-1]
        for one in (*row, *reversed(row)):
            told = f"calls of all kinds, the last of them {last.way.attribute}"
            again, error = _result_or_error(one.way.on(actor), one.inputs)
            found.append((one, told, again, error, 1))
            last = one
    yield from found


def _first_results(
    subject: Subject, way: Way, target: Inputs, draw: Draw, *, known: bool
) -> tuple[list[Tensor], torch.dtype, str]:
    """Return what the first call gives, the dtype in which it runs, and whose call it is.

    It is that of a fresh instance, and that of this one set back to what it was before its first
    call, as far as what it keeps was found; that alone, if the call is ``known`` to be the same of
    a fresh one.  Raises what the code raises.
    """
    back = subject.as_before is not None and way.attribute != "by_length"
    made = None if known and back else fresh_instance(subject, draw)
    found = [] if made is None else [run_recorded(way.on(made), target, draw.dtype)]
    if made is None or back:
        with suppress(Exception) if found else nullcontext(), as_before(subject):
            found.append(run_recorded(way.on(subject), target, draw.dtype))
    whose = "of a fresh one" if made or subject.as_before else "the first time"
    return [one for one, _ in found], found[0][1], whose


def _off(again: Tensor, first: Tensor) -> Tensor:
    """Return how far two results differ, infinitely if in shape; NaN in both is no difference.

    A row of padding, whose output nobody uses, may be NaN.
    """
    if again.shape != first.shape:
        return torch.full((1,), torch.inf)
    return differences(again, first).masked_fill(again.isnan() & first.isnan(), 0.0)


def as_before(subject: Subject) -> AbstractContextManager[Callable[[], object]]:
    """Return a context in which all that the code keeps is as it was before the first call.

    It gives a function that sets all of this back again.
    """
    return subject.as_before() if subject.as_before is not None else nullcontext(lambda: None)


def sizes_run(subject: Subject, plain: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """Return the rows and tokens of a law's calls: those it is measured at, if any are given."""
    if isinstance(subject, Bias | Mask):  # of which r queries are called with r + B keys
        return [(at["n"] - at["r"], at["r"]) for at in subject.run_at] or plain
    return [(at.get("B", 1), at["n"]) for at in subject.run_at] or plain


def _histories(
    subject: Subject, way: Way, draw: Draw, sizes: tuple[int, int]
) -> Iterator[tuple[str, list[Call], Subject]]:
    """Yield what may have been called before, with the instance that is called.

    It is a fresh one, unless this one can be set back to what it was before its first call: a
    fresh one was called already when it was built.  Then a fresh one is called once.
    """
    # what it kept in calls of a fixed length is not all put back
    again = subject.as_before is not None and way.attribute != "by_length"
    for told, calls in calls_before(subject, way, draw, sizes):
        if again:
            yield told, calls, subject
        if not again or told == ELSEWHERE:
            yield told, calls, fresh_instance(subject, draw) or subject


def _across(
    subject: Subject,
    way: Way,
    ways: Sequence[Way],
    draw: Draw,
    sizes: tuple[int, int],
    *,
    repeated: bool,
) -> Iterator[tuple[str, list[Call], Subject]]:
    """Yield each other call, and the same one if ``repeated``, as what may have been called before.

    The same instance makes all of them, unless what it keeps can be set back.
    """
    b, t = sizes
    actor = subject if subject.as_before else fresh_instance(subject, draw) or subject
    if repeated:
        yield "the same call", [(None, way.make_inputs(draw, b, t, 0))], actor
        yield ELSEWHERE, [(None, way.make_inputs(draw, b, t, 9))], actor
    for other in ways:
        if other is not way:
            told = f"a call of another kind ({other.attribute})"
            yield told, [(other.on(actor), other.make_inputs(draw, b, t, 9))], actor


def _calls_made(way: Way, actor: Subject, calls: Sequence[Call]) -> int:
    """Make earlier calls, and return how many of them the code did not refuse."""
    did = 0
    for call, given in calls:
        with suppress(Exception), earlier_calls():
            seeded_call(call or way.on(actor), *given)
            did += 1
    return did


def _result_or_error(call: Callable[..., Tensor], given: Inputs) -> tuple[Tensor | None, str]:
    """Return the result of a call, or None and its error in a line."""
    try:
        return seeded_call(call, *given), ""
    except Exception as error:  # noqa: BLE001 (any code may raise anything)
        return None, in_a_line(error, 160)
