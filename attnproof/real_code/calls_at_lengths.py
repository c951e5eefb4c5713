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
from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from ..documents.verdict_line import Condition
from ..programs.execution.calling import evaluating
from ..programs.execution.draw import Draw
from ..programs.finding import Finding
from ..programs.measure.calls import Way, other_ways, ways_of
from ..programs.prove.call_variants import GRADIENTS, WAY_TEXTS, call_in, inputs_for
from ..programs.prove.lengths import LONGEST
from ..programs.subjects import Additive, Attention, Layer, Rotary, Subject

S = TypeVar("S", bound=Subject)
Lengths = Mapping[str, int]
Call = Callable[[Lengths], Any]
SHORT = 7  # tokens that laws are run with anyway
NUMBERS = range(SHORT, LONGEST)  # candidates for a number of tokens
MAIN = ("attend", "layer", "call", "rotate", "added", "bias", "mask")


def takes(call: Call, at: Lengths) -> bool:
    """Whether code accepts these lengths."""
    with suppress(Exception):  # code may raise anything
        call(at)
        return True
    return False


def call_of(subject: Subject) -> Call | None:
    """Return a function that runs the code, and its other calls, at given lengths; None if no call.

    Exceptions of the first call propagate; those of the others are suppressed.  Where gradients are
    enabled, inputs require them.
    """
    if not any(callable(getattr(subject, name, None)) for name in MAIN):
        return None
    draw = Draw(dtype=subject.dtype)

    def made(way: Way, at: Lengths) -> Any:
        given = way.make_inputs(draw, at.get("B", 1), at["n"], 0)
        return way.call(*map(_wanting, given) if torch.is_grad_enabled() else given)

    def call(at: Lengths) -> Any:
        queries, sized = at.get("r", at["n"]), of_sizes(subject, at)
        main, *others = (*ways_of(sized, queries), *other_ways(sized, queries))
        found = made(main, at)
        for way in others:
            with suppress(Exception):  # code may raise anything
                made(way, at)
        return found

    return call


def _wanting(x: Any) -> Any:
    """Return an input that requires a gradient, if it can; it may be written to."""
    numbers = isinstance(x, Tensor) and x.is_floating_point()
    return x.requires_grad_().clone() if numbers else x


SIZES = "HDEP"  # lengths that a function may take as they come: heads, features, pairs of these


def sizes_of(subject: Subject) -> Lengths:
    """Return the sizes that code is called with, and may take otherwise.

    Those are H heads of keys with D features each, or, of rotary code, P pairs of features; and E
    features of tokens.  A module has weights for its features.
    """
    match subject:
        case Attention() if subject.attend is not None:
            return {"H": subject.groups, "D": subject.width}
        case Rotary():
            heads = {} if "H" in subject.single else {"H": subject.heads}
            return heads if subject.module is not None else {**heads, "P": subject.width // 2}
        case Additive(width=E, module=None):
            return {"E": E}
        case Layer(embed=E, module=None) | Attention(embed=E, module=None):
            return {"E": E} if E else {}
    return {}


def of_sizes(subject: S, at: Lengths) -> S:
    """Return the same function, called with these sizes, as are fresh instances of it.

    Attention has as many queries for each head of keys as before.
    """
    make = subject.make
    if at.keys().isdisjoint(SIZES):
        return subject

    def again(**settings: Any) -> Any:
        made = None if make is None else make(**settings)
        return of_sizes(made, at) if isinstance(made, Subject) and not settings else made

    return replace(_resized(subject, at), make=again if make is not None else None)


def _resized(subject: S, at: Lengths) -> S:
    match subject:
        case Attention(embed=E, width=D) if "E" in at:
            return replace(subject, embed=at["E"], width=D * at["E"] // E)
        case Attention():
            groups, width = at.get("H", subject.groups), at.get("D", subject.width)
            heads = groups * subject.heads // subject.groups
            return replace(subject, heads=heads, groups=groups, width=width)
        case Rotary():
            width = 2 * at["P"] if "P" in at else subject.width
            return replace(subject, heads=at.get("H", subject.heads), width=width)
        case Additive():
            return replace(subject, width=at.get("E", subject.width))
        case Layer():
            return replace(subject, embed=at.get("E", subject.embed))
    return subject


COMMON = ("strided", "gradients", "enabled")  # what most code asks, told before its special cases
WAYS = (*COMMON, *(way for way in WAY_TEXTS if way not in (*COMMON, "int32")))
COVERS: Mapping[str, Collection[str]] = {
    "strided": ("one", "first", "rest", "repeated", "expanded"),
    "gradients": ("trained", "one", "computed", "first", "rest"),
    "enabled": GRADIENTS,
    "inference": ("made",),
}
"""Ways of calling that are cases of another."""
FEW = {"B": 2, "n": 5}
NEAR = 0.05  # relative to the largest entry: another kernel rounds otherwise, in any format


def ways_that_differ(
    subject: Subject, draw: Draw, longer: Collection[Lengths] = ()
) -> tuple[str, ...]:
    """Return the ways of calling in which the code gives other results for the same numbers.

    All ways are tried with few tokens, the common ones with the most of these lengths as well.
    """
    most = max(longer, key=lambda at: at["n"], default=None)
    with evaluating(subject):
        found = [*_unlike(subject, draw, WAYS)]
        found += _unlike(of_sizes(subject, most), draw, COMMON, most) if most is not None else ()
    return tuple(dict.fromkeys(found))


def holds_unless(ways: Sequence[str], laws: Collection[str], draw: Draw) -> Iterator[Finding]:
    """Yield findings that laws hold unless a call is made in one of these ways; none for none."""
    told = tuple(
        Condition(f"no call is made {WAY_TEXTS[way]}, which gives other results", "where")
        for way in ways
        if not any(way in COVERS.get(other, ()) for other in ways if other != way)
    )
    why = "it holds for inputs that were given as most are"
    for law in laws if told else ():
        yield Finding(law, "measured", "holds", why, dtype=draw.format, assuming=told)


def _unlike(
    subject: Subject, draw: Draw, ways: Sequence[str], at: Lengths | None = None
) -> Iterator[str]:
    """Yield the ways in which calls give other results, of few tokens unless lengths are given."""
    queries, sizes = (at.get("r", at["n"]), at) if at is not None else (0, FEW)
    for call in (*ways_of(subject, queries), *other_ways(subject, queries or sizes["n"])):
        given = call.make_inputs(draw, sizes.get("B", 1), sizes["n"], 0)
        yield from (way for way in ways if _gives_other(subject, call, given, way))


def _gives_other(subject: Subject, call: Way, given: tuple[Any, ...], way: str) -> bool:
    """Whether a call in some way differs from a plain one, and two plain ones do not."""
    tensors = [x for x in given if isinstance(x, Tensor)]
    modules = () if subject.module is None else (subject.module,)

    def code(*moved: Tensor) -> tuple[Tensor]:
        rest = iter(moved)
        return (call.call(*(next(rest) if isinstance(x, Tensor) else x for x in given)),)

    with suppress(Exception), torch.random.fork_rng(devices=[]):  # code may refuse it
        inputs = inputs_for(way, tensors, [0] * len(tensors))
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
