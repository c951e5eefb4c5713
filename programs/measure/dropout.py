"""Probes of what dropout and other random numbers do in evaluation and in training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ..execution.calling import GENERATORS, arranged, drawn_since, random_states
from ..execution.draw import Draw
from ..execution.response import gap
from ..finding import Counterexample
from ..loading.reach import reached
from ..reading.derived_calls import set_dropout, takes_dropout
from ..subjects import Subject
from .base import Outcome, compare, holds, not_asked, probe, undecided
from .calls import Inputs, allowed_difference, ways_of
from .states import as_before, sizes_run

DROPOUT = 0.3
CALLS = ((1, 2), (3, 6), (2, 5))  # rows and tokens, small first; a cache may take few rows
REPEATED = 20  # equal calls that are cheap: code may read a clock, or what no generator here draws
CHEAP = 1_000_000  # weights, in code whose calls are cheap
SELDOM = 100  # further calls, to notice a dropout that drops one number in a thousand
MANY_CALLS = 24  # calls; a single number has the same fate in all of them once in 5000 draws


@probe("evaluation-repeats", "layer attention")
def evaluation_repeats(subject: Any, draw: Draw) -> Outcome:
    """Check that equal calls in evaluation agree, with dropout set to 0.3 wherever possible.

    They are 20 if the code has few weights, and 100 if one draws random numbers.

    Code may choose its path by its dropout when it is built: a difference with dropout that was set
    later counts only if it also occurs with the dropout it was built with.
    """
    seen = not_asked("there is nothing to call")
    for one in _with_dropout(subject):
        if one is not subject and one.module is None:
            continue  # a function has no evaluation mode
        seen = _evaluated_twice(one, draw)
        if seen.witness is not None:
            break
    return seen


def _evaluated_twice(one: Any, draw: Draw) -> Outcome:
    """Compare two calls; undecided if they differ only with dropout that was set later."""
    seen = _called_twice(one, draw, DROPOUT)
    if seen.witness is None:
        return seen
    built = _called_twice(one, draw, None)
    if built.witness is not None or not takes_dropout(one):
        return seen if built.witness is None else built
    return undecided(
        f"with dropout set to {DROPOUT} two calls in evaluation differ, but not with the dropout "
        "that the code was built with, which may decide how it is built; try another with --set"
    )


def _called_twice(one: Any, draw: Draw, dropout: float | None) -> Outcome:
    """Compare two calls in evaluation; ``dropout``, if a number, is set before them."""
    *_, way = ways_of(one)
    call, held, least = _any_call(one, draw), _generators(one), SELDOM
    # Code that drops at random mostly uses the global generator, which is seeded here.
    with arranged(one, draw.dtype), torch.random.fork_rng(devices=[]):
        torch.manual_seed(draw.seed)
        if dropout is not None:
            set_dropout(one, dropout)
        for b, t in sizes_run(one, CALLS):
            before = random_states(held)
            first, second = (call(b, t).detach().double().cpu() for _ in range(2))
            # random numbers that are drawn have perhaps rare effects
            cheap = not one.run_at and _weights(one) < CHEAP
            draws = drawn_since(before, held)
            many = SELDOM if draws else REPEATED if cheap else 2
            if torch.equal(first, second):
                more = (call(b, t).detach().double().cpu() for _ in range(many - 2))
                second = next((x for x in more if not torch.equal(x, first)), second)
            least = min(least, many)
            at = {"B": b, "n": t, "dropout": DROPOUT, "seed": draw.seed}
            seen = compare(
                second,
                first,
                0.0 if draws else _repeats(one, draw, way.make_inputs(draw, b, t, t), first),
                lambda *place, at=at: (
                    "the second of two equal calls in evaluation gives different numbers",
                    {**at, "place": list(place)},
                    "the second of two equal calls",
                ),
                f"{least} equal calls in evaluation gave the same result",
                there="the first",
                B=b,
                n=t,
            )
            if seen.witness is not None:
                break
    return seen


def _weights(subject: Subject) -> int:
    return sum(x.numel() for x in subject.module.parameters()) if subject.module is not None else 0


def _generators(subject: Subject) -> list[Any]:
    """Return the random number generators that the code holds itself."""
    roots = (subject.module, *(way.call for way in ways_of(subject)))
    held = (x for one in reached(roots) for x in (one, getattr(one, "__self__", None)))
    return [x for x in held if isinstance(x, GENERATORS)]


def _repeats(subject: Any, draw: Draw, given: Inputs, output: Tensor) -> float:
    """Bound the difference of equal calls that draw no random numbers.

    Kernels sum in another order if memory is aligned otherwise, and on an accelerator in any order:
    there of as many terms as the output has numbers.
    """
    bound = allowed_difference(subject, draw, given, output)
    if torch.device(draw.device).type == "cpu":
        return bound
    terms = float(output.abs().max()) * torch.finfo(draw.dtype).eps * output[0].numel()
    return max(bound, terms)


@probe("training-returns", "layer attention")
def training_returns(subject: Any, draw: Draw) -> Outcome:
    """Check that training drops at random after a call in evaluation, also if that comes first."""
    found: Outcome = not_asked("random numbers change no call in training: nothing is dropped")
    for one in _with_dropout(subject):
        if one.module is None:
            continue
        call, before, size = _any_call(one, draw), 0.0, CALLS[0]
        with arranged(one, draw.dtype, train=True), torch.random.fork_rng(devices=[]):
            torch.manual_seed(draw.seed)
            # the code was called in evaluation already when its call was guessed
            for evaluated_first in (False, True) if one.as_before else (False,):
                with as_before(one):
                    if found.skipped:
                        set_dropout(one, DROPOUT)
                    one.module.train()
                    if not evaluated_first:
                        before, size = next(
                            ((far, size) for size in CALLS if (far := _varies(call, *size))),
                            (0.0, CALLS[0]),
                        )
                        if before == 0 and not one.module.training:
                            return _not_dropped(
                                "a call in training, after which it is in evaluation mode",
                                before,
                                before,
                                size,
                                draw,
                            )
                        if before == 0:
                            break
                    one.module.eval()
                    call(*size)
                    one.module.train()
                    still = all(m.training for m in one.module.modules())
                    after = _varies(call, *size)
                if after == 0 or not still:
                    calls = "calls in training, " * (not evaluated_first)
                    return _not_dropped(
                        f"{calls}one in evaluation, calls in training", before, after, size, draw
                    )
        if before:
            b, t = size
            found = holds("dropout is random again in training after an evaluation", B=b, n=t)
    return found


def _not_dropped(
    calls: str, before: float, after: float, size: tuple[int, int], draw: Draw
) -> Outcome:
    b, t = size
    seen = Counterexample(
        {"B": b, "n": t, "seed": draw.seed, "calls": calls},
        ("difference of two calls in training, after evaluation", after),
        ("the same before", before),
        before,
        0.0,
    )
    why = "after an evaluation nothing is dropped in training"
    if not before:
        why = "a call in training puts it into evaluation mode, and nothing is dropped"
    return Outcome(why, before, 0.0, seen, sizes={"B": b, "n": t})


def _varies(call: Callable[[int, int], Tensor], b: int, t: int) -> float:
    """Return how far random numbers move a repeated call; 0 if many calls agree, or none draws."""
    before = random_states()
    first = call(b, t)
    if not drawn_since(before):
        return 0.0
    return next((far for _ in range(MANY_CALLS) if (far := gap(call(b, t), first)) > 0), 0.0)


def _with_dropout(subject: Any) -> list[Any]:
    """Return the code, and a fresh instance made with dropout, if possible."""
    found = [subject]
    if subject.make is not None:
        try:
            made = subject.make(dropout=DROPOUT)
        except Exception:  # noqa: BLE001 (the maker may lack that argument)
            made = None
        if isinstance(made, type(subject)):
            found.append(replace(made, run_at=subject.run_at))
    return found


def _any_call(subject: Any, draw: Draw) -> Callable[[int, int], Tensor]:
    """Return the main call for B rows of n tokens, with the same inputs each time."""
    *_, way = ways_of(subject)  # on tokens, if it takes any
    return lambda b, t: way.call(*way.make_inputs(draw, b, t, t))
