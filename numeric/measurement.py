"""The record of one measurement, and the comparison of two sides up to rounding.

Differences below the bounds of the two sides are invisible, so for ">=" "held" means that no larger
difference contradicts it, and for ">" and "!=" that the difference certainly exists.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from attnproof.symbolic.concrete import length_value
from attnproof.symbolic.terms import Term

from .error_analysis import Rounded
from .implementations import Implementation
from .results import Status
from .row_selection import Where
from .scale import depths

if TYPE_CHECKING:
    from .task import Task


# Two computed sides and the reference of each: the worst entry

SIDES = ("left", "right")
BOUND_TOO_LARGE = "the rounding bound is as large as the values: nothing could be told apart"
SMALL = 2.0**-10
REFERENCE_SHARE = 2.0**-12  # float64 errors are 2^-29 of those of float32, with a wide margin


@dataclass(frozen=True)
class Comparison:
    """The worst entry: its error, its tolerance, its place, and whether the claim held."""

    error: float
    tolerance: float
    place: tuple[int, ...]
    status: Status
    reason: str = ""

    @property
    def ratio(self) -> float:
        """error / tolerance."""
        if self.error == 0:
            return 0.0
        return self.error / self.tolerance if self.tolerance else math.inf

    @property
    def recorded(self) -> dict[str, Any]:
        """What a record has of it, by the names that records give."""
        worst = {"error": self.error, "tolerance": self.tolerance, "worst": self.place}
        return {**worst, "status": self.status, "reason": self.reason}


RANK = {"non-finite": 3, "violated": 2, "held": 1, "skipped": 0}


def worse(*found: Comparison) -> Comparison:
    """The comparison that contradicts the claim most; among equals the first."""
    return max(found, key=lambda c: (RANK[c.status], c.ratio))


def compared(
    relation: str,
    computed: Sequence[Tensor],
    bounds: Sequence[Rounded],
    own: tuple[Tensor, Tensor] | None = None,
    *,
    every_entry: bool = True,
) -> Comparison:
    """Compare left and right by their relation, and each with the exact value of its own term.

    The tolerance of left and right is the sum of the two radii.  ``own``: the error of the float64
    references themselves; without it a small share of the tolerance.
    """
    left, right = sides = wide(*computed)
    bad = unusable(sides, bounds)
    if bad is not None:
        return bad
    radius, wrong = bounds[0].error() + bounds[1].error(), misread(sides, bounds, own)
    if relation == "!=":
        return _different(left, right, radius, every_entry=every_entry) if wrong is None else wrong
    if relation == "=":
        equation, hidden = worst(left, right, radius), True
        found = Comparison(*equation, "violated" if equation[0] > equation[1] else "held")
    else:
        gap = torch.where(left == right, 0.0, left - right)
        found = _least(relation, gap, radius.expand(gap.shape))
        hidden = bool((gap <= radius).all())
    found = found if wrong is None else worse(found, wrong)
    if found.status == "held" and hidden and is_uninformative(radius, *(b.value for b in bounds)):
        return Comparison(0.0, 0.0, found.place, "skipped", BOUND_TOO_LARGE)
    return found


def wide(*sides: Tensor) -> tuple[Tensor, ...]:
    """The sides in float64 on the CPU, for comparison."""
    return tuple(side.detach().to("cpu", torch.float64) for side in sides)


def unusable(sides: Sequence[Tensor], bounds: Sequence[Rounded]) -> Comparison | None:
    """Report a side, or its reference, that is not a number somewhere."""
    for name, bound in zip(SIDES, bounds, strict=True):
        if bool(bound.value.isnan().any()):
            return _not_finite(bound.value, f"the float64 reference of the {name} side")
    for name, side, bound in zip(SIDES, sides, bounds, strict=True):
        bad = side.isnan() | (side.isinf() & (side != bound.value))
        if bool(bad.any()):
            return _not_finite(torch.where(bad, math.nan, side), f"the {name} side")
    return None


def misread(
    sides: Sequence[Tensor], bounds: Sequence[Rounded], own: tuple[Tensor, Tensor] | None = None
) -> Comparison | None:
    """Report a side that differs from the exact value of its own term by more than its bound."""
    radii = [
        of_definition(bound, None if own is None else own[k]) for k, bound in enumerate(bounds)
    ]
    told = "the {} side is not the value of its definition in float64"
    found = worse(*each(sides, bounds, radii, told))
    return found if found.status == "violated" else None


def each(
    sides: Sequence[Tensor], bounds: Sequence[Rounded], radii: Sequence[Tensor], told: str
) -> list[Comparison]:
    """Compare each side with the exact value of its own term; ``told``: the message on failure."""
    found = []
    for name, side, bound, radius in zip(SIDES, sides, bounds, radii, strict=False):
        one = worst(side, bound.value, radius)
        wrong = Comparison(*one, "violated", told.format(name))
        found.append(wrong if one[0] > one[1] else Comparison(*one, "held"))
    return found


def of_definition(bound: Rounded, reference_radius: Tensor | None) -> Tensor:
    """The tolerance of a side relative to the float64 reference of its own term."""
    own = 0.0 if reference_radius is None else reference_radius
    return bound.error() * (1 + REFERENCE_SHARE) + own


def worst(a: Tensor, b: Tensor, tolerance: Tensor) -> tuple[float, float, tuple[int, ...]]:
    """Error, tolerance and place where their ratio is largest."""
    error = torch.where(a == b, 0.0, (a - b).abs())
    tolerance = torch.as_tensor(tolerance).expand(error.shape)
    ratio = torch.where(error == 0, 0.0, error / tolerance)
    at = place_in(ratio, int(ratio.argmax()) if ratio.numel() else 0)
    return float(error[at]), float(tolerance[at]), at


def place_in(array: Tensor, flat: int) -> tuple[int, ...]:
    """The place of an entry given its row-major index."""
    places = []
    for length in reversed(array.shape):
        flat, place = divmod(flat, length)
        places.append(place)
    return tuple(reversed(places))


def is_uninformative(tolerance: Tensor, left: Tensor, right: Tensor) -> bool:
    """Whether the entries that make up half of the squared norm of an array are within tolerance.

    For arrays that should be 0, whether the tolerance is large relative to the inputs, whose size
    is about 1.
    """
    if not bool(right.any() and left.any()):
        return bool((tolerance > SMALL).any())
    size = torch.where(left.isfinite(), left, 0.0).square()
    told = torch.where(left.abs() > tolerance, size, 0.0)
    return bool(told.sum() < size.sum() / 2)


def _not_finite(values: Tensor, what: str) -> Comparison:
    place = tuple(int(k) for k in values.isnan().nonzero()[0])
    return Comparison(math.inf, 0.0, place, "non-finite", f"{what} is not a number there")


def positive(computed: Tensor, bound: Rounded) -> Comparison:
    """Check that every entry is finite and above zero, computed and in its float64 reference."""
    (values,) = wide(computed)
    if bool((~values.isfinite()).any()):
        return _not_finite(torch.where(values.isfinite(), values, math.nan), "the array")
    place = place_in(values, int(values.argmin()))
    least = float(values[place])
    reason = f"the least entry is {least:.3g}"
    if least > 0 and bool((bound.value > 0).all()):
        return Comparison(0.0, 0.0, place, "held", reason)
    if least == 0 and float(bound.value[place]) > 0:
        reason += f"; its exact value {float(bound.value[place]):.3g} underflows in this dtype"
    return Comparison(max(-least, torch.finfo(torch.float64).tiny), 0.0, place, "violated", reason)


# Inequalities between two computed sides

TOO_CLOSE = "too close to tell in this dtype"


def _least(relation: str, gap: Tensor, radius: Tensor) -> Comparison:
    """The entry that contradicts left > right, or >=, most.

    Violated if right − left exceeds the rounding bounds of both.  Otherwise ">=" holds; ">" holds
    if left − right exceeds them everywhere, and is skipped if an entry is too close.
    """
    margin = gap / radius.clamp(min=torch.finfo(torch.float64).tiny)
    place = place_in(gap, int(margin.nan_to_num().argmin()))
    least, bound = float(gap[place]), float(radius[place])
    told = f"the least left − right is {least:.3g}"
    error = max(0.0, -least)
    if least < -bound or (relation == ">" and least <= 0.0 == bound):
        return Comparison(error, bound, place, "violated", told)
    if least > bound:
        return Comparison(error, bound, place, "held", f"{told}, above the rounding bound")
    if relation == ">":
        reason = f"{told}, within the rounding bound {bound:.3g}: {TOO_CLOSE}"
        return Comparison(0.0, 0.0, place, "skipped", reason)
    reason = f"{told}, within the rounding bound: not contradicted"
    return Comparison(error, bound, place, "held", reason)


def _different(left: Tensor, right: Tensor, radius: Tensor, *, every_entry: bool) -> Comparison:
    """left != right: held if some entry differs by more than the rounding bounds of both.

    Violated only if every entry was compared, has no rounding error, and is equal.
    """
    gap = torch.where(left == right, 0.0, (left - right).abs())
    radius = radius.expand(gap.shape)
    margin = torch.where(gap == 0, 0.0, gap / radius.clamp(min=torch.finfo(torch.float64).tiny))
    place = place_in(gap, int(margin.argmax()))
    most, bound = float(gap[place]), float(radius[place])
    if most > bound:
        return Comparison(0.0, bound, place, "held", f"they differ by {most:.3g} there")
    if every_entry and not bool(gap.any() or radius.any()):
        reason = "the two sides are equal, and nothing was rounded"
        return Comparison(0.0, 0.0, place, "violated", reason)
    reason = f"they differ by {most:.3g} at most, within the rounding bound: {TOO_CLOSE}"
    return Comparison(0.0, 0.0, place, "skipped", reason)


def how(implementation: Implementation) -> str:
    """Say which bounds are behind the tolerance."""
    swapped = ", ".join(implementation.bounds)
    if swapped:
        return f"{swapped} by the bound of its kernel, the rest operation by operation"
    return "operation by operation, softmax by torch.softmax"


def place_of(place: tuple[int, ...], where: Where) -> tuple[int, ...]:
    """Map a place among the compared rows to its place in the whole array."""
    return tuple(
        k if rows is None else int(rows.places[k]) for k, rows in zip(place, where, strict=False)
    )


HEADS = 2
"""The heads whose rows are also judged by the other policies; each reads all keys again."""
FEWEST = 4  # rows of each other head
SHARE = 0.1  # of the rows, for a fault whose detection probability is printed


def miss_probability(rows: int, heads: int = 1, share: float = SHARE) -> float:
    """The probability that a fault in this share of the rows is in none of those compared.

    Both ends are always compared, so only the others are random: (1 − e)^m for m random rows.

    >>> f"{miss_probability(64):.1e}"
    '1.5e-03'
    """
    return float((1 - share) ** (heads * max(0, rows - 2)))


def rows_of(head: int, heads: int, rows: int) -> int:
    """How many of ``rows`` are compared in a head: most in the first ones, which all policies test.

    >>> [rows_of(head, 8, 64) for head in range(4)]
    [32, 32, 4, 4]
    """
    first = min(heads, HEADS)
    return max(4, rows // first) if head < first else FEWEST


def sampled(
    task: Task, side: Term, looked: Sequence[Where], partly: set[str], *, swapped: bool = False
) -> str:
    """Say which entries were compared in each head, and what such a sample can miss."""
    text, heads, missed = "every entry", len(looked), 1.0
    for axis, rows in enumerate(looked[0]):
        if rows is not None:
            length = length_value(side.shape[axis], task.sizes)
            counts = [len(at.places) for where in looked if (at := where[axis]) is not None]
            many = " or ".join(str(n) for n in dict.fromkeys(counts))
            text = f"{many} of {length:,} places on axis {axis}, including both ends"
            missed = prod(map(miss_probability, counts))
    if heads > 1:
        text += f", in each of {heads} separately drawn heads (the first index of the place)"
    if missed < 1:
        text += f"; a fault in {SHARE:.0%} of them goes undetected with probability {missed:.1g}"
    if partly:
        text += f"; {', '.join(sorted(partly))} computed for these only"
    elif missed < 1 and swapped:
        text += "; the second side computed for these only"
    found = [n for name, n in task.sizes.items() if task.roles.get(name) == "tokens"]
    steps = counted(task)
    if steps:
        text += f"; in steps, {', '.join(f'{name} = {n:,}' for name, n in steps.items())}"
    elif found and max(found) < task.scale.lengths["tokens"][0]:
        text += "; fewer tokens than in the scale, since an array holds all pairs of them"
    return text


def counted(task: Task) -> dict[str, int]:
    """The sizes and numbers that are depths of stacks or lengths of tables, with their values."""
    stepped = depths(task.statement)
    numbers = {
        name: task.sample(0).values[name]
        for name, given in task.statement.givens.items()
        if given.kind == "natural"
    }
    return {name: n for name, n in (task.sizes | numbers).items() if name in stepped}
