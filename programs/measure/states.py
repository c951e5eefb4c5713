"""Probes of state, for every kind of code: rows apart, calls that forget, paths that agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial, wraps
from typing import Any

import torch
from torch import Tensor

from ..calling import calm, evaluating, fresh
from ..draw import Draw
from ..finding import Seen
from ..subjects import Attention, Bias, Layer, Mask, Subject
from .base import Look, Outcome, broken, held, not_asked, probe, undecided
from .kept_tables import kept_under_less
from .scene import Scene, in_formats
from .state_calls import Inputs, Way, allowed_of, differ, shown, under_masks, watched, ways_of

__all__ = ["LOOKS"]

CAST = Attention | Layer  # code whose weights take the dtype of its tokens; tables keep their own


def formatted(look: Look) -> Look:
    """A look at attention and layers in float64 first, and then in the format of the draw."""

    @wraps(look)
    def looked(subject: Subject, draw: Draw) -> Outcome:
        if not isinstance(subject, CAST):
            return look(subject, draw)
        return in_formats(lambda scene: _told(look(scene.subject, scene.draw), scene))(
            subject, draw
        )

    return looked


def _told(seen: Outcome, scene: Scene) -> Outcome:
    """A witness that says in which format it was found."""
    if seen.witness is None:
        return seen
    name = str(scene.draw.dtype).removeprefix("torch.")
    witness = replace(seen.witness, inputs={**seen.witness.inputs, "format": name})
    return replace(seen, witness=witness)


def another(subject: Subject, draw: Draw, **settings: Any) -> Subject | None:
    """A fresh one, its weights in the dtype of the draw."""
    made = fresh(subject, **settings)
    if isinstance(made, CAST) and made.module is not None:
        for numbers in (*made.module.parameters(), *made.module.buffers()):
            if numbers.is_floating_point():
                numbers.data = numbers.data.to(draw.dtype)
    return made


def before_calls(
    subject: Subject, way: Way, draw: Draw, sizes: tuple[int, int]
) -> Iterator[tuple[str, list[tuple[Callable[..., Tensor] | None, Inputs]]]]:
    """What may have been called before, in words, and the calls: None is the instance itself."""
    b, t = sizes
    short = draw.cast(torch.bfloat16 if draw.dtype != torch.bfloat16 else torch.float32)
    yield "nothing but itself", [(None, way.given(draw, b, t, 0))]
    yield "another start of the same length", [(None, way.given(draw, b, t, 9))]
    yield "a longer one", [(None, way.given(draw, b, 2 * t + 3, 0))]
    yield "a longer one from another start", [(None, way.given(draw, b, 2 * t + 3, 5))]
    yield "a shorter one", [(None, way.given(draw, b, max(1, t // 2), 0))]
    yield "one token", [(None, way.given(draw, b + 1, 1, 4))]
    yield "one of more rows", [(None, way.given(draw, b + 2, t, 0))]
    yield (
        f"one on data in {str(short.dtype).removeprefix('torch.')}",
        [(None, way.given(short, b, t, 0))],
    )
    if way.attribute in ("bias", "mask"):
        queries, keys = way.given(draw, b, t, 0)
        yield "one of fewer queries and as many keys", [(None, (max(1, queries // 2), keys))]
        yield "one of as many queries as keys", [(None, (keys, keys))]
    for told, other in _others(subject, draw):
        if getattr(other, way.attribute, None) is not None:
            calls = {w.attribute: w for w in ways_of(other)}
            own = calls.get(way.attribute)
            if own is not None:
                yield told, [(own.call, own.given(draw, b, t, 0)),
                             (own.call, own.given(draw, b, 2 * t + 3, 5))]  # fmt: skip
                yield (
                    f"{told}, in turns",
                    [
                        (own.call, own.given(draw, b, t, 9)),
                        (None, way.given(draw, b, t + 1, 2)),
                        (own.call, own.given(draw, b, t, 0)),
                    ],
                )


def _earlier(
    subject: Subject, way: Way, draw: Draw
) -> Iterator[tuple[str, Callable[[int], Any]]]:
    """Calls of one length that may leave a table of theirs to the next call of that length."""
    short = draw.cast(torch.bfloat16 if draw.dtype != torch.bfloat16 else torch.float32)
    name = str(short.dtype).removeprefix("torch.")
    yield f"one of the same length on data in {name}", partial(_called, way, short)
    yield "another start of the same length", lambda n: calm(way.call, *way.given(draw, 1, n, 9))
    for told, other in _others(subject, draw):
        calls = {one.attribute: one for one in ways_of(other)}
        own = calls.get(way.attribute)
        if own is not None:
            yield f"{told}, of the same length", partial(_called, own, draw)


def _called(way: Way, draw: Draw, length: int) -> Tensor:
    return calm(way.call, *way.given(draw, 1, length, 0))


def _others(subject: Subject, draw: Draw) -> list[tuple[str, Subject]]:
    """Another instance, and others with one other setting, where it can be built with it."""
    others = [("another instance", another(subject, draw))]
    for name, settings in SETTINGS.items():
        if hasattr(subject, name) or name == "base":
            current = getattr(subject, name, None)
            value = next(v for v in settings if v != current)
            try:
                made = another(subject, draw, **{name: value})
            except Exception:  # noqa: BLE001 (settings that it refuses)
                continue
            others.append((f"another instance with {name} {value}", made))
    return [(told, other) for told, other in others if other is not None]


SETTINGS: dict[str, tuple[Any, ...]] = {"base": (777.0,), "heads": (2, 4, 3), "width": (4, 6)}


@formatted
def calls_forget(subject: Subject, draw: Draw) -> Outcome:
    """One call, after each of several others, against the same call of a fresh instance."""
    worst, bound, count = 0.0, 0.0, 0
    with evaluating(subject):
        for way in ways_of(subject):
            # What grew in earlier calls may be kept for good: so these are longer than most.
            small = (2, 4) if not isinstance(subject, Bias | Mask) else (3, 33 + draw.seed % 8)
            target = way.given(draw, *small, 0)
            made = another(subject, draw)
            first, dtype = watched(way.of(made or subject), target, draw.dtype)
            coarse = draw.cast(dtype) if isinstance(subject, CAST) else draw
            bound = allowed_of(subject, coarse, target, first, same=True)
            for told, calls in before_calls(subject, way, draw, small):
                actor = another(subject, draw) or subject
                did = 0
                for kind, given in calls:
                    call = way.of(actor) if kind is None else kind
                    try:
                        calm(call, *given)
                        did += 1
                    except Exception:  # noqa: BLE001 (a call that it does not take)
                        continue
                try:
                    again = calm(way.of(actor), *target)
                except Exception as error:  # noqa: BLE001 (any code may raise anything)
                    text = " ".join(str(error).split())[:160]
                    return broken(
                        f"after {told} a call raises that did not before",
                        Seen({"before": told, "call": way.attribute, "inputs": shown(target)},
                             ("after it", f"{type(error).__name__}: {text}"),
                             ("of a fresh one", f"{tuple(first.shape)}"), float("inf"), bound),
                    )  # fmt: skip
                count += did
                same_shape = again.shape == first.shape
                off = differ(again, first) if same_shape else torch.full((1,), torch.inf)
                worst = max(worst, float(off.max()))
                if not float(off.max()) <= bound:
                    place = torch.unravel_index(off.argmax(), off.shape) if same_shape else None
                    here, there = (
                        float(x[place]) if place is not None else tuple(x.shape)
                        for x in (again, first)
                    )
                    return broken(
                        f"a call gives another result after {told}",
                        Seen({"before": told, "call": way.attribute, "inputs": shown(target),
                              "place": [int(i) for i in place] if place is not None else []},
                             (f"after {told}", here),
                             ("of a fresh one" if made else "the first time", there),
                             float(off.max()), bound),
                        B=small[0], T=small[1],
                    )  # fmt: skip
            kept = kept_under_less(subject, way, draw, _earlier(subject, way, draw))
            if kept is not None:
                return kept
    if not count:
        return undecided("no call before it could be made")
    return held(f"a call gives the same after {count} others: longer, shorter, from another start, "
                "in another dtype, of another instance", worst, bound)  # fmt: skip


@formatted
def inputs_stay(subject: Subject, draw: Draw) -> Outcome:
    """Every tensor that is given, before and after a call, with a mask and without."""
    count, plain = 0, ways_of(subject)
    with evaluating(subject):
        for way in (*plain, *under_masks(subject)):
            for b, t in ((1, 1), (2, 3)):
                given = way.given(draw, b, t, 1)
                before = [x.clone() if isinstance(x, Tensor) else x for x in given]
                try:
                    calm(way.call, *given)
                except Exception:
                    if way in plain:
                        raise
                    continue  # a mask of this form, or such padding, it does not take
                for i, (now, then) in enumerate(zip(given, before, strict=True)):
                    if not isinstance(now, Tensor):
                        continue
                    count += 1
                    off = differ(now.double().cpu(), then.double().cpu())
                    if bool((off > 0).any()):
                        place = torch.unravel_index(off.argmax(), off.shape)
                        return broken(
                            f"input {i + 1} of {way.attribute} is changed by the call",
                            Seen({"call": way.attribute, "B": b, "T": t, "input": i + 1,
                                  "place": [int(p) for p in place]},
                                 ("after the call", float(now[place])),
                                 ("before", float(then[place])), float(off.max())),
                            B=b, T=t,
                        )  # fmt: skip
    if not count:
        return not_asked("its inputs are numbers")
    return held(f"{count} inputs are what they were", 0.0, 0.0)


LOOKS: dict[str, tuple[Look, str]] = {
    "calls-forget": (calls_forget, "rotary attention bias additive mask layer"),
    "inputs-stay": (inputs_stay, "rotary attention bias additive mask layer"),
}
for _law, (_look, _kinds) in LOOKS.items():
    for _kind in _kinds.split():
        probe(_law, _kind)(_look)
