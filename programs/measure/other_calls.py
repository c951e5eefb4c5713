"""The calls of code beside its main one: other paths, with a mask, with padding, in pieces.

Code may keep something for the next call, write to its inputs, or compare its lengths, in one of
these alone.  It may refuse the inputs that are made here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..execution.draw import Draw
from ..subjects import Attention, Layer, Rotary, Subject
from .calls import Inputs, MakeInputs, Way, heads_of, tokens_of, ways_of

Take = Callable[[Any], Callable[..., Tensor]]
FORM_WORDS = {"bool": "truth values", "float": "numbers"}
STEPS = 3  # by which keys in a cache are shifted, and tokens in the whole layer


@dataclass(frozen=True)
class Sizes:
    """How many tokens of T are marked, belong together or come first in a call.

    Few, or half; of given lengths, that is, with a number of ``queries``, all but one, so that
    these grow with T.
    """

    queries: int = 0

    def counted(self, tokens: int, start: int) -> int:
        """How many tokens of a padded row count."""
        return max(1, tokens - 1) if self.queries else 1 + start % 2

    def half(self, tokens: int) -> int:
        """How many tokens a document has, or the first piece of a call in two."""
        return max(1, tokens - 1) if self.queries else -(-tokens // 2)


def other_ways(subject: Subject, queries: int = 0) -> list[Way]:
    """Return the calls of code beside :func:`~.calls.ways_of`, for the same number of queries."""
    found = _others(subject, Sizes(queries))
    return [Way(told, take(subject), make, take) for told, take, make in found]


def _others(subject: Subject, sizes: Sizes) -> Iterator[tuple[str, Take, MakeInputs]]:
    for main in ways_of(subject, sizes.queries)[:1]:
        for name in subject.paths:
            yield f"path {name}", _path("paths", name), main.make_inputs
        if isinstance(subject, Rotary):
            yield from _of_rotary(subject, main.make_inputs)
        if isinstance(subject, Attention):
            yield from _of_heads(subject, main.make_inputs, sizes)
            yield from _of_tokens(subject, sizes)
    if isinstance(subject, Attention | Layer) and subject.step is not None:
        yield from _in_pieces(tokens_of(subject.embed), sizes)


def _path(field: str, name: str) -> Take:
    """Return what takes another path from a subject."""

    def take(one: Any) -> Callable[..., Tensor]:
        call: Callable[..., Tensor] = getattr(one, field)[name]
        return call

    return take


def _field(name: str) -> Take:
    """Return what takes a call from a subject."""

    def take(one: Any) -> Callable[..., Tensor]:
        call: Callable[..., Tensor] = getattr(one, name)
        return call

    return take


def _joined(field: str) -> Take:
    """Return what takes a call with several results, here one after the other, from a subject."""

    def take(one: Any) -> Callable[..., Tensor]:
        def joined(*given: Any) -> Tensor:
            return torch.cat([x.flatten() for x in getattr(one, field)(*given)])

        return joined

    return take


def _in_pieces(tokens: MakeInputs, sizes: Sizes) -> Iterator[tuple[str, Take, MakeInputs]]:
    """Yield the calls of a step on tokens in two pieces; of given lengths, also a token first."""

    def of(cut: Callable[[int], int]) -> Take:
        return lambda one: lambda x: _in_two(one.step, x, cut(x.shape[1]), sizes)

    yield "step", of(sizes.half), tokens
    if sizes.queries:
        yield "step, a token first", of(lambda _: 1), tokens


def _in_two(step: Callable[..., Any], x: Tensor, cut: int, sizes: Sizes) -> Tensor:
    """Feed tokens in two pieces, or a single one.

    They share the memory of the tokens, unless lengths are given: code may refuse such inputs.
    """
    first, rest = x[:, :cut], x[:, cut:]
    if sizes.queries:
        first, rest = first.contiguous(), rest.contiguous()
    found, state = step(first, None)
    return torch.cat((found, step(rest, state)[0]), 1) if rest.shape[1] else found


def _there(
    subject: Subject, made: Mapping[str, MakeInputs], take: Callable[[str], Take] = _field
) -> Iterator[tuple[str, Take, MakeInputs]]:
    """Yield those of some calls that the code has, with what makes their inputs."""
    for name, make in made.items():
        if getattr(subject, name) is not None:
            yield name, take(name), make


def _of_rotary(subject: Rotary, make: MakeInputs) -> Iterator[tuple[str, Take, MakeInputs]]:
    def three(draw: Draw, b: int, t: int, start: int) -> Inputs:
        (q, at), (k, _), (v, _) = (make(draw, b, t, start + salt) for salt in (0, 50, 90))
        return q, k, v, at

    def two(draw: Draw, b: int, t: int, start: int) -> Inputs:
        q, k, _, at = three(draw, b, t, start)
        return q, k, at

    def last(draw: Draw, b: int, t: int, start: int) -> Inputs:
        q, k, _, _ = three(draw, b, t, start)
        return q[:, :, -max(1, t // 2) :].contiguous(), k  # fewer, whatever is given

    one = {"running": lambda *of: make(*of)[:1], "shift": lambda *of: (make(*of)[0], STEPS)}
    yield from _there(subject, one)
    yield from _there(subject, {"all_three": three, "pair": two, "last": last}, _joined)


def _of_heads(
    subject: Attention, make: MakeInputs, sizes: Sizes
) -> Iterator[tuple[str, Take, MakeInputs]]:
    """Yield the calls on queries, keys and values, if there are any."""

    def counting(draw: Draw, b: int, t: int, start: int) -> Inputs:
        q, k, v, _ = make(draw, b, t, start)
        return q, k, v, _first_counts(q, q.shape[2], start, sizes)

    if subject.attend is None:
        return
    for form in subject.masks:
        told = f"attend with a mask of {FORM_WORDS[form]}"
        yield told, _field("attend"), _masked(make, form, sizes)
    if not sizes.queries:
        # as many as a law is measured with, if it is at given lengths
        wanted = next((at["r"] for at in subject.run_at if "r" in at), 0)
        told = "attend with another number of queries than keys"
        yield told, _field("attend"), heads_of(subject, lambda t: wanted or max(1, t // 2))
    yield from _there(subject, {"weights": lambda *of: make(*of)[:2], "counting": counting})


def _of_tokens(subject: Attention, sizes: Sizes) -> Iterator[tuple[str, Take, MakeInputs]]:
    """Yield the calls on tokens with padding, documents, a first place, and a context."""
    tokens = tokens_of(subject.embed)

    def padded(draw: Draw, b: int, t: int, start: int) -> Inputs:
        (x,) = tokens(draw, b, t, start)
        return x, _first_counts(x, t, start, sizes)

    def stepped(draw: Draw, b: int, t: int, start: int) -> Inputs:
        x, counts = padded(draw, b, t, start)
        return x, (~counts).sum(1)

    def documents(draw: Draw, b: int, t: int, start: int) -> Inputs:
        (x,) = tokens(draw, b, t, start)
        return x, (torch.arange(t, device=x.device) % sizes.half(t)).expand(b, t)

    def placed(draw: Draw, b: int, t: int, start: int) -> Inputs:
        return *tokens(draw, b, t, start), start + STEPS

    def reading(draw: Draw, b: int, t: int, start: int) -> Inputs:
        context = draw.normal(b, t, subject.context, salt=start + 50)
        return *tokens(draw, b, t, start), context, _first_counts(context, t, start, sizes)

    def in_two(one: Any) -> Callable[..., Tensor]:
        return lambda x, pads: _in_two(
            lambda part, state: one.padded_step(part, state, pads), x, sizes.half(x.shape[1]), sizes
        )

    yield from _there(subject, {"hide": padded})
    for name in subject.hiding if subject.hide is not None else ():
        yield f"hide, path {name}", _path("hiding", name), padded
    yield from _there(subject, {"documents": documents, "whole_layer": placed, "reading": reading})
    yield from _there(subject, {"padded_step": stepped}, lambda _: in_two)


def _first_counts(like: Tensor, tokens: int, start: int, sizes: Sizes) -> Tensor:
    """Return truth values (B, T): in the last row only the first tokens count."""
    counts = torch.ones(like.shape[0], tokens, dtype=torch.bool, device=like.device)
    counts[-1, sizes.counted(tokens, start) :] = False
    return counts


def _masked(make: MakeInputs, form: str, sizes: Sizes) -> MakeInputs:
    def given(draw: Draw, b: int, t: int, start: int) -> Inputs:
        q, k, v, _ = make(draw, b, t, start)
        seen = torch.ones(b, 1, q.shape[2], t, dtype=torch.bool, device=q.device)
        seen[..., sizes.counted(t, start) :] = False  # every query sees the first key
        numbers = torch.zeros(seen.shape, dtype=q.dtype, device=q.device)
        return q, k, v, seen if form == "bool" else numbers.masked_fill(~seen, -math.inf)

    return given
