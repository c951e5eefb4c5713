"""The calls of code beside its main one: other paths, with a mask, with padding, in pieces.

Code may keep something for the next call, or write to its inputs, in one of these alone.  It may
refuse the inputs that are made here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from ..execution.draw import Draw
from ..subjects import Attention, Layer, Rotary, Subject
from .calls import Inputs, Way, tokens_of, ways_of

Make = Callable[[Draw, int, int, int], Inputs]
Take = Callable[[Any], Callable[..., Tensor]]
FORM_WORDS = {"bool": "truth values", "float": "numbers"}
STEPS = 3  # by which keys in a cache are shifted


def other_ways(subject: Subject) -> list[Way]:
    """Return the calls of code beside :func:`~.calls.ways_of`."""
    return [Way(told, take(subject), make, take) for told, take, make in _others(subject)]


def _others(subject: Subject) -> Iterator[tuple[str, Take, Make]]:
    for main in ways_of(subject)[:1]:
        for name in subject.paths:
            yield f"path {name}", _path("paths", name), main.make_inputs
        if isinstance(subject, Rotary):
            yield from _of_rotary(subject, main.make_inputs)
        if isinstance(subject, Attention):
            yield from _of_heads(subject, main.make_inputs)
            yield from _of_tokens(subject)
    if isinstance(subject, Attention | Layer) and subject.step is not None:
        yield "step", lambda one: lambda x: _in_two(one.step, x), tokens_of(subject.embed)


def _path(field: str, name: str) -> Take:
    """Return what takes another path from a subject."""

    def take(one: Any) -> Callable[..., Tensor]:
        call: Callable[..., Tensor] = getattr(one, field)[name]
        return call

    return take


def _joined(field: str) -> Take:
    """Return what takes a call with several results, here one after the other, from a subject."""

    def take(one: Any) -> Callable[..., Tensor]:
        def joined(*given: Any) -> Tensor:
            return torch.cat([x.flatten() for x in getattr(one, field)(*given)])

        return joined

    return take


def _in_two(step: Callable[..., tuple[Tensor, Any]], x: Tensor) -> Tensor:
    """Feed tokens in two pieces, or a single one, which share the memory of the tokens."""
    first, state = step(x[:, : -(-x.shape[1] // 2)], None)
    rest = x[:, first.shape[1] :]
    return torch.cat((first, step(rest, state)[0]), 1) if rest.shape[1] else first


def _of_rotary(subject: Rotary, make: Make) -> Iterator[tuple[str, Take, Make]]:
    def three(draw: Draw, b: int, t: int, start: int) -> Inputs:
        (q, at), (k, _), (v, _) = (make(draw, b, t, start + salt) for salt in (0, 50, 90))
        return q, k, v, at

    def two(draw: Draw, b: int, t: int, start: int) -> Inputs:
        q, k, _, at = three(draw, b, t, start)
        return q, k, at

    def last(draw: Draw, b: int, t: int, start: int) -> Inputs:
        q, k, _, _ = three(draw, b, t, start)
        return q[:, :, -max(1, t // 2) :].contiguous(), k

    if subject.running is not None:
        yield "running", lambda one: one.running, lambda *of: make(*of)[:1]
    if subject.shift is not None:
        yield "shift", lambda one: one.shift, lambda *of: (make(*of)[0], STEPS)
    if subject.all_three is not None:
        yield "all_three", _joined("all_three"), three
    if subject.pair is not None:
        yield "pair", _joined("pair"), two
    if subject.last is not None:
        yield "last", _joined("last"), last


def _of_heads(subject: Attention, make: Make) -> Iterator[tuple[str, Take, Make]]:
    """Yield the calls on queries, keys and values, if there are any."""

    def counting(draw: Draw, b: int, t: int, start: int) -> Inputs:
        q, k, v, _ = make(draw, b, t, start)
        return q, k, v, _first_counts(q, t, start)

    if subject.attend is None:
        return
    for form in subject.masks:
        told = f"attend with a mask of {FORM_WORDS[form]}"
        yield told, lambda one: one.attend, _masked(make, form)
    told = "attend with another number of queries than keys"
    yield told, lambda one: one.attend, _other_queries(subject, make)
    if subject.weights is not None:
        yield "weights", lambda one: one.weights, lambda *of: make(*of)[:2]
    if subject.counting is not None:
        yield "counting", lambda one: one.counting, counting


def _of_tokens(subject: Attention) -> Iterator[tuple[str, Take, Make]]:
    """Yield the calls on tokens with padding, documents, a first place, and a context."""
    tokens = tokens_of(subject.embed)

    def padded(draw: Draw, b: int, t: int, start: int) -> Inputs:
        (x,) = tokens(draw, b, t, start)
        return x, _first_counts(x, t, start)

    def documents(draw: Draw, b: int, t: int, start: int) -> Inputs:
        (x,) = tokens(draw, b, t, start)
        return x, (torch.arange(t, device=x.device) % -(-t // 2)).expand(b, t)

    def reading(draw: Draw, b: int, t: int, start: int) -> Inputs:
        context = draw.normal(b, t, subject.context, salt=start + 50)
        return *tokens(draw, b, t, start), context, _first_counts(context, t, start)

    if subject.hide is not None:
        yield "hide", lambda one: one.hide, padded
        for name in subject.hiding:
            yield f"hide, path {name}", _path("hiding", name), padded
    if subject.documents is not None:
        yield "documents", lambda one: one.documents, documents
    if subject.whole_layer is not None:
        yield (
            "whole_layer",
            lambda one: one.whole_layer,
            lambda draw, b, t, start: (*tokens(draw, b, t, start), start),
        )
    if subject.reading is not None:
        yield "reading", lambda one: one.reading, reading


def _other_queries(subject: Attention, make: Make) -> Make:
    """Return what makes the last of the queries alone, or as many as a law is measured with."""
    wanted = next((at["r"] for at in subject.run_at if "r" in at), 0)

    def given(draw: Draw, b: int, t: int, start: int) -> Inputs:
        _, k, v, mask = make(draw, b, t, start)
        queries = wanted or max(1, t // 2)
        q = make(draw, b, max(queries, t), start)[0]
        return q[:, :, -queries:].contiguous(), k, v, mask

    return given


def _first_counts(like: Tensor, tokens: int, start: int) -> Tensor:
    """Return truth values (B, T): in the last row only the first token counts, or the first two."""
    counts = torch.ones(like.shape[0], tokens, dtype=torch.bool, device=like.device)
    counts[-1, 1 + start % 2 :] = False
    return counts


def _masked(make: Make, form: str) -> Make:
    def given(draw: Draw, b: int, t: int, start: int) -> Inputs:
        q, k, v, _ = make(draw, b, t, start)
        seen = torch.ones(b, 1, t, t, dtype=torch.bool, device=q.device)
        seen[..., 1 + start % 2 :] = False  # every query sees the first key
        numbers = torch.zeros(seen.shape, dtype=q.dtype, device=q.device)
        return q, k, v, seen if form == "bool" else numbers.masked_fill(~seen, -math.inf)

    return given
