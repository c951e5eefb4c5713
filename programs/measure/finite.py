"""The law of all code that comes before the others: ordinary inputs give finite numbers.

The watch of :mod:`~attnproof.programs.finite` looks at every call that any law makes; this
page makes the plainest ones, of few and of many tokens, and their gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..calling import calm, evaluating
from ..draw import Draw
from ..finite import finite_gradients
from ..subjects import Subject
from .base import FINITE, Outcome, held, probe
from .state_calls import Inputs, ways_of
from .states import formatted

__all__: list[str] = []

SIZES = ((1, 1), (1, 2), (1, 3), (2, 4), (3, 5), (2, 8), (1, 33))  # rows of a batch, tokens
STARTS = (0, 7)  # the place of the first token, where code takes one


@formatted
def finite(subject: Subject, draw: Draw) -> Outcome:
    """No NaN and no infinity comes back, along any path, and none is in a gradient."""
    calls, passing, first = 0, set[bool](), None
    with evaluating(subject):
        for way in ways_of(subject):
            for name, call in {way.attribute: way.call, **subject.paths}.items():
                for b, t in SIZES:
                    for start in STARTS:
                        given = way.given(draw, b, t, start)
                        try:
                            calm(call, *given)
                        except Exception as error:  # noqa: BLE001 (of one length)
                            first = first or error
                            continue
                        calls += 1
                        if start == STARTS[0]:
                            passing |= _gradients(name, call, given)
    if not calls and first is not None:
        raise first
    if True in passing:
        return held(f"finite numbers and gradients in {calls} calls")
    blocked = "no gradient reaches what it is given; " if passing else ""
    return held(f"{blocked}finite numbers in {calls} calls")


def _gradients(name: str, call: Callable[..., Any], given: Inputs) -> set[bool]:
    """Whether the call has a gradient, which is empty where it is given no numbers.

    Raises ``NotFinite`` where it is not finite; code may have none.
    """
    inputs = [
        x.detach().clone().requires_grad_(True)
        if isinstance(x, Tensor) and x.is_floating_point() else x
        for x in given
    ]  # fmt: skip
    wanted = [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]
    if not wanted:
        return set()
    try:
        with torch.enable_grad():
            out = call(*inputs)
            made = torch.autograd.grad(out.double().sin().sum(), wanted, allow_unused=True)
    except Exception:  # noqa: BLE001 (code need not be differentiable)
        return {False}
    for one in made:
        if one is not None:
            finite_gradients(name, one, *given)
    return {any(one is not None for one in made)}


for _kind in ("rotary", "attention", "bias", "additive", "mask", "layer"):
    probe(FINITE, _kind)(finite)
