"""Two computed sides and the reference of each: the worst entry, and what it says.

Rounding hides what is smaller than the bounds of the two sides, so "held" means of ">=" that
nothing larger speaks against it, and of ">" and "!=" that the difference certainly is there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .rounded import Rounded

# Two computed sides and the reference of each: the worst entry, and what it says

SIDES = ("left", "right")
NOTHING_TOLD = "the rounding bound is as large as the values: nothing could be told apart"
SMALL = 2.0**-10
REFERENCE_SHARE = 2.0**-12  # float64 errors are 2^-29 of those of float32, with a wide margin


@dataclass(frozen=True)
class Comparison:
    """The worst entry: its error, its tolerance, its place, and whether the claim held."""

    error: float
    tolerance: float
    place: tuple[int, ...]
    status: str
    reason: str = ""

    @property
    def ratio(self) -> float:
        """error / tolerance."""
        if self.error == 0:
            return 0.0
        return self.error / self.tolerance if self.tolerance else math.inf


RANK = {"non-finite": 3, "violated": 2, "held": 1, "skipped": 0}


def worse(a: Comparison, b: Comparison) -> Comparison:
    """The one that says more against the claim."""
    return max(a, b, key=lambda c: (RANK[c.status], c.ratio))


def compared(
    left: Tensor, right: Tensor, left_bound: Rounded, right_bound: Rounded,
    reference_radius: tuple[Tensor, Tensor] | None = None,
) -> Comparison:  # fmt: skip
    """left against right, and each against the exact value of its own term.

    The tolerance of left = right is the sum of the two radii.  ``reference_radius`` is what the
    float64 references themselves may be off; without it a small share of the tolerance.
    """
    sides, bounds = wide(left, right), (left_bound, right_bound)
    bad = unusable(sides, bounds)
    if bad is not None:
        return bad
    radius = left_bound.error() + right_bound.error()
    equation = worst(sides[0], sides[1], radius)
    found = Comparison(*equation, "violated" if equation[0] > equation[1] else "held")
    wrong = misread(sides, bounds, reference_radius)
    found = found if wrong is None else worse(found, wrong)
    if found.status == "held" and says_nothing(radius, left_bound.value, right_bound.value):
        return Comparison(0.0, 0.0, found.place, "skipped", NOTHING_TOLD)
    return found


def wide(*sides: Tensor) -> tuple[Tensor, ...]:
    """The sides in float64 on the CPU, where they are compared."""
    return tuple(side.detach().to("cpu", torch.float64) for side in sides)


def unusable(sides: Sequence[Tensor], bounds: Sequence[Rounded]) -> Comparison | None:
    """A side, or its reference, that is not a number somewhere."""
    for name, bound in zip(SIDES, bounds, strict=True):
        if bool(bound.value.isnan().any()):
            return _not_finite(bound.value, f"the float64 reference of the {name} side")
    for name, side, bound in zip(SIDES, sides, bounds, strict=True):
        bad = side.isnan() | (side.isinf() & (side != bound.value))
        if bool(bad.any()):
            return _not_finite(torch.where(bad, math.nan, side), f"the {name} side")
    return None


def misread(
    sides: Sequence[Tensor], bounds: Sequence[Rounded],
    reference_radius: tuple[Tensor, Tensor] | None = None,
) -> Comparison | None:  # fmt: skip
    """A side farther from the exact value of its own term than its bound allows."""
    found: Comparison | None = None
    for k, (name, side, bound) in enumerate(zip(SIDES, sides, bounds, strict=True)):
        radius = of_definition(bound, None if reference_radius is None else reference_radius[k])
        error, tolerance, place = worst(side, bound.value, radius)
        if error > tolerance:
            reason = f"the {name} side is not the value of its definition in float64"
            one = Comparison(error, tolerance, place, "violated", reason)
            found = one if found is None else worse(found, one)
    return found


def of_definition(bound: Rounded, reference_radius: Tensor | None) -> Tensor:
    """How far a side may be from the float64 reference of its own term."""
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
    """The place of an entry that is counted row by row."""
    places = []
    for length in reversed(array.shape):
        flat, place = divmod(flat, length)
        places.append(place)
    return tuple(reversed(places))


def says_nothing(tolerance: Tensor, left: Tensor, right: Tensor) -> bool:
    """Whether the entries that make up half of an array's size are within their tolerance.

    Of arrays that should be 0 it is whether the tolerance is small beside what is drawn, which
    is of the size of 1.
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
    """Every entry finite and above zero, in the computed array and in its float64 reference."""
    (values,) = wide(computed)
    if bool((~values.isfinite()).any()):
        return _not_finite(torch.where(values.isfinite(), values, math.nan), "the array")
    place = place_in(values, int(values.argmin()))
    least = float(values[place])
    reason = f"the least entry is {least:.3g}"
    if least > 0 and bool((bound.value > 0).all()):
        return Comparison(0.0, 0.0, place, "held", reason)
    if least == 0 and float(bound.value[place]) > 0:
        reason += f"; exactly it is {float(bound.value[place]):.3g}, below this dtype"
    return Comparison(max(-least, torch.finfo(torch.float64).tiny), 0.0, place, "violated", reason)


# left >= right, left > right and left != right between two computed sides

TOO_CLOSE = "too close to tell in this dtype"


def ordered(
    relation: str, sides: Sequence[Tensor], bounds: Sequence[Rounded],
    reference_radius: tuple[Tensor, Tensor] | None = None,
) -> Comparison:  # fmt: skip
    """left >= right or left > right, entry by entry.

    Violated where right − left exceeds the rounding bounds of both.  ">=" holds otherwise; ">"
    holds if left − right exceeds them everywhere, and is skipped if an entry is too close.
    """
    left, right = wide(*sides)
    bad = unusable((left, right), bounds)
    if bad is not None:
        return bad
    gap = torch.where(left == right, 0.0, left - right)
    radius = (bounds[0].error() + bounds[1].error()).expand(gap.shape)
    found = _least(relation, gap, radius)
    wrong = misread((left, right), bounds, reference_radius)
    found = found if wrong is None else worse(found, wrong)
    if found.status == "held" and bool((gap <= radius).all()) and (
        says_nothing(radius, bounds[0].value, bounds[1].value)
    ):
        return Comparison(0.0, 0.0, found.place, "skipped", NOTHING_TOLD)
    return found


def _least(relation: str, gap: Tensor, radius: Tensor) -> Comparison:
    """The entry that speaks most against left > right, or >=."""
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


def different(
    sides: Sequence[Tensor], bounds: Sequence[Rounded],
    reference_radius: tuple[Tensor, Tensor] | None = None, *, every_entry: bool,
) -> Comparison:  # fmt: skip
    """left != right: held if some entry differs by more than the rounding bounds of both.

    Violated only if every entry was compared, has no rounding error, and is equal.
    """
    left, right = wide(*sides)
    bad = unusable((left, right), bounds)
    if bad is None:
        bad = misread((left, right), bounds, reference_radius)
    if bad is not None:
        return bad
    gap = torch.where(left == right, 0.0, (left - right).abs())
    radius = (bounds[0].error() + bounds[1].error()).expand(gap.shape)
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

