"""How many steps stacks of layers are taken, so that the numbers still say something.

Rounding bounds are worst case: over many steps of a recurrence they can grow beyond the values
themselves, and so can the values.  So the steps are raised, twice as many each time, while
float64 still tells the two sides apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import torch

from . import threads
from .compare import NOTHING_TOLD
from .implementations import DoesNotFit, Implementation
from .measurement import Measurement, counted
from .task import Task
from .walk import TooLarge

__all__ = ["informative", "one_thread"]

FEWEST, FIRST = 4, 16
LARGEST = 1e30  # what float32 and bfloat16 hold with room to spare

Run = Callable[[Task, str, Implementation, torch.dtype], Measurement]


def informative(task: Task, run: Run, again: Callable[[Task], Task]) -> Task:
    """The task with as many steps as float64 can follow in every claim, up to its own."""
    most = max(counted(task).values(), default=0)
    if most <= FEWEST:
        return task

    def with_steps(steps: int) -> Task:
        if steps >= most:
            return task
        return again(replace(task, scale=replace(task.scale, steps=steps)))

    steps = FIRST
    best = with_steps(steps)
    if not _tells(best, run):
        return with_steps(FEWEST)
    while steps < most:
        steps *= 2
        more = with_steps(steps)
        if not _tells(more, run):
            break
        best = more
    return best


@contextmanager
def one_thread(task: Task) -> Iterator[None]:
    """Many small steps are taken on one thread: more would wait for each other at every one."""
    many = max(counted(task).values(), default=0) > FIRST
    with threads.one_thread() if many else nullcontext():
        yield


def _tells(task: Task, run: Run) -> bool:
    eager = Implementation("eager")
    for says in task.statement.claims:
        try:
            found = run(task, says, eager, torch.float64)
        except (DoesNotFit, TooLarge):
            continue
        if found.status == "non-finite" or found.reason == NOTHING_TOLD:
            return False
    sides = (bound.value for bound in task.bounds.values())
    return all(bool((side.abs() < LARGEST)[side.isfinite()].all()) for side in sides)
