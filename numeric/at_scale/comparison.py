"""Computed rows against a reference with its radius, and what one way of checking found."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..attention_bound import Reference
from ..devices import called, name_of
from ..measurement import RANK, REFERENCE_SHARE, STATUSES, Comparison, Judged
from ..profile import Profile
from .call import Call

# What one way of checking a kernel at scale found, as plain data

SHARE = 0.1  # the fraction of wrong rows that the chance is written out for


@dataclass(frozen=True)
class Found:
    """One way, on one kernel, device, dtype and size.

    ``error`` and ``tolerance`` are those of the entry ``worst`` = (head, row, column), where error
    over tolerance is largest; ``looked`` says in words which rows were compared, and ``misses``
    what could pass all the same.  ``seconds`` is all that the check takes, the kernel included,
    and ``forwards`` the same in forwards over all rows (0 where none was run); ``bytes_beyond`` is
    the peak of memory beyond the inputs, None where it is not known.
    """

    way: str
    kernel: str
    device: str
    dtype: str
    tokens: int
    heads: int
    width: int
    causal: bool
    seed: int
    looked: str
    misses: str
    status: str
    error: float
    tolerance: float
    worst: tuple[int, ...]
    reason: str
    rounding: str
    judged: tuple[Judged, ...] = ()
    seconds: float = 0.0
    kernel_seconds: float = 0.0
    forwards: float = 0.0
    bytes_of_inputs: int = 0
    bytes_beyond: int | None = None

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"status {self.status!r} is not one of {', '.join(STATUSES)}")
        if self.status == "skipped" and not self.reason:
            raise ValueError("a check that was skipped must say why")


def chance(random: int, chosen: int = 0, wrong: str = "all rows is wrong") -> str:
    """What a sample of rows can say, in words; ``wrong`` says of which rows, and what.

    m rows drawn without replacement all miss a set that holds a fraction e of the rows with
    probability at most (1−e)^m.  Drawn m/H from each of H heads the same holds: the product of
    (1−e_h)^(m/H) is at most (1−e)^m for e the mean of the e_h, since log(1−e) is concave.

    >>> chance(48)[:62]
    'if a fraction e of all rows is wrong, the 48 random rows miss '
    """
    text = (
        f"if a fraction e of {wrong}, the {random} random rows miss them all with "
        f"probability at most (1−e)^{random}: {(1 - SHARE) ** random:.1e} for e = {SHARE:.0%}; "
        f"of a single wrong row they say nothing"
    )
    if chosen:
        text += f" ({chosen} more rows are the two ends of each head)"
    return text


# Computed rows against a reference with its radius: the worst entry, and what it says

NOT_A_NUMBER = "what the kernel computed is not a number there"
NO_REFERENCE = "the float64 reference is not a number there"
NO_DIGITS = "the rounding bound is as large as the values: nothing could be told apart"
WRONG = "farther from the value in float64 than rounding can bring it"


@dataclass(frozen=True)
class Worst(Comparison):
    """The entry where error over tolerance is largest, and whether all are within.

    ``further`` is what other policies say of the same rows.
    """

    further: tuple[Judged, ...] = ()


def worse(a: Worst | None, b: Worst) -> Worst:
    """The one that says more against the kernel; of other policies too."""
    if a is None:
        return b
    both = (*a.further, *b.further)
    further = {j.policy: max((k for k in both if k.policy == j.policy), key=_weight) for j in both}
    worst = max(a, b, key=lambda w: (RANK[w.status], w.ratio))
    return replace(worst, further=tuple(further.values()))


def _weight(judged: Judged) -> tuple[int, float]:
    return RANK[judged.status], judged.ratio


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


def found_of(
    call: Call, way: str, worst: Worst, looked: str, misses: str, policies: tuple[Judged, ...]
) -> Found:
    """What was found of a call in this way; how long it took is added by whoever measured that."""
    return Found(
        way,
        call.kernel.name,
        called(call.device),
        name_of(call.dtype),
        call.tokens,
        call.heads,
        call.width,
        call.causal,
        call.seed,
        looked,
        misses,
        worst.status,
        worst.error,
        worst.tolerance,
        worst.place,
        worst.reason,
        str(call.profile),
        policies,
    )
