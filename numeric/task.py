"""A statement at one scale on one device: its parts, draws, rows, exact values and bounds."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

import torch

from attnproof.symbolic.admissible import with_bound_variables
from attnproof.symbolic.claim import Claim
from attnproof.symbolic.concrete import length_value
from attnproof.symbolic.gate import require_read
from attnproof.symbolic.statement import Statement
from attnproof.symbolic.terms import Term, free, postorder

from .arithmetic import Arithmetic
from .devices import device_label, name_of
from .error_analysis import Rounded
from .hypotheses import Unsatisfiable
from .implementations import Implementation
from .implementations.eager import SOFTMAX_BOUND
from .policies.directions import Perturbed
from .policies.weights import with_spread
from .profile import Profile
from .residues.lengths import unselected, work
from .results import MeasuredEvidence
from .row_selection import Replacement, Rows, Where, few_rows
from .sample import Sample, draw
from .scale import Scale, depths, scale_named, sizes_of
from .torch_reading import BoundReading, TorchReading

# A statement at one scale on one device: its draws, sampled rows, exact values, bounds

COLUMNS = 256  # of a long last axis, in which the spread of errors is tracked


@dataclass(frozen=True)
class Stored:
    """The values of one head in a dtype, and how often each tensor was written to."""

    values: dict[str, Any]
    written: dict[str, int]

    @classmethod
    def of(cls, values: dict[str, Any]) -> Stored:
        """Record the values as they are now."""
        return cls(values, _written(values))

    @property
    def untouched(self) -> bool:
        """Whether no code that received them has changed them."""
        return self.written == _written(self.values)


def _written(values: Mapping[str, Any]) -> dict[str, int]:
    tensors = {name: v for name, v in values.items() if isinstance(v, torch.Tensor)}
    return {name: v._version for name, v in tensors.items()}  # noqa: SLF001 (no public name)


@dataclass
class Task:
    """A statement at one scale on one device.

    Draws are made once and kept, as are the exact values and radii of sides, which every
    implementation with the same bound shares.  Their intermediates are kept for one dtype at a
    time, and for the first and one other head; those of selected rows, for one claim.
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
    broken: dict[torch.dtype, str | None] = field(default_factory=dict)
    runs: dict[tuple[str, str, torch.dtype], MeasuredEvidence] = field(default_factory=dict)
    stored: dict[tuple[int, torch.dtype], Stored] = field(default_factory=dict)
    perturbations: dict[int, Perturbed] = field(default_factory=dict)
    computed: dict[tuple[int, torch.dtype, Term, Where], torch.Tensor] = field(default_factory=dict)
    """Sides for which no implementation has code, shared since each would compute the same."""

    @cached_property
    def roles(self) -> dict[str, str]:
        """What each size counts."""
        lengths = [n for given in self.statement.givens.values() for n in given.shape]
        sizes = [v for n in lengths for v in free(n) if v.op == "size"]
        return dict(v.data for v in sizes)

    def sample(self, head: int) -> Sample:
        """The values of one head; every implementation receives head 0."""
        if head not in self.draws:
            seed = self.seed + 1_000_003 * head
            self.draws[head] = draw(self.statement, self.sizes, self.scale, seed)
        return self.draws[head]

    def values(self, head: int, dtype: torch.dtype) -> dict[str, Any]:
        """The values of one head as a program receives them, made once for all implementations."""
        whose = (head, dtype)
        kept = self.stored.get(whose)
        if kept is None or not kept.untouched:
            self.stored = {
                key: one for key, one in self.stored.items() if key[1] == dtype and key[0] == 0
            }
            kept = self.stored[whose] = Stored.of(self.sample(head).in_dtype(dtype, self.device))
        return dict(kept.values)

    def heads(self, implementation: Implementation, dtype: torch.dtype, side: Term) -> int:
        """The number of heads to run: several for a fused kernel if the statement has only one.

        One suffices in float64, for which there are no fused kernels, and if no rows can be
        sampled, since then every entry is compared.
        """
        one = dtype == torch.float64 or "heads" in self.roles.values()
        several = implementation.fused and not one
        return self.scale.heads if several and any(self.rows(side, 0, self.scale.rows)) else 1

    def rows(self, side: Term, head: int, count: int) -> Where:
        """Both ends and random places between, on the first axis longer than ``count``."""
        key = (head, count, side)
        if key not in self.chosen:
            lengths = [length_value(n, self.sizes) for n in side.shape]
            first = next((k for k, n in enumerate(lengths) if n > count), 0)
            self.chosen[key] = few_rows(lengths, count, self.seed + 1_000_003 * head + first)
        return self.chosen[key]

    def columns(self, side: Term, where: Where, head: int) -> Where:
        """Restrict a long last axis to some places, enough to see how errors spread."""
        length = length_value(side.shape[-1], self.sizes) if side.ndim > 1 else 0
        if length <= COLUMNS or where[-1] is not None:
            return where
        key = (head, -COLUMNS, side)
        if key not in self.chosen:
            generator = torch.Generator().manual_seed(self.seed + 1_000_003 * head - 1)
            places = torch.randperm(length, generator=generator)[:COLUMNS].sort().values
            self.chosen[key] = (*where[:-1], Rows(places))
        return self.chosen[key]

    def reading(
        self,
        head: int,
        profile: Profile,
        replaced: Mapping[str, Replacement],
        *,
        spread: bool = False,
    ) -> BoundReading:
        """The exact values of one head, with the radii of code that has these bounds.

        With ``spread`` they also carry how far independent errors spread.
        """
        whose = (head, profile, _code(replaced), spread)
        if whose not in self.readings:
            self.readings = {
                key: kept
                for key, kept in self.readings.items()
                if key[1] == profile and key[0] in (0, head)
            }
            sample, arithmetic = self.sample(head), Arithmetic(profile, spreads=spread)
            bounds = {**SOFTMAX_BOUND, **replaced}
            if spread:
                bounds = {name: with_spread(bound) for name, bound in bounds.items()}
            plain = self.reading(head, profile, {}, spread=spread) if replaced else None
            values = sample.with_radii(arithmetic, self.device) if plain is None else plain.givens
            self.readings[whose] = BoundReading(sample.sizes, values, arithmetic, bounds, plain)
        return self.readings[whose]

    def forget_rows(self) -> None:
        """Drop cached rows, which serve the implementations of one claim."""
        self.computed.clear()
        for reading in self.readings.values():
            reading.known_rows.clear()

    def bound(
        self,
        side: Term,
        where: Where,
        head: int,
        profile: Profile,
        replaced: Mapping[str, Replacement],
        *,
        spread: bool = False,
    ) -> Rounded:
        """The exact value of a side at some rows, and the radius of code with these bounds."""
        whose = (head, profile, _code(replaced), spread, side, where)
        if whose not in self.bounds:
            reading = self.reading(head, profile, replaced, spread=spread)
            if reading.plain is not None and reading.is_plain(side):
                found = self.bound(side, where, head, profile, {}, spread=spread)
            else:
                found = reading.rounded(reading.read(side, where))
            self.bounds[whose] = found
        return self.bounds[whose]

    def perturbed(self, head: int) -> Perturbed:
        """The exact values with frequencies and positions slightly moved."""
        if head not in self.perturbations:
            self.perturbations[head] = Perturbed(self.sample(head))
        return self.perturbations[head]

    def unrounded(self, dtype: torch.dtype) -> str | None:
        """Return why the values cannot be represented in this dtype, or None.

        Raises :class:`Unsatisfiable` if there are no values at all.
        """
        if dtype not in self.broken:
            why = self.sample(0).breaks(dtype, self.device)
            self.broken[dtype] = None if why is None else f"rounded to this dtype, not {why}"
        return self.broken[dtype]

    def skipped(
        self, says: str, implementation: str, dtype: torch.dtype, why: str
    ) -> MeasuredEvidence:
        """The record of a measurement that was not made."""
        return MeasuredEvidence.of_nothing(
            why,
            says=says,
            implementation=implementation,
            device=device_label(self.device),
            dtype=name_of(dtype),
            sizes=self.sizes,
            seed=self.seed,
        )


