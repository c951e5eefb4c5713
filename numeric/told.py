"""What a measurement says of itself: which entries were looked at, and how they were bounded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnproof.symbolic.scalars import length_value
from attnproof.symbolic.terms import Term

from .implementations import Implementation
from .scale import depths
from .walk import Where

if TYPE_CHECKING:
    from .run import Task

__all__ = ["counted", "how", "place_of", "sampled"]


def how(implementation: Implementation) -> str:
    """Whose bounds are behind the tolerance."""
    swapped = ", ".join(implementation.bounds)
    if swapped:
        return f"{swapped} by the bound of its kernel, the rest operation by operation"
    return "operation by operation, softmax by torch.softmax"


def place_of(place: tuple[int, ...], where: Where) -> tuple[int, ...]:
    """The place in the whole array of a place among the rows that were looked at."""
    return tuple(
        k if rows is None else int(rows.places[k]) for k, rows in zip(place, where, strict=False)
    )


def sampled(task: Task, side: Term, where: Where, heads: int, partly: set[str]) -> str:
    """Which entries were looked at, and what else a reader should know of the sizes."""
    text = "every entry"
    for axis, rows in enumerate(where):
        if rows is not None:
            length = length_value(side.shape[axis], task.sizes)
            text = f"{len(rows.places)} of {length:,} places on axis {axis}, both ends among them"
    if heads > 1:
        text += f", in each of {heads} heads drawn one by one (the first index of the place)"
    if partly:
        text += f"; {', '.join(sorted(partly))} run for these alone"
    found = [n for name, n in task.sizes.items() if task.roles.get(name) == "tokens"]
    steps = counted(task)
    if steps:
        text += f"; in steps, {', '.join(f'{name} = {n:,}' for name, n in steps.items())}"
    elif found and max(found) < task.scale.lengths["tokens"][0]:
        text += "; fewer tokens than the scale has, for an array of all pairs of them"
    return text


def counted(task: Task) -> dict[str, int]:
    """The sizes and natural numbers that are depths of stacks or lengths of tables, with values."""
    stepped = depths(task.statement)
    numbers = {
        name: task.sample(0).values[name]
        for name, given in task.statement.givens.items()
        if given.kind == "natural"
    }
    return {name: n for name, n in (task.sizes | numbers).items() if name in stepped}
