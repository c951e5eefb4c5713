"""Check whether code that has no proof gives the same for the same numbers given otherwise.

Code that is proved was run beside its graph in many ways.  Other code may ask as well whether
gradients are wanted, how its inputs lie in memory, and whether two of them are one array: a law
that holds where it was run may then fail.  Each call is made once in each way, and the verdicts say
in which the code is another function.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from ..documents.verdict_line import Condition
from ..programs.execution.calling import evaluating
from ..programs.execution.draw import Draw
from ..programs.finding import Finding
from ..programs.measure.calls import Way, ways_of
from ..programs.prove.call_variants import WAY_TEXTS, call_in, inputs_for
from ..programs.subjects import Subject

FIRST = ("strided", "gradients")  # what most code asks, told before its special cases
WAYS = (*FIRST, *(way for way in WAY_TEXTS if way not in (*FIRST, "repeated", "int32")))
ROWS, TOKENS = 2, 5
NEAR = 0.05  # relative to the largest entry: another kernel rounds otherwise, in any format


def in_other_ways(subject: Subject, laws: Collection[str], draw: Draw) -> Iterator[Finding]:
    """Yield findings that laws hold unless a call is made in a way that gives other results."""
    unlike = list(dict.fromkeys(_unlike(subject, draw))) if laws else []
    told = tuple(
        Condition(f"no call is made {WAY_TEXTS[way]}, which gives other results", "where")
        for way in unlike[:1]
    )
    why = "it holds for inputs that were given as most are"
    for law in laws if told else ():
        yield Finding(law, "measured", "holds", why, dtype=draw.format, assuming=told)


def _unlike(subject: Subject, draw: Draw) -> Iterator[str]:
    """Yield the ways of calling in which the code gives other results for the same numbers."""
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