def _code(replaced: Mapping[str, Replacement]) -> Hashable:
    return frozenset((name, r.compute) for name, r in replaced.items())


# The separately measured parts of a statement: claims, with sizes and values

WORK = 1 << 27
"""The most entries computed for some rows of one side; 256 multiplications count as one entry."""
PRODUCTS = 1 << 31
"""The most multiplications in one matrix product of which every entry is needed."""
FEW_STEPS = 4  # if an equation involves stacks: for deeper ones it is hardly ever solved


def parts_of(statement: Statement) -> Iterator[tuple[str, Claim, Statement]]:
    """Yield each claim with a statement that holds it, in which its further variables are givens.

    Every measurement of a statement starts here, so a misread statement is refused here
    (:class:`~attnproof.symbolic.gate.Misread`); the yielded statements consist of terms only.
    """
    require_read(statement)
    statement = replace(statement, code=None)
    plain = {says: c for says, c in statement.claims.items() if not c.variables}
    shared = replace(statement, claims=plain)
    told = tuple(side for claim in statement.hypotheses for side in claim.sides)
    for says, claim in statement.claims.items():
        if not claim.variables:
            yield says, claim, shared
        else:
            alone, givens = with_bound_variables(claim, statement.givens, told)
            yield says, alone, replace(statement, givens=givens, claims={says: alone})


