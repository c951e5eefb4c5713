"""Every call of some code on arrays of given lengths, and in other ways too.

A law uses one call of some code, which may have others: with a mask, with a cache, or along another
path to the same result.

Code that is proved was run beside its graph in many ways.  Other code may ask as well whether
gradients are wanted, how its inputs lie in memory, and whether two of them are one array: a law
that holds where it was run may then fail.  Each call is made once in each way, and the verdicts say
in which the code is another function.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..documents.verdict_line import Condition
from ..programs.execution.calling import evaluating
from ..programs.execution.draw import Draw
from ..programs.finding import Finding
from ..programs.measure.calls import Way, ways_of
from ..programs.measure.other_calls import other_ways
from ..programs.prove.call_variants import WAY_TEXTS, call_in, inputs_for
from ..programs.prove.lengths import LONGEST
from ..programs.subjects import Additive, Attention, Layer, Rotary, Subject

Lengths = Mapping[str, int]
Call = Callable[[Lengths], Any]
SHORT = 7  # tokens that laws are run with anyway
NUMBERS = range(SHORT, LONGEST)  # candidates for a number of tokens
MAIN = ("attend", "layer", "call", "rotate", "added", "bias", "mask")
FIRST = 3  # a first position other than 0


def calls_of(subject: Any) -> tuple[Any, ...]:
    """Return the calls of some code; the first is the one that laws run."""
    return tuple(one for name in MAIN if callable(one := getattr(subject, name, None)))


def takes(call: Call, at: Lengths) -> bool:
    """Whether code accepts these lengths."""
    with suppress(Exception):  # code may raise anything
        call(at)
        return True
    return False


def call_of(subject: Any) -> Call | None:
    """Return a function that runs the code, and its other calls, at given lengths; None if no call.

    Exceptions of the first call propagate; those of the others are suppressed.
    """
    if not (calls := calls_of(subject)):
        return None
    code, module = calls[0], subject.module
    parts = [] if module is None else [*module.parameters(), *module.buffers()]
    dtype = next((x.dtype for x in parts if x.is_floating_point()), torch.float32)

    generator = torch.Generator().manual_seed(0)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=dtype)

    def call(at: Lengths) -> Any:
        given = _given(subject, at, drawn)
        found = code(*given)
        for other in _others(subject, at, given, drawn):
            with suppress(Exception):  # code may raise anything
                other()
        return found

    return call


def _given(subject: Any, at: Lengths, drawn: Callable[..., Tensor]) -> tuple[Any, ...]:
    """Return the arguments of the first call."""
    B, n = at.get("B", 1), at["n"]
    r = at.get("r", n)
    match subject:
        case Attention(attend=None) | Layer():
            return (drawn(B, n, subject.embed),)
        case Attention():
            H, G, D = subject.heads, subject.groups, subject.width
            return drawn(B, H, r, D), drawn(B, G, n, D), drawn(B, G, n, D), None
        case Rotary():
            places = torch.arange(subject.first, subject.first + n)
            axes = [subject.axes] * bool(subject.axes)
            at_all = places.view(1, n, *[1] * len(axes)).expand(B, n, *axes)
            x = drawn(B, subject.heads, n, subject.width)
            return x, at_all if subject.whole else at_all.to(x.dtype)
        case Additive():
            return (drawn(B, n, subject.width),)
        case _:
            return r, n


def _others(
    subject: Any, at: Lengths, given: tuple[Any, ...], drawn: Callable[..., Tensor]
) -> Iterator[Callable[[], Any]]:
    """Yield the other calls of the code, on the arguments of its first call."""
    step = getattr(subject, "step", None)
    tokens = drawn(at.get("B", 1), at["n"], getattr(subject, "embed", 0))
    if step is not None:
        yield from (lambda cut=cut: _fed(step, tokens, cut) for cut in (at["n"] - 1, 1))
    if isinstance(subject, Rotary):
        x, places = given
        yield lambda: subject.rotate_key(x, places)
        draw, ways = Draw(dtype=x.dtype), other_ways(subject)  # its paths among them
        yield from (partial(_made, way, draw, at.get("B", 1), at["n"]) for way in ways)
    else:
        yield from (lambda path=path: path(*given) for path in subject.paths.values())
    if isinstance(subject, Attention):
        yield from _of_attention(subject, given, tokens, drawn)


def _made(way: Way, draw: Draw, rows: int, tokens: int) -> Tensor:
    """Make a call on inputs that are drawn for it."""
    return way.call(*way.make_inputs(draw, rows, tokens, 0))


def _of_attention(
    subject: Any, given: tuple[Any, ...], tokens: Tensor, drawn: Callable[..., Tensor]
) -> Iterator[Callable[[], Any]]:
    """Yield the calls of attention with masks, documents, a context, and padded rows."""
    rows, n = tokens.shape[:2]
    keep, whole = torch.arange(n).expand(rows, n) < max(1, n - 1), torch.arange(n).expand(rows, n)
    if subject.attend is not None:
        q, k, v, _ = given
        seen = (torch.arange(k.shape[2]) >= 0).expand(rows, 1, q.shape[2], k.shape[2]).clone()
        forms = {"bool": seen, "float": torch.zeros(seen.shape, dtype=q.dtype)}
        yield from (lambda one=forms[name]: subject.attend(q, k, v, one) for name in subject.masks)
        yield lambda: subject.weights(q, k)
        yield lambda: subject.counting(q, k, v, seen[:, 0, :, 0])
        yield lambda: subject.layer(tokens)
    yield from (
        lambda one=one: one(tokens, keep) for one in (subject.hide, *subject.hiding.values())
    )
    yield lambda: subject.documents(tokens, whole)
    yield lambda: subject.whole_layer(tokens, FIRST)
    yield lambda: subject.reading(tokens, drawn(rows, n, subject.context), keep)
    if subject.padded_step is not None:
        pads = (~keep).sum(1)
        yield lambda: _fed(lambda x, state: subject.padded_step(x, state, pads), tokens, n - 1)


def _fed(step: Callable[..., Any], tokens: Tensor, cut: int) -> None:
    """Run a step on tokens in two pieces, passing on its state."""
    _, state = step(tokens[:, :cut].contiguous(), None)
    step(tokens[:, cut:].contiguous(), state)


COMMON = ("strided", "gradients")  # what most code asks, told before its special cases
WAYS = (*COMMON, *(way for way in WAY_TEXTS if way not in (*COMMON, "repeated", "int32")))
ROWS, TOKENS = 2, 5
NEAR = 0.05  # relative to the largest entry: another kernel rounds otherwise, in any format


def ways_that_differ(subject: Subject, draw: Draw) -> tuple[str, ...]:
    """Return the ways of calling in which the code gives other results for the same numbers."""
    return tuple(dict.fromkeys(_unlike(subject, draw)))


def holds_unless(ways: Sequence[str], laws: Collection[str], draw: Draw) -> Iterator[Finding]:
    """Yield findings that laws hold unless a call is made in one of these ways; none for none."""
    told = tuple(
        Condition(f"no call is made {WAY_TEXTS[way]}, which gives other results", "where")
        for way in ways[:1]
    )
    why = "it holds for inputs that were given as most are"
    for law in laws if told else ():
        yield Finding(law, "measured", "holds", why, dtype=draw.format, assuming=told)


def _unlike(subject: Subject, draw: Draw) -> Iterator[str]:
    with evaluating(subject):
        for call in ways_of(subject):
            given = call.make_inputs(draw, ROWS, TOKENS, 0)
            yield from (way for way in WAYS if _gives_other(subject, call, given, way))


def _gives_other(subject: Subject, call: Way, given: tuple[Any, ...], way: str) -> bool:
    """Whether a call in some way differs from a plain one, and two plain ones do not."""
    tensors = [x for x in given if isinstance(x, Tensor)]
    modules = () if subject.module is None else (subject.module,)

    def code(*moved: Tensor) -> tuple[Tensor]:
        rest = iter(moved)
        return (call.call(*(next(rest) if isinstance(x, Tensor) else x for x in given)),)

    with suppress(Exception), torch.random.fork_rng(devices=[]):  # code may refuse it
        inputs = inputs_for(way, tensors, [None] * len(tensors))
        plain, other, again = (
            call_in(one, code, [x.clone() for x in inputs] if one == "plain" else inputs, modules)[
                0
            ]
            for one in ("plain", way, "plain")
        )
        near = NEAR * float(plain.abs().nan_to_num(posinf=0.0).max())
        return _apart(plain, other, near) and not _apart(plain, again, near)
    return False


def _apart(one: Tensor, other: Tensor, near: float) -> bool:
    """Whether two results differ, in shape or beyond rounding."""
    return one.shape != other.shape or not torch.allclose(
        one, other.to(one), rtol=0.0, atol=near, equal_nan=True
    )
