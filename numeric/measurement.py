"""What one measurement found, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from attnproof.symbolic.scalars import length_value
from attnproof.symbolic.terms import Term

from .implementations import Implementation
from .scale import depths
from .walk import Where

if TYPE_CHECKING:
    from .task import Task

STATUSES = ("held", "violated", "non-finite", "skipped")
POLICIES = ("deterministic", "probabilistic", "residual", "bitwise")


@dataclass(frozen=True)
class Judged:
    """What one policy says of one measurement.

    ``ratio`` is the largest error over its bound, or the largest |z| over its limit; above 1 the
    policy says no.  ``told`` names the place or the direction, or why the policy was not applied.
    """

    policy: str
    status: str
    ratio: float
    told: str

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise ValueError(f"policy {self.policy!r} is not one of {', '.join(POLICIES)}")
        if self.status not in STATUSES:
            raise ValueError(f"status {self.status!r} is not one of {', '.join(STATUSES)}")
        if self.status == "skipped" and not self.told:
            raise ValueError("a policy that was not applied must say why")


@dataclass(frozen=True)
class Measurement:
    """One conclusion of a statement, in one implementation and dtype.

    ``error`` and ``tolerance`` are those of the entry ``worst`` of the output, where error over
    tolerance is largest.  ``sampled`` says which entries were looked at, ``profile`` the rounding
    model behind the tolerance.  A ``skipped`` measurement says why in ``reason`` and is no
    evidence; a ``non-finite`` one is a failure, and its error is infinite.  ``distribution`` is the
    input distribution that spoke, of all ``distributions`` that were tried, ``judged`` what each
    policy said.
    """

    says: str
    implementation: str
    device: str
    dtype: str
    sizes: dict[str, int]
    seed: int
    sampled: str
    error: float
    tolerance: float
    worst: tuple[int, ...]
    seconds: float
    status: str
    reason: str
    profile: str
    distribution: str = "normal"
    distributions: tuple[str, ...] = ("normal",)
    judged: tuple[Judged, ...] = ()

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"status {self.status!r} is not one of {', '.join(STATUSES)}")
        if self.status == "skipped" and not self.reason:
            raise ValueError("a skipped measurement must say why")

    @property
    def ratio(self) -> float:
        """error / tolerance; above 1 the tolerance is exceeded."""
        if self.error == 0:
            return 0.0
        return self.error / self.tolerance if self.tolerance else float("inf")


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


HEADS = 2
"""The heads of which more than the worst case is followed: each reads all keys once more."""
FEWEST = 4  # rows of each other head
SHARE = 0.1  # of the rows, in a fault that a sample is told to meet


def escapes(rows: int, heads: int = 1, share: float = SHARE) -> float:
    """The probability that a fault in this share of the rows is in none of those looked at.

    Both ends are looked at always, so only the others are random: (1 − e)^m of m random rows.

    >>> f"{escapes(64):.1e}"
    '1.5e-03'
    """
    return float((1 - share) ** (heads * max(0, rows - 2)))


def rows_of(head: int, heads: int, rows: int) -> int:
    """How many of ``rows`` are looked at in a head: most in the first ones, which all policies see.

    >>> [rows_of(head, 8, 64) for head in range(4)]
    [32, 32, 4, 4]
    """
    first = min(heads, HEADS)
    return max(4, rows // first) if head < first else FEWEST


def sampled(
    task: Task, side: Term, looked: Sequence[Where], partly: set[str], *, swapped: bool = False
) -> str:
    """Which entries were looked at in each head, what such a sample can say, and what else is."""
    text, heads, missed = "every entry", len(looked), 1.0
    for axis, rows in enumerate(looked[0]):
        if rows is not None:
            length = length_value(side.shape[axis], task.sizes)
            counts = [len(at.places) for where in looked if (at := where[axis]) is not None]
            many = " or ".join(str(n) for n in dict.fromkeys(counts))
            text = f"{many} of {length:,} places on axis {axis}, both ends among them"
            missed = prod(map(escapes, counts))
    if heads > 1:
        text += f", in each of {heads} heads drawn one by one (the first index of the place)"
    if missed < 1:
        text += f"; a fault in {SHARE:.0%} of them escapes with probability {missed:.1g}"
    if partly:
        text += f"; {', '.join(sorted(partly))} run for these alone"
    elif missed < 1 and swapped:
        text += "; the second side run for these alone"
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