def drawn(statement: Statement, scale: Scale, device: torch.device, seed: int) -> Task:
    """Return the statement at a scale, with values.

    If no values satisfy the hypotheses at these sizes, small sizes are tried.  Stacks have few
    layers if a hypothesis involves stacks.
    """
    if depths(replace(statement, claims={})):
        scale = replace(scale, steps=min(scale.steps, FEW_STEPS))
    sizes = sizes_of(statement, scale, lambda sizes: _exceeds_work(statement, sizes, scale))
    task = Task(statement, scale, sizes, device, seed)
    try:
        task.sample(0)
    except Unsatisfiable as error:
        if not error.too_large or scale.name == "small":
            raise
        return drawn(statement, scale_named("small"), device, seed)
    return task


def drawn_again(task: Task) -> Task:
    """Draw the task again, at its current scale."""
    return drawn(task.statement, task.scale, task.device, task.seed)


def _exceeds_work(statement: Statement, sizes: dict[str, int], scale: Scale) -> bool:
    """Whether some claim needs too much of a large intermediate, sampled or not."""
    reading = TorchReading(sizes, {}, torch.float64, torch.device("cpu"))
    for claim in map(Claim.at_witness, statement.claims.values()):
        lengths = reading.lengths(claim.left)
        first = next((k for k, n in enumerate(lengths) if n > scale.rows), None)
        wanted = tuple(scale.rows if k == first else None for k in range(len(lengths)))
        for side in claim.sides:
            at = wanted if side.ndim == len(wanted) else (None,) * side.ndim
            if work(side, sizes, at) > WORK or unselected(side, sizes, at) > scale.passes:
                return True
            if first is None and _products(reading, side) > PRODUCTS:
                return True
    return False


def _products(reading: TorchReading, side: Term) -> int:
    """The number of multiplications in the largest matrix product of a side."""
    return max(
        (
            prod(reading.lengths(t)) * reading.length(t.args[0].shape[-1])
            for t in postorder(side)
            if t.op == "matmul" and not t.loose
        ),
        default=0,
    )


def definitions_of(claim: Claim) -> set[str]:
    """The named definitions in a claim."""
    return set().union(*map(definitions_in, claim.sides))


def definitions_in(term: Term) -> set[str]:
    """The named definitions in a term."""
    return {part.data[0] for part in postorder(term) if part.op == "named"}
