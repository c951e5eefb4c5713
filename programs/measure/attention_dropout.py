"""Laws of dropout: nothing is dropped in evaluation, and training drops again after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..arranging import arranged
from ..draw import Draw
from ..finding import Seen
from ..identify.readings import set_dropout
from ..response import gap
from ..subjects import Attention
from .base import Outcome, held, not_asked, probe
from .scene import Scene

__all__: list[str] = []

DROPOUT = 0.3
CALLS = ((1, 2), (3, 6), (5, 5))  # rows and tokens, small first
MANY = 24  # one number that is dropped or not is the same in all of them once in 5000 draws


@probe("evaluation-repeats", "layer")
@probe("evaluation-repeats", "attention")
def evaluation_repeats(subject: Any, draw: Draw) -> Outcome:
    """Two calls in evaluation give the same, with dropout set to 0.3 wherever it can be set."""
    for one in _with_dropout(subject):
        if one is not subject and one.module is None:
            continue  # a function does what it is told: it knows no evaluation
        call = _any_call(one, draw)
        # Code that drops at random draws from the common generator: it is told where to start.
        with arranged(one, draw.dtype), torch.random.fork_rng(devices=[]):
            torch.manual_seed(draw.seed)
            set_dropout(one, DROPOUT)
            for b, t in CALLS:
                first, second = call(b, t), call(b, t)
                seen = Scene(one, draw).differs(
                    "two calls in evaluation gave the same",
                    ("the second of two equal calls in evaluation", second), ("the first", first),
                    _repeats(first, draw), B=b, T=t, dropout=DROPOUT,
                )  # fmt: skip
                if seen.witness is not None:
                    return seen
    return seen


def _repeats(output: Tensor, draw: Draw) -> float:
    """What sums in another order explain: u for each of as many terms as the output has numbers."""
    if output.device.type == "cpu":
        return 0.0
    return float(output.abs().max()) * torch.finfo(draw.dtype).eps * output[0].numel()


@probe("training-returns", "layer")
@probe("training-returns", "attention")
def training_returns(subject: Any, draw: Draw) -> Outcome:
    """Training that drops at random does so again after a call in evaluation."""
    found: Outcome = not_asked("two calls in training give the same: nothing is dropped")
    for one in _with_dropout(subject):
        if one.module is None:
            continue
        call = _any_call(one, draw)
        with arranged(one, draw.dtype, train=True), torch.random.fork_rng(devices=[]):
            torch.manual_seed(draw.seed)
            if found.skipped:
                set_dropout(one, DROPOUT)
            one.module.train()
            before, size = next(
                ((far, size) for size in CALLS if (far := _varies(call, *size))), (0.0, CALLS[0])
            )
            if before == 0:
                continue
            one.module.eval()
            call(*size)
            one.module.train()
            still = all(m.training for m in one.module.modules())
            after = _varies(call, *size)
        b, t = size
        if after == 0 or not still:
            calls = "calls in training, one in evaluation, calls in training"
            seen = Seen({"B": b, "T": t, "seed": draw.seed, "calls": calls},
                        ("difference of two calls in training, after evaluation", after),
                        ("the same before", before), before, 0.0)  # fmt: skip
            return Outcome("after an evaluation nothing is dropped in training", before, 0.0, seen,
                           sizes={"B": b, "T": t})  # fmt: skip
        found = held("training after an evaluation drops at random again", B=b, T=t)
    return found


def _varies(call: Callable[[int, int], Tensor], b: int, t: int) -> float:
    """How far a call is from the first of equal ones: 0 if none of many is."""
    first = call(b, t)
    return next((far for _ in range(MANY) if (far := gap(call(b, t), first)) > 0), 0.0)


def _with_dropout(subject: Any) -> list[Any]:
    """The code, and a fresh one made with dropout, where it can be made so."""
    found = [subject]
    if subject.make is not None:
        try:
            made = subject.make(dropout=DROPOUT)
        except Exception:  # noqa: BLE001 (a maker without that argument)
            made = None
        if isinstance(made, type(subject)):
            found.append(made)
    return found


def _any_call(subject: Any, draw: Draw) -> Callable[[int, int], Tensor]:
    """The main call at B rows of T tokens, with the same inputs each time."""
    tokens = subject.layer if isinstance(subject, Attention) else subject.call
    if tokens is not None:
        return lambda b, t: tokens(draw.normal(b, t, subject.embed, salt=t))
    h, g, d = subject.heads, subject.groups, subject.width or 5
    return lambda b, t: subject.attend(
        draw.normal(b, h, t, d, salt=1), draw.normal(b, g, t, d, salt=2),
        draw.normal(b, g, t, d, salt=3), None,
    )  # fmt: skip
