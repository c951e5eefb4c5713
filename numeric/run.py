"""Run one conclusion in one implementation and dtype, bound its error, and compare.

A kernel that is given whole blocks of queries was measured to sum over keys with fewer roundings
than one that may have a single query left over, so the queries per call are recorded before its
bound is chosen.

Rounding bounds are worst case: over many steps of a recurrence they can exceed the values, which
can grow as well.  So the number of steps is doubled as long as float64 still distinguishes the two
sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from math import ceil, isinf, prod
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from attnproof.symbolic.statement import Claim, Statement
from attnproof.symbolic.terms import Term

from . import devices
from .arithmetic import Arithmetic
from .attention_bound import AttentionBound
from .devices import DTYPES, device_label, name_of
from .hypotheses import number_array
from .implementations import DoesNotFit, Implementation
from .implementations.eager import SOFTMAX
from .measurement import (
    BOUND_TOO_LARGE,
    Comparison,
    compared,
    counted,
    how,
    place_in,
    place_of,
    positive,
    rows_of,
    sampled,
    worse,
)
from .policies.judging import Judging, queries_are_given, rows_are_independent
from .profile import FULL_BLOCK, Profile, profile_of
from .results import MeasuredEvidence, PolicyRecord
from .row_selection import Replacement, TooLarge, Where, never
from .sample import Sample, draw
from .scale import Scale
from .task import Task, definitions_in
from .torch_reading import BoundReading, TorchReading

# Calls of the code of an implementation: refusals, and the number of queries


@dataclass
class Calls:
    """An implementation in one reading, with the numbers of queries of all calls so far."""

    implementation: Implementation
    queries: dict[str, set[int]] = field(default_factory=dict)

    @property
    def replaced(self) -> Mapping[str, Replacement]:
        """The code of the implementation, with its refusals turned into ``DoesNotFit``.

        PyTorch raises ``RuntimeError`` for a missing kernel or exhausted memory, and also for
        arrays whose shapes do not match.  So all of these are reported with their text; a test
        ensures that the implementations of this package raise none at small sizes.
        """
        return {
            name: replace(replaced, compute=self._guarded(name, replaced.compute))
            for name, replaced in self.implementation.replaced.items()
        }

    def _guarded(self, name: str, compute: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            first = args[0]
            many = first.shape[-2] if isinstance(first, Tensor) and first.ndim > 1 else 0
            self.queries.setdefault(name, set()).add(many)
            try:
                return compute(*args)
            except RuntimeError as error:
                text = f"{self.implementation.name} raised {type(error).__name__}: {error}"
                raise DoesNotFit(text) from error

        return call

    def bounded(self) -> Implementation:
        """The implementation with its bounds for the recorded calls.

        If every call of a definition had whole blocks of queries, its bounds are those for whole
        blocks.
        """
        return replace(
            self.implementation,
            bounds={
                name: self._bounded(bound, self.queries.get(name, {0}))
                for name, bound in self.implementation.bounds.items()
            },
        )

    def _bounded(self, bound: Replacement, given: set[int]) -> Replacement:
        compute = bound.compute
        whole = all(many > 0 and many % FULL_BLOCK == 0 for many in given)
        if not (whole and isinstance(compute, AttentionBound) and compute.kernel):
            return bound
        return replace(bound, compute=replace(compute, queries=FULL_BLOCK))


# The number of steps of stacks for which results remain informative

FEWEST, FIRST = 4, 16
LARGEST = 1e30  # within the range of float32 and bfloat16, with a margin

Run = Callable[[Task, str, Implementation, torch.dtype], MeasuredEvidence]


def informative(task: Task, run: Run, redraw: Callable[[Task], Task]) -> Task:
    """Return the task with the most steps, up to its own, that float64 can follow in all claims."""
    most = max(counted(task).values(), default=0)
    if most <= FEWEST:
        return task

    def with_steps(steps: int) -> Task:
        if steps >= most:
            return task
        return redraw(replace(task, scale=replace(task.scale, steps=steps)))

    steps = FIRST
    best = with_steps(steps)
    if not _is_informative(best, run):
        return with_steps(FEWEST)
    while steps < most:
        steps *= 2
        more = with_steps(steps)
        if not _is_informative(more, run):
            break
        best = more
    return best


@contextmanager
def one_thread(task: Task) -> Iterator[None]:
    """Run many small steps on one thread, since several would wait for each other at each step."""
    many = max(counted(task).values(), default=0) > FIRST
    with devices.one_thread() if many else nullcontext():
        yield


def _is_informative(task: Task, run: Run) -> bool:
    eager = Implementation("eager")
    for says in task.statement.claims:
        try:
            found = run(task, says, eager, torch.float64)
        except (DoesNotFit, TooLarge):
            continue
        if found.status == "non-finite" or found.reason == BOUND_TOO_LARGE:
            return False
    sides = (bound.value for bound in task.bounds.values())
    return all(bool((side.abs() < LARGEST)[side.isfinite()].all()) for side in sides)


# Existence of one matrix for every position, by least squares over many, in float64

EQUATIONS = 4  # per unknown
CPU, FLOAT64 = torch.device("cpu"), DTYPES["float64"]


class NotLinear(ValueError):
    """The equation is not linear in the unknown, so least squares cannot settle it."""


@dataclass(frozen=True)
class Search:
    """The result of least squares: the verdict, the number of draws, and the relative residual."""

    found: Comparison
    draws: int
    residual: float


def search(
    statement: Statement, claim: Claim, sizes: dict[str, int], scale: Scale, seed: int
) -> Search:
    """Find the best value of the unknown for many draws of what it must not depend on.

    left − right is linear in the unknown M; the residual of the best M is compared with the
    rounding bound of both sides at that M.  Raises :class:`NotLinear` otherwise.
    """
    assert claim.variable is not None
    unknown = claim.variable
    first = draw(statement, sizes, scale, seed)
    shape = tuple(TorchReading(sizes, {}, FLOAT64, CPU).lengths(unknown))
    entries = prod(TorchReading(sizes, {}, FLOAT64, CPU).lengths(claim.left))
    draws = max(2, ceil(EQUATIONS * prod(shape) / entries))
    samples = [_redrawn(statement, claim, first, scale, seed + k) for k in range(draws)]
    systems = [_linear(claim, unknown, shape, sample) for sample in samples]
    matrix, right = (torch.cat(parts) for parts in zip(*systems, strict=True))
    best = torch.linalg.lstsq(matrix, right[:, None], driver="gelsd").solution[:, 0]
    residual = float((matrix @ best - right).norm() / right.norm().clamp(min=1e-300))
    solving = 2.0**-53 * sum(matrix.shape) * float(matrix.abs().max() * best.norm())
    worst: Comparison | None = None
    for sample in samples:
        one = _at(claim, unknown, best.reshape(shape), sample, solving)
        worst = one if worst is None or one.ratio > worst.ratio else worst
    assert worst is not None
    return Search(worst, draws, residual)


def _redrawn(statement: Statement, claim: Claim, first: Sample, scale: Scale, seed: int) -> Sample:
    """Redraw the values on which the unknown must not depend; the others stay as first drawn."""
    again = draw(statement, first.sizes, scale, seed)
    moving = {v.data[0] if v.op == "var" else v.data for v in claim.free_of}
    values = {k: again.values[k] if k in moving else v for k, v in first.values.items()}
    return Sample(statement, first.sizes, values, first.seed, first.formed, first.unrounded)


def _linear(
    claim: Claim, unknown: Term, shape: tuple[int, ...], sample: Sample
) -> tuple[Tensor, Tensor]:
    """The matrix and right side of the equation, flattened."""
    values, right = sample.in_dtype(FLOAT64, CPU), claim.right
    assert right is not None

    def difference(flat: Tensor) -> Tensor:
        data: Any = unknown.data
        reading = TorchReading(sample.sizes, {**values, data[0]: flat.reshape(shape)}, FLOAT64, CPU)
        result: Tensor = (reading(claim.left) - reading(right)).reshape(-1)
        return result

    zero = torch.zeros(prod(shape), dtype=FLOAT64)
    constant = difference(zero)
    matrix: Tensor = torch.func.jacrev(difference)(zero)
    probe = torch.linspace(-1, 2, prod(shape), dtype=FLOAT64)
    gap = difference(probe) - constant - matrix @ probe
    if float(gap.abs().max()) > 1e-9 * (1 + float(matrix.abs().max()) * prod(shape)):
        raise NotLinear(f"the equation is not linear in {unknown!r}; name a witness instead")
    return matrix, -constant


def _at(claim: Claim, unknown: Term, best: Tensor, sample: Sample, solving: float) -> Comparison:
    arithmetic = Arithmetic(profile_of(FLOAT64, CPU))
    reading = BoundReading(sample.sizes, sample.with_radii(arithmetic, CPU), arithmetic)
    data: Any = unknown.data
    reading.values[data[0]] = reading.arithmetic.exact(best)
    assert claim.right is not None
    left, right = reading(claim.left), reading(claim.right)
    error = (left.value - right.value).abs()
    tolerance = left.error() + right.error() + solving
    place = place_in(error, int((error / tolerance).argmax()))
    off, allowed = float(error[place]), float(tolerance[place])
    return Comparison(off, allowed, place, "violated" if off > allowed else "held")


# Run, bound and compare


def run(
    task: Task, says: str, claim: Claim, implementation: Implementation, dtype: torch.dtype
) -> MeasuredEvidence:
    """Run both sides, and compare the sampled rows with each other and with float64.

    Raises ``DoesNotFit`` or ``TooLarge`` if the implementation cannot handle the call.
    """
    started = perf_counter()
    heads = task.heads(implementation, dtype, claim.left)
    profile = profile_of(dtype, task.device)
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
            spread = judging.tracks_spread(head) and task.columns(claim.left, where, head) is where
            bounds = [
                task.bound(side, where, head, profile, code.bounds, spread=spread)
                for side, code in zip(claim.sides, codes, strict=False)
            ]
            own = _reference_radius(task, claim, implementation, profile, where, head)
            if claim.relation == ">" and claim.right is None:
                one = positive(computed[0], bounds[0])
            else:
                one = compared(claim.relation, computed, bounds, own, every_entry=not any(where))
            one = _left_its_range(one, claim)
            judging.add_head(head, computed, bounds, where, again, codes, own)
        looked.append(where)
        place = place_of(one.place, where)
        one = replace(one, place=(head, *place) if heads > 1 else place)
        found = one if found is None else worse(found, one)
    assert found is not None
    policies = judging.judged(found)
    found = _with_policies(found, judging, policies)
    return MeasuredEvidence(
        says=says,
        implementation=implementation.name,
        device=device_label(task.device),
        dtype=name_of(dtype),
        sizes=task.sizes | ({"heads drawn": heads} if heads > 1 else {}),
        seed=task.seed,
        sampled=sampled(
            task,
            claim.left,
            looked,
            partly,
            swapped=claim.right is not None and bool(implementation.replaced),
        ),
        **found.recorded,
        seconds=perf_counter() - started,
        rounding=f"{profile}; {how(implementation)}",
        distribution=task.scale.distribution.name,
        distributions=(task.scale.distribution.name,),
        policies=policies,
    )


def _left_its_range(found: Comparison, claim: Claim) -> Comparison:
    """The comparison, non-finite if it is infinite between numbers that are finite by their form.

    The logarithm of a weight that underflows is −inf, in the reference too.
    """
    if found.status != "violated" or not isinf(found.error):
        return found
    if not all(side.finite for side in claim.sides):
        return found
    return replace(found, status="non-finite", reason="a number left the range of the dtype there")


def _with_policies(
    certain: Comparison, judging: Judging, policies: Sequence[PolicyRecord]
) -> Comparison:
    """The final comparison: violated if any policy fails."""
    against = next((j for j in policies[1:] if j.status == "violated"), None)
    if against is None or certain.status in ("violated", "non-finite"):
        return certain
    reason = f"{against.policy}: {against.told}"
    likely = judging.likely
    if against.policy == "probabilistic" and likely is not None:
        return replace(likely, reason=reason)
    return replace(certain, status="violated", reason=reason)


def _computed(
    task: Task,
    claim: Claim,
    implementation: Implementation,
    dtype: torch.dtype,
    where: Where,
    head: int,
) -> tuple[list[Tensor], Tensor | None, set[str], list[Implementation]]:
    """Compute the sides, the first one also with its rows alone, and what ran only for these.

    The last result is the implementation with the bounds for the calls that each side made.  If
    rows are sampled, only the first side runs its kernels over all rows; the other runs them on the
    sampled rows, so that a check costs little more than one forward.
    """
    sample = task.sample(head)
    values = task.values(head, dtype)
    calls = [Calls(implementation), Calls(implementation)]

    def reading(code: Mapping[str, Replacement]) -> TorchReading:
        return TorchReading(sample.sizes, values, dtype, task.device, code)

    rows_alone = {
        name: replace(r, whole=never) for name, r in {**SOFTMAX, **calls[1].replaced}.items()
    }

    whole = reading({**SOFTMAX, **calls[0].replaced})
    alone = reading(rows_alone) if any(where) and implementation.replaced else whole

    def value(of: TorchReading, side: Term) -> Tensor:
        """A side; one that the implementation has no code for is computed once for many."""
        key = (head, dtype, side, where)
        shared = not definitions_in(side) & implementation.replaced.keys() and alone is not whole
        if not shared or key not in task.computed:
            found = number_array(of.read(side, where))
            if shared:
                task.computed[key] = found
            return found
        return task.computed[key]

    computed = [value(whole, claim.left)]
    partly = whole.partly & set(implementation.replaced)
    if claim.right is not None:
        computed.append(value(alone, claim.right))
    again = None
    asked = rows_are_independent(implementation, task.device) and queries_are_given(claim.left)
    if alone is not whole and not partly and asked:
        again = number_array(alone.read(claim.left, where))
    made = calls if alone is not whole else (calls[0], calls[0])
    return computed, again, partly, [one.bounded() for one in made]


def _reference_radius(
    task: Task,
    claim: Claim,
    implementation: Implementation,
    profile: Profile,
    where: Where,
    head: int,
) -> tuple[Tensor, Tensor] | None:
    """The error of the references themselves, if it is as large as the errors that are bounded."""
    if profile.dtype != torch.float64 or not implementation.bounds:
        return None
    sides = [claim.left, claim.left if claim.right is None else claim.right]
    left, right = (task.bound(side, where, head, profile, {}).error() for side in sides)
    return left, right
