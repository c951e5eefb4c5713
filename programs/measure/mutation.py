"""The probe of inputs and weights that a call changes, for code of every kind."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor
from torch.nn.parameter import UninitializedParameter

from ..execution.calling import evaluating, seeded_call
from ..execution.draw import Draw
from ..execution.response import differences, place_of_largest
from ..loading.program import watching_inputs
from ..subjects import Subject
from .base import ALL_KINDS, Outcome, broken, formatted, holds, not_asked, probe
from .calls import other_ways, ways_of
from .states import fresh_instance, sizes_run


@probe("no-mutation", ALL_KINDS)
@formatted
def no_mutation(subject: Subject, draw: Draw) -> Outcome:
    """Compare every input tensor before and after a call, of each kind that the code has."""
    count, plain = 0, ways_of(subject)
    with evaluating(subject):
        for way in (*plain, *other_ways(subject)):
            for b, t in sizes_run(subject, ((1, 1), (2, 3))):
                given = way.make_inputs(draw, b, t, 1)
                before = [x.clone() if isinstance(x, Tensor) else x for x in given]
                try:
                    with watching_inputs() as received:
                        seeded_call(way.call, *given, copied=False)
                except Exception:
                    if way in plain:
                        raise
                    continue  # code may refuse this form of mask, or such lengths
                for i, (now, then) in enumerate(zip(given, before, strict=True)):
                    if not isinstance(now, Tensor):
                        continue
                    count += 1
                    told = f"input {i + 1} of {way.attribute} is changed by the call"
                    at = {"call": way.attribute, "B": b, "n": t, "input": i + 1}
                    if changed := _changed(told, at, now, then, B=b, n=t):
                        return changed
                for name, now, then in received:
                    told = f"{name} is changed by the call"
                    at = {"call": way.attribute, "B": b, "n": t, "input": name}
                    if changed := _changed(told, at, now, then, B=b, n=t):
                        return changed
        written = _weights_written(fresh_instance(subject, draw) or subject, draw)
        if written is not None:
            return written
    if not count:
        return not_asked("its inputs are numbers")
    return holds(f"{count} inputs are unchanged", 0.0, 0.0)


def _changed(
    told: str, at: dict[str, Any], now: Tensor, before: Tensor, **sizes: int
) -> Outcome | None:
    """Return a broken outcome if a call wrote to a tensor, at the entry that changed most."""
    if now.shape != before.shape:
        after, first = ("after the call", list(now.shape)), ("before", list(before.shape))
        return broken(told, {**at, "what": "the shape"}, after, first, math.inf, **sizes)
    if now.is_complex():  # entries with real and imaginary parts
        now, before = (torch.view_as_real(x.detach().resolve_conj()) for x in (now, before))
    off = differences(now.detach().double().cpu(), before.double().cpu())
    if not bool((off > 0).any()):
        return None
    place = place_of_largest(off)
    return broken(
        told,
        {**at, "place": list(place)},
        ("after the call", float(now.detach()[place])),
        ("before", float(before[place])),
        float(off.max()),
        **sizes,
    )


TOKENS_WRITTEN = 24  # tokens of a call that may write to the rows of a table


def _weights_written(subject: Subject, draw: Draw) -> Outcome | None:
    """Find weights that a call in evaluation changes, in code that was not called before."""
    module = subject.module
    if module is None:
        return None
    held = {
        name: (weight, weight.detach().clone())
        for name, weight in module.named_parameters()
        if not isinstance(weight, UninitializedParameter)
    }
    for way in ways_of(subject):
        with evaluating(subject), suppress(Exception):  # code may refuse so many tokens
            tokens = min(TOKENS_WRITTEN, getattr(subject, "most", TOKENS_WRITTEN))
            seeded_call(way.call, *way.make_inputs(draw, 2, tokens, 0))
        for name, (weight, before) in held.items():
            told = f"a call in evaluation changes its weights: {name}"
            at = {"call": way.attribute, "n": TOKENS_WRITTEN, "weights": name}
            if changed := _changed(told, at, weight, before, n=TOKENS_WRITTEN):
                return changed
    return None
