"""One conclusion in one implementation and dtype: run it, bound it, compare."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from attnproof.symbolic.scalars import length_value
from attnproof.symbolic.statement import Claim, Statement
from attnproof.symbolic.terms import Term, free

from .compare import Comparison, compared, positive, worse
from .implementations import DoesNotFit, Implementation
from .implementations.eager import SOFTMAX, SOFTMAX_BOUND
from .measurement import Measurement
from .profile import Profile, profile_of
from .rounded import Rounded
from .sample import Sample, draw
from .scale import Scale
from .torch_reading import BoundReading, TorchReading
from .walk import Replacement, Rows, Where

__all__ = ["Task", "run"]


@dataclass
class Task:
    """A statement at one scale on one device.

    Draws are made once and kept; so are the exact values and radii of sides, which every
    implementation with the same bound shares.
    """

    statement: Statement
    scale: Scale
    sizes: dict[str, int]
    device: torch.device
    seed: int
    draws: dict[int, Sample] = field(default_factory=dict)
    chosen: dict[tuple[int, int, Term], Where] = field(default_factory=dict)
    readings: dict[tuple[Hashable, ...], BoundReading] = field(default_factory=dict)
    bounds: dict[tuple[Hashable, ...], Rounded] = field(default_factory=dict)

    @cached_property
    def roles(self) -> dict[str, str]:
        """What each size counts."""
        lengths = [n for given in self.statement.givens.values() for n in given.shape]
        sizes = [v for n in lengths for v in free(n) if v.op == "size"]
        return dict(v.data for v in sizes)

    def sample(self, head: int) -> Sample:
        """The values of one head; head 0 is the one every implementation is given."""
        if head not in self.draws:
            seed = self.seed + 1_000_003 * head
            self.draws[head] = draw(self.statement, self.sizes, self.scale, seed)
        return self.draws[head]

    def heads(self, implementation: Implementation, dtype: torch.dtype, side: Term) -> int:
        """How many heads to run: several for a fused kernel where the statement has one.

        One is enough in float64, which no fused kernel is made for, and where no rows can be
        sampled, since then every entry is compared.
        """
        one = dtype == torch.float64 or "heads" in self.roles.values()
        several = implementation.fused and not one
        return self.scale.heads if several and any(self.rows(side, 0, self.scale.rows)) else 1

    def rows(self, side: Term, head: int, count: int) -> Where:
        """Both ends and random places between, on the first axis longer than ``count``."""
        key = (head, count, side)
        if key not in self.chosen:
            where: list[Rows | None] = [None] * side.ndim
            for axis, n in enumerate(side.shape):
                length = length_value(n, self.sizes)
                if length > count:
                    generator = torch.Generator().manual_seed(self.seed + 1_000_003 * head + axis)
                    inner = torch.randperm(length - 2, generator=generator)[: count - 2] + 1
                    ends = torch.tensor([0, length - 1])
                    where[axis] = Rows(torch.cat((ends, inner)).sort().values)
                    break
            self.chosen[key] = tuple(where)
        return self.chosen[key]

    def bound(
        self, side: Term, where: Where, head: int, profile: Profile,
        replaced: Mapping[str, Replacement],
    ) -> Rounded:  # fmt: skip
        """The exact value of a side at some rows, and the radius of code with these bounds."""
        code = frozenset((name, r.compute) for name, r in replaced.items())
        whose = (head, profile, code)
        if (*whose, side, where) not in self.bounds:
            if whose not in self.readings:
                sample = self.sample(head)
                self.readings[whose] = BoundReading(
                    sample.sizes, sample.with_radii(profile, self.device), profile,
                    {**SOFTMAX_BOUND, **replaced},
                )  # fmt: skip
            self.bounds[(*whose, side, where)] = self.readings[whose].read(side, where)
        return self.bounds[(*whose, side, where)]

    def skipped(
        self, says: str, implementation: Implementation, dtype: torch.dtype, why: str
    ) -> Measurement:
        """A measurement that was not made."""
        return Measurement(
            says, implementation.name, str(self.device), str(dtype).removeprefix("torch."),
            self.sizes, self.seed, "nothing", 0.0, 0.0, (), 0.0, "skipped", why, "",
        )  # fmt: skip


def run(
    task: Task, says: str, claim: Claim, implementation: Implementation, dtype: torch.dtype
) -> Measurement:
    """Run both sides, compare the sampled rows with each other and with float64.

    Raises ``DoesNotFit`` or ``TooLarge`` where the implementation cannot take the call.
    """
    started = perf_counter()
    heads = task.heads(implementation, dtype, claim.left)
    profile = _profile(dtype, task.device)
    found: Comparison | None = None
    where: Where = ()
    for head in range(heads):
        sample = task.sample(head)
        reading = TorchReading(
            sample.sizes, sample.in_dtype(dtype, task.device), dtype, task.device,
            {**SOFTMAX, **_guarded(implementation)},
        )  # fmt: skip
        where = task.rows(claim.left, head, max(4, task.scale.rows // heads))
        with torch.no_grad():
            one = _compared(task, claim, reading, implementation, profile, where, head)
        place = _place(one.place, where)
        one = replace(one, place=(head, *place) if heads > 1 else place)
        found = one if found is None else worse(found, one)
    assert found is not None
    partly = reading.partly & set(implementation.replaced)
    return Measurement(
        says, implementation.name, str(task.device), str(dtype).removeprefix("torch."),
        task.sizes | ({"heads drawn": heads} if heads > 1 else {}), task.seed,
        _sampled(task, claim.left, where, heads, partly), found.error, found.tolerance, found.place,
        perf_counter() - started, found.status, found.reason, f"{profile}; {_how(implementation)}",
    )  # fmt: skip


def _compared(
    task: Task, claim: Claim, reading: TorchReading, implementation: Implementation,
    profile: Profile, where: Where, head: int,
) -> Comparison:  # fmt: skip
    sides = [claim.left] if claim.right is None else [claim.left, claim.right]
    computed = [_tensor(reading.read(side, where)) for side in sides]
    bounds = [task.bound(side, where, head, profile, implementation.bounds) for side in sides]
    if claim.relation == ">":
        return positive(computed[0], bounds[0])
    own = None
    if profile.dtype == torch.float64 and implementation.bounds:
        exact = [task.bound(side, where, head, profile, {}).error() for side in sides]
        own = (exact[0], exact[1])
    return compared(computed[0], computed[1], bounds[0], bounds[1], own)


def _tensor(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else torch.tensor(value, dtype=torch.float64)


def _profile(dtype: torch.dtype, device: torch.device) -> Profile:
    return profile_of(dtype, device, str(dtype).removeprefix("torch."))


def _how(implementation: Implementation) -> str:
    swapped = ", ".join(implementation.bounds)
    if swapped:
        return f"{swapped} by the bound of its kernel, the rest operation by operation"
    return "operation by operation, softmax by torch.softmax"


def _guarded(implementation: Implementation) -> Mapping[str, Replacement]:
    """The implementation's code; what it refuses is told, and stops nothing else."""

    def guard(compute: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            try:
                return compute(*args)
            except (RuntimeError, NotImplementedError) as error:
                text = f"{implementation.name} raised {type(error).__name__}: {error}"
                raise DoesNotFit(text) from error

        return call

    return {
        name: replace(replaced, compute=guard(replaced.compute))
        for name, replaced in implementation.replaced.items()
    }


def _place(place: tuple[int, ...], where: Where) -> tuple[int, ...]:
    return tuple(
        k if rows is None else int(rows.places[k]) for k, rows in zip(place, where, strict=False)
    )


def _sampled(task: Task, side: Term, where: Where, heads: int, partly: set[str]) -> str:
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
    if found and max(found) < task.scale.lengths["tokens"][0]:
        text += "; fewer tokens than the scale has, for an array of all pairs of them"
    return text
