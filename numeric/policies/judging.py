"""All policies on one measurement, head by head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from attnproof.symbolic.scalars import length_value
from attnproof.symbolic.statement import Claim
from attnproof.symbolic.terms import Term

from ..compare import SIDES, Comparison, of_definition, wide, worse, worst
from ..implementations import Implementation
from ..measurement import HEADS, Judged, place_of
from ..profile import Profile
from ..rounded import Rounded
from ..walk import Where
from .bitwise import (
    Compared,
    answers_each_alone,
    none_is_alone,
    queries_moved,
    reads_as_given,
)
from .bitwise import judged as bits
from .directions import seen
from .probabilistic import chance, probable
from .residual import Generic, Seen, Strongest, spoken

if TYPE_CHECKING:
    from ..task import Task

__all__ = ["Judging", "not_independent"]


def not_independent(task: Task, dtype: torch.dtype) -> str | None:
    """Why errors cannot be taken as independent, or told from those of the reference; or None."""
    if dtype == torch.float64:
        return "the reference is in float64 itself, and its errors are as large"
    design = task.scale.design
    if not design.continuous:
        return f"inputs are {design.name}: equal numbers have equal rounding errors"
    return None


@dataclass
class Judging:
    """The policies of one claim, implementation and profile."""

    task: Task
    claim: Claim
    implementation: Implementation
    profile: Profile
    nearest: float = 0.0
    likely: Comparison | None = None
    entries: int = 0
    looked: dict[str, list[Seen | Generic]] = field(default_factory=dict)
    bits: list[Compared] = field(default_factory=list)
    broken: str = ""

    @property
    def sides(self) -> tuple[Term, ...]:
        """The two sides of the claim, or the one it has."""
        return (self.claim.left,) if self.claim.right is None else (
            self.claim.left, self.claim.right,
        )  # fmt: skip

    @property
    def alone(self) -> bool:
        """Whether rows computed alone must be those of the whole, bit for bit."""
        return answers_each_alone(self.implementation, self.task.device)

    def follows(self, head: int) -> bool:
        """Whether the spread of independent errors is followed in a head."""
        if head >= HEADS or self._signs():
            return False
        return not_independent(self.task, self.profile.dtype) is None

    def meet(
        self, head: int, computed: Sequence[Tensor], bounds: Sequence[Rounded], where: Where,
        again: Tensor | None, codes: Sequence[Implementation],
        own: tuple[Tensor, Tensor] | None = None,
    ) -> None:  # fmt: skip
        """The sides of one head; ``again`` is the first one with its rows computed alone.

        ``codes`` is the implementation with the bounds of each side, ``own`` what the references
        may be off.
        """
        side = self.claim.left
        whole = length_value(side.shape[-2], self.task.sizes) if side.ndim > 1 else 1
        alone = computed[0].shape[-2] if side.ndim > 1 else 1
        regular = all(none_is_alone(count, self.profile.dtype) for count in (whole, alone))
        if again is not None and regular and reads_as_given(side):
            self.bits.append(("rows computed alone and in the whole", computed[0], again, where))
        if self.alone and regular and len(computed) == 2 and queries_moved(self.claim):
            self.bits.append(("queries in another order", computed[0], computed[1], where))
        if self._signs():
            return
        for k, (values, bound) in enumerate(zip(wide(*computed), bounds, strict=True)):
            allowed = of_definition(bound, None if own is None else own[k])
            error, tolerance, _ = worst(values, bound.value, allowed)
            self.nearest = max(self.nearest, error / tolerance if tolerance else 0.0)
        if self.follows(head):
            self._follow(head, computed, bounds, where, codes)

    def _follow(
        self, head: int, computed: Sequence[Tensor], bounds: Sequence[Rounded], where: Where,
        codes: Sequence[Implementation],
    ) -> None:  # fmt: skip
        """How far the errors of one head spread, in some columns where there are many."""
        few = self.task.columns(self.claim.left, where, head)
        if few is not where:
            assert few[-1] is not None
            places = few[-1].places
            computed = [side.index_select(-1, places.to(side.device)) for side in computed]
            bounds = [
                self.task.bound(side, few, head, self.profile, code.bounds, spread=True)
                for side, code in zip(self.sides, codes, strict=False)
            ]
            where = few
        if any(b.arithmetic.overflowed and bool(b.error().isinf().any()) for b in bounds):
            self.broken = "a number may have left the range of the dtype on the way"
            return
        one = probable(computed, bounds, equal=self.claim.relation == "=")
        if one is None:
            self.broken = "a side is not a number"
            return
        place = place_of(one.place, where)
        one = Comparison(one.error, one.tolerance, (head, *place) if head else place, one.status,
                         one.reason)  # fmt: skip
        self.likely = one if self.likely is None else worse(self.likely, one)
        self.entries += sum(side.numel() for side in computed)
        moved = self.task.moved(head)
        sides = zip(SIDES, self.sides, computed, bounds, codes, strict=False)
        for name, side, values, bound, code in sides:
            reading = self.task.reading(head, self.profile, code.bounds, spread=True)
            found = seen(reading, moved, side, where, values, bound, code)
            if found is not None:
                self.looked.setdefault(name, []).append(found)

    def _signs(self) -> bool:
        return self.claim.right is None

    def judged(self, certain: Comparison) -> tuple[Judged, ...]:
        """What each policy says; ``certain`` is what the deterministic one found."""
        told = certain.reason or f"entry {certain.place}"
        ratio = max(certain.ratio, self.nearest) if certain.status == "held" else certain.ratio
        first = Judged("deterministic", certain.status, ratio, told)
        return (first, self._probabilistic(), self._residual(), self._bitwise())

    def _why_not(self) -> str:
        if self._signs():
            return "a sign alone is claimed"
        return not_independent(self.task, self.profile.dtype) or self.broken

    def _probabilistic(self) -> Judged:
        why, one = self._why_not(), self.likely
        if why or one is None:
            return Judged("probabilistic", "skipped", 0.0, why or "nothing was compared")
        told = one.reason or f"entry {one.place}"
        told += f"; by chance with probability at most {chance(self.entries):.0e}"
        return Judged("probabilistic", one.status, one.ratio, told)

    def _residual(self) -> Judged:
        why = self._why_not()
        if why or not self.looked:
            return Judged("residual", "skipped", 0.0, why or "no side of which the spread is known")
        found: Strongest = spoken(self.looked)
        status = "violated" if found.ratio > 1 else "held"
        return Judged("residual", status, found.ratio, found.told)

    def _bitwise(self) -> Judged:
        why = "the same code for the same queries is not promised to round alike"
        if self.alone:
            why = "no rows were computed both ways"
        return bits(self.bits, why)
