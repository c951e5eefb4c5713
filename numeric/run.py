"""One conclusion in one implementation and dtype: run it, bound it, compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter

import torch
from torch import Tensor

from attnproof.symbolic.statement import Claim

from .calling import Calls
from .compare import Comparison, compared, positive, worse
from .devices import called
from .hypotheses_hold import number_array
from .implementations import Implementation
from .implementations.eager import SOFTMAX
from .measurement import Judged, Measurement, how, place_of, rows_of, sampled
from .order import different, ordered
from .policies.bitwise import answers_each_alone
from .policies.judging import Judging
from .profile import Profile, profile_of
from .rounded import Rounded
from .task import Task
from .torch_reading import TorchReading
from .walk import Replacement, Where, never

__all__ = ["run"]


def run(
    task: Task, says: str, claim: Claim, implementation: Implementation, dtype: torch.dtype
) -> Measurement:
    """Run both sides, compare the sampled rows with each other and with float64.

    Raises ``DoesNotFit`` or ``TooLarge`` where the implementation cannot take the call.
    """
    started = perf_counter()
    heads = task.heads(implementation, dtype, claim.left)
    profile = _profile(dtype, task.device)
    judging = Judging(task, claim, implementation, profile)
    found: Comparison | None = None
    looked: list[Where] = []
    partly: set[str] = set()
    for head in range(heads):
        where = task.rows(claim.left, head, rows_of(head, heads, task.scale.rows))
        with torch.no_grad():
            computed, again, partly, codes = _computed(
                task, claim, implementation, dtype, where, head
            )
            spread = judging.follows(head) and task.columns(claim.left, where, head) is where
            bounds = [
                task.bound(side, where, head, profile, code.bounds, spread=spread)
                for side, code in zip(judging.sides, codes, strict=False)
            ]
            own = _reference_radius(task, claim, implementation, profile, where, head)
            one = _compared(claim, computed, bounds, own, every_entry=not any(where))
            judging.meet(head, computed, bounds, where, again, codes, own)
        looked.append(where)
        place = place_of(one.place, where)
        one = replace(one, place=(head, *place) if heads > 1 else place)
        found = one if found is None else worse(found, one)
    assert found is not None
    judged = judging.judged(found)
    found = _spoken(found, judging, judged)
    return Measurement(
        says, implementation.name, called(task.device), str(dtype).removeprefix("torch."),
        task.sizes | ({"heads drawn": heads} if heads > 1 else {}), task.seed,
        sampled(
            task, claim.left, looked, partly,
            swapped=claim.right is not None and bool(implementation.replaced),
        ),
        found.error, found.tolerance, found.place, perf_counter() - started, found.status,
        found.reason, f"{profile}; {how(implementation)}",
        design=task.scale.design.name, designs=(task.scale.design.name,), judged=judged,
    )  # fmt: skip


def _spoken(certain: Comparison, judging: Judging, judged: Sequence[Judged]) -> Comparison:
    """What is found in the end: violated if any policy says so."""
    against = next((j for j in judged[1:] if j.status == "violated"), None)
    if against is None or certain.status in ("violated", "non-finite"):
        return certain
    reason = f"{against.policy}: {against.told}"
    likely = judging.likely
    if against.policy == "probabilistic" and likely is not None:
        return replace(likely, reason=reason)
    return replace(certain, status="violated", reason=reason)


def _computed(
    task: Task, claim: Claim, implementation: Implementation, dtype: torch.dtype, where: Where,
    head: int,
) -> tuple[list[Tensor], Tensor | None, set[str], list[Implementation]]:  # fmt: skip
    """The sides, the first one with its rows computed alone, and what never ran over all rows.

    At last the implementation with the bounds of the calls that each side made.
    Of rows that are sampled only the first side runs its kernels over all; the other runs them
    on these rows alone, so that a check costs one forward and little more.
    """
    sample = task.sample(head)
    values = sample.in_dtype(dtype, task.device)
    calls = [Calls(implementation), Calls(implementation)]

    def reading(code: Mapping[str, Replacement]) -> TorchReading:
        return TorchReading(sample.sizes, values, dtype, task.device, code)

    rows_alone = {
        name: replace(r, whole=never) for name, r in {**SOFTMAX, **calls[1].replaced}.items()
    }
    whole = reading({**SOFTMAX, **calls[0].replaced})
    computed = [number_array(whole.read(claim.left, where))]
    partly = whole.partly & set(implementation.replaced)
    alone = reading(rows_alone) if any(where) and implementation.replaced else whole
    if claim.right is not None:
        computed.append(number_array(alone.read(claim.right, where)))
    again = None
    if alone is not whole and not partly and answers_each_alone(implementation, task.device):
        again = number_array(alone.read(claim.left, where))
    made = calls if alone is not whole else (calls[0], calls[0])
    return computed, again, partly, [one.bounded() for one in made]


def _reference_radius(
    task: Task, claim: Claim, implementation: Implementation, profile: Profile, where: Where,
    head: int,
) -> tuple[Tensor, Tensor] | None:  # fmt: skip
    """What the references themselves may be off, where that is no less than what is bounded."""
    if profile.dtype != torch.float64 or not implementation.bounds:
        return None
    sides = [claim.left, claim.left if claim.right is None else claim.right]
    left, right = (task.bound(side, where, head, profile, {}).error() for side in sides)
    return left, right


def _compared(
    claim: Claim, computed: Sequence[Tensor], bounds: Sequence[Rounded],
    own: tuple[Tensor, Tensor] | None, *, every_entry: bool,
) -> Comparison:  # fmt: skip
    if claim.relation == ">" and claim.right is None:
        return positive(computed[0], bounds[0])
    if claim.relation == "!=":
        return different(computed, bounds, own, every_entry=every_entry)
    if claim.relation in (">", ">="):
        return ordered(claim.relation, computed, bounds, own)
    return compared(computed[0], computed[1], bounds[0], bounds[1], own)


def _profile(dtype: torch.dtype, device: torch.device) -> Profile:
    return profile_of(dtype, device, str(dtype).removeprefix("torch."))
