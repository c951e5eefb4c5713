"""The calls of code of every kind and their inputs: the main ones, others, and if all are finite.

The others are other paths, with a mask, with padding, in pieces.  Code may keep something for the
next call, write to its inputs, or compare its lengths, in one of these alone, and may refuse the
inputs that are made here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor

from ..execution.calling import as_lists, evaluating, seeded_call
from ..execution.draw import Draw
from ..execution.finite import finite_gradients
from ..execution.response import coarsest_unit, unit_of
from ..execution.rotary_matrices import point, tensor_of
from ..execution.running import in_a_line
from ..execution.tolerance import STEPS, rounding_of, sums
from ..subjects import Additive, Attention, Bias, Layer, Mask, Rotary, Subject
from .base import ALL_KINDS, FINITE, Outcome, formatted, holds, probe

Inputs = tuple[Any, ...]
MakeInputs = Callable[[Draw, int, int, int], Inputs]


@dataclass(frozen=True)
class Way:
    """One way to call code: ``make_inputs`` makes them for a draw, B rows, n tokens, and a start.

    ``attribute`` is the field of the subject, or says in words what is called if ``take`` returns
    the call of a subject.
    """

    attribute: str
    call: Callable[..., Tensor]
    make_inputs: MakeInputs
    take: Callable[[Any], Callable[..., Tensor]] | None = None

    def on(self, other: Subject) -> Callable[..., Tensor]:
        """Return the same call of another instance."""
        made: Callable[..., Tensor]
        made = getattr(other, self.attribute) if self.take is None else self.take(other)
        return made


def ways_of(subject: Subject, queries: int = 0) -> list[Way]:
    """Return the calls of code of any kind.

    With ``queries``, lengths are given: so many queries, as many keys as tokens, and positions that
    are the same in all rows.  They may be beyond those that the code takes.
    """

    def lengths(_: Draw, b: int, t: int, start: int) -> Inputs:
        return (queries, t) if queries else (t, t + b + start)

    def sides(_: Draw, b: int, t: int, start: int) -> tuple[int, int]:
        return (b + start, b + start) if getattr(subject, "square", False) else (b + start, t)

    match subject:
        case Rotary():
            return _rotary(subject, given=bool(queries))
        case Attention():
            return _attention(subject, queries)
        case Bias():
            made = (
                ("bias", subject.bias, lengths),
                ("window", subject.window, sides),
                ("index", subject.index, lambda *given: (sides(*given),)),
            )
            return [Way(name, call, make) for name, call, make in made if call is not None]
        case Mask():
            return [Way("mask", subject.mask, lengths)]
        case Additive():
            most = 1 << 30 if queries else subject.most
            return [Way("added", subject.added, tokens_of(subject.width, most))]
        case Layer():
            return [Way("call", subject.call, tokens_of(subject.embed))]
    return []


def tokens_of(width: int, most: int = 1 << 30) -> MakeInputs:
    """Return what makes tokens (B, n, E), with at most so many in a row."""
    return lambda draw, b, t, start: (draw.normal(b, min(t, most), width, salt=start),)


def _rotary(subject: Rotary, *, given: bool) -> list[Way]:
    def made(draw: Draw, b: int, t: int, start: int) -> Inputs:
        x = draw.normal(b, subject.heads, t, subject.width, salt=start)
        most = subject.longest or subject.most
        size = 1 << 20 if given else max(1, min(most - subject.first, 1 << 20))
        # Rows start at different places, so that a swapped row is noticed; but not many rows, if
        # these take as many calls.
        alike = given or (bool(subject.run_at) and (subject.shared or subject.counts))
        at = [
            [point(subject, subject.first + (start + 3 * r + i) % size) for i in range(t)]
            for r in range(1 if alike else b)
        ]
        rows = [tensor_of(subject, row, draw) for row in at]
        return x, torch.stack(rows * b if alike else rows)

    found = [Way("rotate", subject.rotate, made)]
    if subject.key is not None:
        found.append(Way("key", subject.key, made))
    if subject.by_length is not None:
        found.append(Way("by_length", subject.by_length, lambda *of: made(*of)[:1]))
    return found


def _attention(subject: Attention, queries: int) -> list[Way]:
    found = []
    if subject.attend is not None:
        found.append(Way("attend", subject.attend, heads_of(subject, lambda t: queries or t)))
    if subject.layer is not None:
        found.append(Way("layer", subject.layer, tokens_of(subject.embed)))
    return found


def heads_of(subject: Attention, queries: Callable[[int], int]) -> MakeInputs:
    """Return what makes queries, keys, values and no mask; ``queries``: their number for T keys."""
    width = subject.width or 8

    def three(draw: Draw, b: int, t: int, start: int) -> Inputs:
        q = draw.normal(b, subject.heads, queries(t), width, salt=start)
        k, v = (draw.normal(b, subject.groups, t, width, salt=start + s) for s in (50, 90))
        return q, k, v, None

    return three


def allowed_difference(subject: Subject, draw: Draw, given: Inputs, result: Tensor) -> float:
    """Bound the difference between two results of one call on the same inputs.

    The dtype of the draw is the coarsest in which the code computes, see :func:`run_recorded`.
    Tables may be recomputed, so angles may differ.
    """
    size = float(result.abs().nan_to_num(posinf=0, neginf=0).max()) if result.numel() else 0.0
    tensors = [x for x in given if isinstance(x, Tensor) and x.is_floating_point()]
    finite = (x.abs().nan_to_num(nan=0, posinf=0) for x in tensors if x.numel())
    size = max([size, *(float(x.max()) for x in finite)])
    rounding = rounding_of(draw.dtype)
    match subject:
        case Rotary():
            last = given[-1]  # the positions, if it takes any, or the length of a shift
            far = float(torch.as_tensor(last).abs().max()) if given[1:] else 0.0
            far = max(far, *(float(x.shape[2]) for x in tensors if x.dim() == 4))
            place = far * max(1, subject.axes)
            return 2 * size * (2 * rounding.rotating + 4 * STEPS * rounding.angle_unit * place)
        case Bias() | Mask():
            numbers = [n for x in given for n in (x if isinstance(x, tuple) else (x,))]
            return sums(1, torch.float32, size) * float(1 + max(numbers))
        case Additive():
            count = int(given[0].shape[1])
            return size * (4 * rounding.unit + STEPS * rounding.angle_unit * count)
    return sums(0, draw.dtype, size * float(1 + given[0].shape[-1] ** 0.5))


def run_recorded(
    call: Callable[..., Tensor], given: Inputs, dtype: torch.dtype
) -> tuple[Tensor, torch.dtype]:
    """Return the result of a call, and its coarsest float dtype: softmax is often in float32."""
    result, unit = coarsest_unit(seeded_call, call, *given)
    unit = max(unit, unit_of(dtype))
    known = (torch.bfloat16, torch.float16, torch.float32, torch.float64)
    return result, next((one for one in known if unit_of(one) == unit), dtype)


def witness_inputs(given: Inputs) -> list[Any]:
    """Return inputs for a witness: their numbers if there are few, else their shapes."""
    return [
        x
        if not isinstance(x, Tensor)
        else as_lists(x.cpu())
        if x.numel() <= 16
        else f"{tuple(x.shape)}, drawn"
        for x in given
    ]


Take = Callable[[Any], Callable[..., Tensor]]
FORM_WORDS = {"bool": "truth values", "float": "numbers"}
MOVED = 3  # by which keys in a cache are shifted, and tokens in the whole layer


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


def _joined(field: str) -> Take:
    """Return what takes a call with several results, here one after the other, from a subject."""

    def take(one: Any) -> Callable[..., Tensor]:
        def joined(*given: Any) -> Tensor:
            return torch.cat([x.flatten() for x in getattr(one, field)(*given)])

        return joined

    return take


def _in_pieces(tokens: MakeInputs, sizes: Sizes) -> Iterator[tuple[str, Take, MakeInputs]]:
    """Yield the calls of a step on tokens in two pieces; of given lengths, also other pieces."""

    def of(cut: Callable[[int], int]) -> Take:
        return lambda one: lambda x: _in_two(one.step, x, cut(x.shape[1]), sizes)

    yield "step", of(sizes.half), tokens
    if sizes.queries:
        yield "step, a token first", of(lambda _: 1), tokens
        yield "step, two tokens last", of(lambda n: max(1, n - 2)), tokens


def _in_two(step: Callable[..., Any], x: Tensor, cut: int, sizes: Sizes) -> Tensor:
    """Feed tokens in two pieces, or a single one.

    They share the memory of the tokens, unless lengths are given: code may refuse such inputs.
    Then they are contiguous if the tokens are.
    """
    first, rest = x[:, :cut], x[:, cut:]
    if sizes.queries and x.is_contiguous():
        first, rest = first.contiguous(), rest.contiguous()
    found, state = step(first, None)
    return torch.cat((found, step(rest, state)[0]), 1) if rest.shape[1] else found


def _there(
    subject: Subject, made: Mapping[str, MakeInputs], take: Callable[[str], Take] = attrgetter
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

    one = {"running": lambda *of: make(*of)[:1], "shift": lambda *of: (make(*of)[0], MOVED)}
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
        yield told, attrgetter("attend"), _masked(make, form, sizes)
    if not sizes.queries:
        # as many as a law is measured with, if it is at given lengths
        wanted = next((at["r"] for at in subject.run_at if "r" in at), 0)
        told = "attend with another number of queries than keys"
        yield told, attrgetter("attend"), heads_of(subject, lambda t: wanted or max(1, t // 2))
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
        return *tokens(draw, b, t, start), start + MOVED

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
    """Return truth values (B, n): in the last row only the first tokens count."""
    counts = torch.ones(like.shape[0], tokens, dtype=torch.bool, device=like.device)
    counts[-1, sizes.counted(tokens, start) :] = False
    return counts


def _masked(make: MakeInputs, form: str, sizes: Sizes) -> MakeInputs:
    def given(draw: Draw, b: int, t: int, start: int) -> Inputs:
        q, k, v, _ = make(draw, b, t, start)
        seen = torch.ones(b, 1, q.shape[2], t, dtype=torch.bool, device=q.device)
        seen[..., sizes.counted(t, start) :] = False  # every query sees the first key
        numbers = draw.normal(*seen.shape, salt=start + 130)
        return q, k, v, seen if form == "bool" else numbers.masked_fill(~seen, -math.inf)

    return given


SIZES = ((1, 1), (1, 2), (1, 3), (2, 4), (3, 5), (2, 8), (1, 33))  # rows of a batch, tokens
UNREACHED = "no gradient reaches its inputs"
STARTS = (0, 7)  # the place of the first token, if code takes one


@probe(FINITE, ALL_KINDS)
@formatted
def finite(subject: Subject, draw: Draw) -> Outcome:
    """Check that results and gradients are free of NaN and infinity, along every path."""
    calls, blocked, first = 0, set[str](), None
    with evaluating(subject):
        for way in ways_of(subject):
            for name, call in {way.attribute: way.call, **subject.paths}.items():
                for b, t in SIZES:
                    for start in STARTS:
                        given = way.make_inputs(draw, b, t, start)
                        try:
                            seeded_call(call, *given)
                        except Exception as error:  # noqa: BLE001 (code may refuse a length)
                            first = first or error
                            continue
                        calls += 1
                        if start == STARTS[0]:
                            blocked |= _gradients(name, call, given)
    if not calls and first is not None:
        raise first
    if "" in blocked:
        return holds(f"finite numbers and gradients in {calls} calls")
    return holds("; ".join([*sorted(blocked), f"finite numbers in {calls} calls"]))


def _gradients(name: str, call: Callable[..., Any], given: Inputs) -> set[str]:
    """Return why no gradient reaches the inputs, "" if one does; nothing without float inputs.

    Raises ``NotFinite`` if one is not finite; code need not be differentiable.
    """
    inputs = [
        x.detach().clone().requires_grad_(True)
        if isinstance(x, Tensor) and x.is_floating_point()
        else x
        for x in given
    ]
    wanted = [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]
    if not wanted:
        return set()
    try:
        with torch.enable_grad():
            out = call(*inputs)
            if not out.requires_grad:
                return {UNREACHED}
            made = torch.autograd.grad(out.double().sin().sum(), wanted, allow_unused=True)
    except Exception as error:  # noqa: BLE001 (code need not be differentiable)
        return {f"its gradient was not computed: {in_a_line(error, 100)}"}
    for one in made:
        if one is not None:
            finite_gradients(name, one, *given)
    return {"" if any(one is not None for one in made) else UNREACHED}
