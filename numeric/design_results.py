"""Several input designs of one measurement, and which of them spoke."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from attnproof.symbolic.claim import Claim

from .designs import NORMAL, Design
from .hypotheses import spot_of
from .hypotheses_hold import Unsatisfiable
from .measurement import Measurement
from .task import Task

__all__ = [
    "OVERFLOWED", "UNDERFLOWED", "beyond_range", "contradicted", "merged", "ratio_of", "tasks_of",
]  # fmt: skip

OVERFLOWED = "a number overflowed, in the definition itself as well"
UNDERFLOWED = "a positive number became 0, in the definition itself as well"
RANK = {"non-finite": 3, "violated": 2, "held": 1, "skipped": 0}


def tasks_of(task: Task, designs: Sequence[Design]) -> Iterator[Task]:
    """The task in each design, at its sizes.

    A design that changes nothing in this statement, or leaves no values that satisfy the
    hypotheses, is left out.
    """
    for design in designs:
        if design == task.scale.design:
            yield task
            continue
        scale = replace(task.scale, design=design)
        other = Task(task.statement, scale, task.sizes, task.device, task.seed)
        try:
            changed = design == NORMAL or _changed(task, other)
        except Unsatisfiable:
            continue
        if changed:
            yield other


def _changed(task: Task, other: Task) -> bool:
    """Whether some given has other values in the other design, and is not computed from others."""
    before, after = task.sample(0), other.sample(0)
    formed = [form.target for form in after.formed if form.target.op == "var"]
    told = set(after.values) - {spot_of(target)[0] for target in formed}
    return any(not _same(before.values[name], after.values[name]) for name in told)


def _same(a: object, b: object) -> bool:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return torch.equal(a, b)
    return isinstance(a, Tensor) == isinstance(b, Tensor)


def contradicted(m: Measurement) -> bool:
    """Whether a measurement speaks against its claim."""
    return m.status in ("violated", "non-finite")


def beyond_range(found: Measurement, claim: Claim) -> str | None:
    """What became of a number, if the range of a dtype may be to blame for what was found."""
    if found.status == "non-finite":
        return OVERFLOWED
    sign = claim.relation == ">" and claim.right is None and found.status == "violated"
    return UNDERFLOWED if sign and found.error <= torch.finfo(torch.float64).tiny else None


def ratio_of(m: Measurement) -> float:
    """The largest ratio of any policy that was applied; without one, error over tolerance."""
    judged = [one.ratio for one in m.judged if one.status != "skipped"]
    return max(judged, default=m.ratio)


def merged(found: Sequence[Measurement], *, first_stands: bool) -> Measurement:
    """The measurement that spoke: of the worst status, and of those the largest ratio.

    ``first_stands``: among equals the first does, which alone was made at the scale asked for.
    What was skipped said nothing: it is named in ``reason`` and not among the ``designs``.
    """
    told = [m for m in found if m.status != "skipped"]
    if not told:
        return found[0]
    speaker = max(told, key=lambda m: (RANK[m.status], first_stands and m is found[0], ratio_of(m)))
    silent: dict[str, list[str]] = {}
    for m in found:
        if m.status == "skipped":
            silent.setdefault(m.reason, []).append(m.design)
    reasons = [f"{', '.join(names)}: {why}" for why, names in silent.items()]
    return replace(
        speaker, designs=tuple(m.design for m in told), seconds=sum(m.seconds for m in found),
        reason="; ".join(filter(None, (speaker.reason, *reasons))),
    )  # fmt: skip
