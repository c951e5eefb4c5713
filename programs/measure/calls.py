"""The calls of code of every kind, their inputs, and the probe that their results are finite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..execution.calling import as_lists, evaluating, seeded_call
from ..execution.draw import Draw
from ..execution.finite import finite_gradients
from ..execution.response import Recorder, unit_of
from ..execution.rotary_matrices import point, tensor_of
from ..execution.running import in_a_line
from ..execution.tolerance import STEPS, rounding_of, sums
from ..subjects import Additive, Attention, Bias, Layer, Mask, Rotary, Subject
from .base import ALL_KINDS, FINITE, Outcome, formatted, holds, probe

Inputs = tuple[Any, ...]
MakeInputs = Callable[[Draw, int, int, int], Inputs]


@dataclass(frozen=True)
class Way:
    """One way to call code: ``make_inputs`` makes them for a draw, B rows, T tokens, and a start.

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

    match subject:
        case Rotary():
            return _rotary(subject, given=bool(queries))
        case Attention():
            return _attention(subject, queries)
        case Bias():
            made = (
                ("bias", subject.bias, lengths),
                ("window", subject.window, lambda _, b, t, s: (b + s, t)),
                ("index", subject.index, lambda _, b, t, s: ((b + s, t),)),
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
    """Return what makes tokens (B, T, E), with at most so many in a row."""
    return lambda draw, b, t, start: (draw.normal(b, min(t, most), width, salt=start),)


def _rotary(subject: Rotary, *, given: bool) -> list[Way]:
    def made(draw: Draw, b: int, t: int, start: int) -> Inputs:
        x = draw.normal(b, subject.heads, t, subject.width, salt=start)
        size = 1 << 20 if given else max(1, min(subject.most - subject.first, 1 << 20))
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
    recorder = Recorder()
    with recorder:
        result = seeded_call(call, *given)
    unit = max(recorder.unit(result), unit_of(dtype))
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
