"""Apply all policies to one measurement, head by head.

On a CPU the output of fused attention for one query does not depend on the other queries or on
their order (measured for all dtypes: ``torch.equal``).  So sides of a claim that differ only by the
order of the queries are equal bit for bit, and so are rows computed alone and in the whole.
Permuted keys are summed in another order and are not.  The last queries of a partial block may take
another path (measured: 1, 2 or 3 remaining in float32, any number that is not a multiple of 4 in
float64), so only whole blocks are compared bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from attnproof.symbolic.concrete import length_value
from attnproof.symbolic.statement import Claim
from attnproof.symbolic.terms import Term

from ..error_analysis import Rounded
from ..implementations import Implementation
from ..implementations.scaled_dot_product import ROW_AXIS
from ..measurement import (
    HEADS,
    REFERENCE_SHARE,
    SIDES,
    Comparison,
    each,
    of_definition,
    place_in,
    place_of,
    unusable,
    wide,
    worse,
    worst,
)
from ..profile import FULL_BLOCK, Profile
from ..results import PolicyRecord, Status
from ..row_selection import Where
from ..spread import LAMBDA
from .directions import errors_of_side
from .residual import CallErrors, SideErrors, Strongest, strongest_test

if TYPE_CHECKING:
    from ..task import Task


# The comparison with the radius that independent rounding errors hardly ever exceed


def probable(
    computed: Sequence[Tensor], bounds: Sequence[Rounded], *, equal: bool
) -> Comparison | None:
    """Compare each side with the exact value of its term and, in an equation, with the other side.

    None if a side is not a number, which the deterministic policy reports.
    """
    sides = wide(*computed)
    if unusable(sides, bounds) is not None:
        return None
    radii = [bound.smallest_radius() for bound in bounds]
    told = (
        "the {} side differs from its definition in float64 by more than the spread of its errors"
    )
    found = each(sides, bounds, [radius * (1 + REFERENCE_SHARE) for radius in radii], told)
    if equal:
        one = worst(sides[0], sides[1], radii[0] + radii[1])
        wrong = one[0] > one[1]
        told = "the sides differ by more than the spread of their errors" if wrong else ""
        found.append(Comparison(*one, "violated" if wrong else "held", told))
    return worse(*found)


def chance(entries: int) -> float:
    """The probability that any of so many entries exceeds the radius if errors are independent.

    >>> f"{chance(4096):.0e}"
    '2e-07'
    """
    return min(1.0, 2 * entries * math.exp(-LAMBDA * LAMBDA / 2))


# Bitwise equality: fused attention on a CPU computes every query independently

Compared = tuple[str, Tensor, Tensor, Where]


def rows_are_independent(implementation: Implementation, device: torch.device) -> bool:
    """Whether the rows of a kernel are independent of each other: the fused kernel of a CPU."""
    name = implementation.name.startswith("scaled_dot_product_attention")
    return device.type == "cpu" and implementation.fused and name


def blocks_are_whole(queries: int, dtype: torch.dtype = torch.float32) -> bool:
    """Whether every block of queries is whole; a single block may be short except in float64."""
    single = dtype != torch.float64 and queries < FULL_BLOCK
    return queries > 0 and (single or queries % FULL_BLOCK == 0)


def queries_are_given(side: Term) -> bool:
    """Whether a side is one call whose queries are given rather than computed.

    Matrix products and functions may round a row differently depending on the other rows.
    """
    found = _call_by_query(side)
    return found is not None and all(
        part[0].op == "var"
        for part, axis in zip(found[1:], ROW_AXIS[found[0]], strict=True)
        if axis is not None
    )


def queries_are_permuted(claim: Claim) -> bool:
    """Whether call(Q[τ], K, V, ..) = call(Q, K, V, ..)[τ], or the other way round."""
    if claim.relation != "=" or claim.right is None:
        return False
    left, right = _call_by_query(claim.left), _call_by_query(claim.right)
    return left is not None and left == right and queries_are_given(claim.left)


def _call_by_query(side: Term) -> tuple[Any, ...] | None:
    """A call, with the gathers of its rows attributed to each argument that has rows."""
    t, outer = side, list[Term]()
    while t.op == "gather" and t.data == t.ndim - 2:
        outer.append(t.args[1])
        t = t.args[0]
    if t.op != "named" or t.data[0] not in ROW_AXIS:
        return None
    name = str(t.data[0])
    parts: list[Any] = [name]
    for arg, axis in zip(t.args[1:], ROW_AXIS[name], strict=True):
        x, maps = arg, list[Term]()
        while axis is not None and x.op == "gather" and x.data == x.ndim + axis:
            maps.append(x.args[1])
            x = x.args[0]
        parts.append((x, (*outer, *maps) if axis is not None else ()))
    return tuple(parts)


def judge_bits(found: list[Compared], why: str) -> PolicyRecord:
    """Compare pairs of tensors bit for bit; without any, say why."""
    if not found:
        return PolicyRecord("bitwise", "skipped", 0.0, why)
    for what, one, other, where in found:
        if not torch.equal(one, other):
            far = (one.double() - other.double()).abs().nan_to_num()
            place = place_of(place_in(far, int(far.argmax())), where)
            told = f"{what}: {int((one != other).sum())} entries differ, most at {place}"
            return PolicyRecord("bitwise", "violated", float("inf"), told)
    told = " and ".join(dict.fromkeys(what for what, *_ in found))
    return PolicyRecord("bitwise", "held", 0.0, f"{told}: equal bit for bit")


# All policies on one measurement, head by head


def why_not_independent(task: Task, dtype: torch.dtype) -> str | None:
    """Return why errors are not independent, or as large as those of the reference, or None."""
    if dtype == torch.float64:
        return "the reference is in float64 itself, and its errors are as large"
    distribution = task.scale.distribution
    if not distribution.continuous:
        return f"inputs are {distribution.name}: equal numbers have equal rounding errors"
    return None


@dataclass
class Judging:
    """The policies for one claim, implementation and profile."""

    task: Task
    claim: Claim
    implementation: Implementation
    profile: Profile
    nearest: float = 0.0
    likely: Comparison | None = None
    entries: int = 0
    looked: dict[str, list[CallErrors | SideErrors]] = field(default_factory=dict)
    bits: list[Compared] = field(default_factory=list)
    why_unusable: str = ""

    @property
    def alone(self) -> bool:
        """Whether rows computed alone must equal those of the whole bit for bit."""
        return rows_are_independent(self.implementation, self.task.device)

    def tracks_spread(self, head: int) -> bool:
        """Whether the spread of independent errors is tracked in a head."""
        if head >= HEADS or self._is_sign_claim():
            return False
        return why_not_independent(self.task, self.profile.dtype) is None

    def add_head(
        self,
        head: int,
        computed: Sequence[Tensor],
        bounds: Sequence[Rounded],
        where: Where,
        again: Tensor | None,
        codes: Sequence[Implementation],
        own: tuple[Tensor, Tensor] | None = None,
    ) -> None:
        """Add the sides of one head; ``again`` is the first side with its rows computed alone.

        ``codes`` is the implementation with the bounds of each side, ``own`` the error of the
        references.
        """
        side = self.claim.left
        whole = length_value(side.shape[-2], self.task.sizes) if side.ndim > 1 else 1
        alone = computed[0].shape[-2] if side.ndim > 1 else 1
        regular = all(blocks_are_whole(count, self.profile.dtype) for count in (whole, alone))
        if again is not None and regular and queries_are_given(side):
            self.bits.append(("rows computed alone and in the whole", computed[0], again, where))
        if self.alone and regular and len(computed) == 2 and queries_are_permuted(self.claim):
            self.bits.append(("queries in another order", computed[0], computed[1], where))
        if self._is_sign_claim():
            return
        for k, (values, bound) in enumerate(zip(wide(*computed), bounds, strict=True)):
            allowed = of_definition(bound, None if own is None else own[k])
            error, tolerance, _ = worst(values, bound.value, allowed)
            self.nearest = max(self.nearest, error / tolerance if tolerance else 0.0)
        if self.tracks_spread(head):
            self._add_spread(head, computed, bounds, where, codes)

    def _add_spread(
        self,
        head: int,
        computed: Sequence[Tensor],
        bounds: Sequence[Rounded],
        where: Where,
        codes: Sequence[Implementation],
    ) -> None:
        """Compare the errors of one head with their spread, in some columns if there are many."""
        few = self.task.columns(self.claim.left, where, head)
        if few is not where:
            assert few[-1] is not None
            places = few[-1].places
            computed = [side.index_select(-1, places.to(side.device)) for side in computed]
            bounds = [
                self.task.bound(side, few, head, self.profile, code.bounds, spread=True)
                for side, code in zip(self.claim.sides, codes, strict=False)
            ]
            where = few
        if any(b.arithmetic.overflowed and bool(b.error().isinf().any()) for b in bounds):
            self.why_unusable = "an intermediate number may have left the range of the dtype"
            return
        one = probable(computed, bounds, equal=self.claim.relation == "=")
        if one is None:
            self.why_unusable = "a side is not a number"
            return
        place = place_of(one.place, where)
        one = Comparison(
            one.error, one.tolerance, (head, *place) if head else place, one.status, one.reason
        )
        self.likely = one if self.likely is None else worse(self.likely, one)
        self.entries += sum(side.numel() for side in computed)
        moved = self.task.perturbed(head)
        sides = zip(SIDES, self.claim.sides, computed, bounds, codes, strict=False)
        for name, side, values, bound, code in sides:
            reading = self.task.reading(head, self.profile, code.bounds, spread=True)
            found = errors_of_side(reading, moved, side, where, values, bound, code)
            if found:
                self.looked.setdefault(name, []).extend(found)

    def _is_sign_claim(self) -> bool:
        return self.claim.right is None

    def judged(self, certain: Comparison) -> tuple[PolicyRecord, ...]:
        """The result of each policy; ``certain`` is that of the deterministic comparison."""
        told = certain.reason or f"entry {certain.place}"
        ratio = max(certain.ratio, self.nearest) if certain.status == "held" else certain.ratio
        first = PolicyRecord("deterministic", certain.status, ratio, told)
        return (first, self._probabilistic(), self._residual(), self._bitwise())

    def _why_not(self) -> str:
        if self._is_sign_claim():
            return "only a sign is claimed"
        return why_not_independent(self.task, self.profile.dtype) or self.why_unusable

    def _probabilistic(self) -> PolicyRecord:
        why, one = self._why_not(), self.likely
        if why or one is None:
            return PolicyRecord("probabilistic", "skipped", 0.0, why or "nothing was compared")
        told = one.reason or f"entry {one.place}"
        told += f"; by chance with probability at most {chance(self.entries):.0e}"
        return PolicyRecord("probabilistic", one.status, one.ratio, told)

    def _residual(self) -> PolicyRecord:
        why = self._why_not()
        if why or not self.looked:
            return PolicyRecord("residual", "skipped", 0.0, why or "no side has a known spread")
        found: Strongest = strongest_test(self.looked)
        status: Status = "violated" if found.ratio > 1 else "held"
        return PolicyRecord("residual", status, found.ratio, found.told)

    def _bitwise(self) -> PolicyRecord:
        why = "the same code for the same queries is not promised to round alike"
        if self.alone:
            why = "no rows were computed both ways"
        return judge_bits(self.bits, why)
