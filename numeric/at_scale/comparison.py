"""Computed rows against a reference with its radius: the worst entry, and what it says."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..compare import REFERENCE_SHARE
from ..measurement import Judged
from ..profile import Profile
from .results import ratio
from .streaming import Reference

__all__ = ["Worst", "against", "allowance", "judged", "with_residual", "worse"]

NOT_A_NUMBER = "what the kernel computed is not a number there"
NO_REFERENCE = "the float64 reference is not a number there"
NO_DIGITS = "the rounding bound is as large as the values: nothing could be told apart"
WRONG = "farther from the value in float64 than rounding can bring it"


@dataclass(frozen=True)
class Worst:
    """The entry where error over tolerance is largest, and whether all are within.

    ``further`` is what other policies say of the same rows.
    """

    error: float
    tolerance: float
    place: tuple[int, ...]
    status: str
    reason: str = ""
    further: tuple[Judged, ...] = ()

    @property
    def ratio(self) -> float:
        """error / tolerance."""
        return ratio(self.error, self.tolerance)


_RANK = {"non-finite": 3, "violated": 2, "held": 1, "skipped": 0}


def worse(a: Worst | None, b: Worst) -> Worst:
    """The one that says more against the kernel; of other policies too."""
    if a is None:
        return b
    both = (*a.further, *b.further)
    further = {j.policy: max((k for k in both if k.policy == j.policy), key=_weight) for j in both}
    worst = max(a, b, key=lambda w: (_RANK[w.status], w.ratio))
    return replace(worst, further=tuple(further.values()))


def _weight(judged: Judged) -> tuple[int, float]:
    return _RANK[judged.status], judged.ratio


def with_residual(worst: Worst, residual: Judged) -> Worst:
    """What is found in the end: violated if the residual test says so."""
    found = replace(worst, further=(residual,))
    if residual.status == "violated" and worst.status in ("held", "skipped"):
        return replace(found, status="violated", reason=f"residual: {residual.told}")
    return found


def allowance(profile: Profile) -> float:
    """The tolerance in radii: the reference is code with the same bound, in float64.

    Against lower dtypes that is a share below 2^-12; against float64 it is the radius once more.
    """
    return 2.0 if profile.dtype == torch.float64 else 1 + REFERENCE_SHARE


def against(computed: Tensor, reference: Reference, profile: Profile) -> Worst:
    """Rows (heads, r, width) against their reference; the place counts within these rows."""
    error = (computed.double() - reference.output).abs_()
    tolerance = reference.radius
    relative = error / tolerance
    at = int(relative.argmax())
    top = float(relative.flatten()[at])
    place = tuple(int(k) for k in torch.unravel_index(torch.tensor(at), error.shape))
    known = allowance(profile)
    if math.isnan(top):
        if bool(reference.output[place].isnan()):
            return Worst(math.inf, 0.0, place, "non-finite", NO_REFERENCE)
        return Worst(math.inf, 0.0, place, "non-finite", NOT_A_NUMBER)
    found = (float(error[place]), float(tolerance[place]) * known, place)
    if math.isinf(top):
        return Worst(math.inf, found[1], place, "non-finite", NOT_A_NUMBER)
    if top > known:
        return Worst(*found, "violated", WRONG)
    if not bool((reference.output.abs() > tolerance).any()):
        return Worst(0.0, 0.0, place, "skipped", NO_DIGITS)
    return Worst(*found, "held")


def judged(worst: Worst, told: str) -> Judged:
    """What the deterministic bound says."""
    relative = min(worst.ratio, torch.finfo(torch.float64).max)
    if worst.reason.startswith("residual: "):
        if not worst.tolerance:
            return Judged("deterministic", "skipped", 0.0, NO_DIGITS)
        return Judged("deterministic", "held", relative, told)
    return Judged("deterministic", worst.status, relative, worst.reason or told)
