"""Calls of code under test: in evaluation, with the random numbers of a seed, and on fresh ones."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch
from torch import Tensor

from .running import seeded
from .subjects import Subject

S = TypeVar("S", bound=Subject)


@contextlib.contextmanager
def evaluating(subject: Subject) -> Iterator[None]:
    """The module behind the code in evaluation; afterwards each part is as it was."""
    module = subject.module
    before = [(part, part.training) for part in module.modules()] if module is not None else []
    try:
        if module is not None:
            module.eval()
        yield
    finally:
        for part, training in before:
            part.training = training


def calm(call: Callable[..., Tensor], *given: Any, copied: bool = True) -> Tensor:
    """The result in float64 on the CPU, with the random numbers of one seed.

    Code that draws random numbers (dropout) draws the same ones each time, so that what differs
    between two calls is not chance.  The caller's random state is as it was, and so are the tensors
    that are given, if they are ``copied``.
    """
    own = {id(x): x.clone() for x in given if isinstance(x, Tensor)} if copied else {}
    with torch.random.fork_rng(devices=[]):
        seeded(0)
        result = call(*(own.get(id(x), x) for x in given))  # one tensor stays one
    if not isinstance(result, Tensor):
        raise TypeError(f"wanted a tensor back, got {type(result).__name__}")
    return result.detach().to("cpu", torch.float64, copy=True)


def fresh(subject: S, **settings: Any) -> S | None:
    """A new one of the same settings, or with others; None where the code cannot be built so.

    It is in training or evaluation as the given one is.

    What cannot be built is told by a ``TypeError`` (no such setting); any other fault is raised.
    """
    if subject.make is None:
        return None
    try:
        # Weights are drawn as those of every other fresh one.
        with torch.random.fork_rng(devices=[]):
            seeded(0)
            made = subject.make(**settings)
    except TypeError:
        if settings:
            return None
        raise
    if not isinstance(made, type(subject)):
        return None
    if made.module is not None and subject.module is not None:
        made.module.train(subject.module.training)
    return made


def plain(x: Tensor) -> Any:
    """The numbers of a tensor for a witness, with 7 digits: nested lists."""
    if x.dim() == 0:
        value = x.item()
        return float(f"{value:.7g}") if isinstance(value, float) else value
    return [plain(part) for part in x]
