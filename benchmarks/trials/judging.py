"""Apply each policy and each common rule to programs, case by case and in batches.

Each yields a ratio, which is above 1 if the rule raises an alarm.  Computed values are compared
with exact values, computed in float64 from the same rounded inputs.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from attnproof.numeric.devices import DTYPES, name_of
from attnproof.numeric.distributions import DISTRIBUTIONS
from attnproof.numeric.implementations import DoesNotFit, Implementation
from attnproof.numeric.implementations.eager import SOFTMAX
from attnproof.numeric.profile import profile_of
from attnproof.numeric.results import POLICIES, MeasuredEvidence, as_float
from attnproof.numeric.row_selection import Replacement, TooLarge, Where
from attnproof.numeric.run import run
from attnproof.numeric.task import Task
from attnproof.numeric.torch_reading import TorchReading
from benchmarks.trials.faults import FAULTS, honest
from benchmarks.trials.statements import LONG, TOKENS, TRIALS, task_of

# The usual rules of test suites for comparing a kernel with a reference

RULES = ("assert_close", "by hand", "twice eager")
HAND = {torch.float64: 1e-8, torch.float32: 1e-5, torch.float16: 1e-3, torch.bfloat16: 1e-2}
"""Typical relative and absolute tolerances set by hand."""
DEFAULTS = {
    torch.float64: (1e-7, 1e-7),
    torch.float32: (1.3e-6, 1e-5),
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
}
"""Relative and absolute tolerance of ``torch.testing.assert_close``; a test compares them."""


@dataclass(frozen=True)
class Said:
    """The outcome of one policy or rule; ``alarm`` is None if it does not apply, ``told`` says why.

    ``ratio``: the largest error over its tolerance, or |z| over its limit.
    """

    rule: str
    alarm: bool | None
    ratio: float
    told: str = ""


def ruled(computed: Tensor, exact: Tensor, eager: Tensor) -> tuple[Said, ...]:
    """Apply every rule to computed values, exact ones, and those of eager code in the same dtype.

    * ``assert_close``: |a − b| ≤ atol + rtol |b| at the defaults of ``torch.testing``, b the
      exact value stored in the dtype;
    * ``by hand``: the same at :data:`HAND`;
    * ``twice eager``: max |a − b| ≤ 2 max |e − b| for eager code e, the rule of flash-attention's
      tests (tests/test_flash_attn.py); none in float64, which is its reference.
    """
    stored = exact.to(computed.dtype).double()
    a, e = computed.double(), eager.double()
    relative, absolute = DEFAULTS[computed.dtype]
    hand = HAND[computed.dtype]
    error, allowed = (a - exact).abs().max(), 2 * (e - exact).abs().max()
    twice = _ruled("twice eager", float(torch.where(error == 0, 0.0, error / allowed)))
    if computed.dtype == torch.float64:
        twice = Said("twice eager", None, 0.0, "its reference is float64 itself")
    return (
        _ruled("assert_close", _close(a, stored, relative, absolute)),
        _ruled("by hand", _close(a, stored, hand, hand)),
        twice,
    )


def _ruled(rule: str, ratio: float) -> Said:
    return Said(rule, not ratio <= 1, math.inf if math.isnan(ratio) else ratio)


def _close(a: Tensor, b: Tensor, relative: float, absolute: float) -> float:
    """Return the largest |a − b| over absolute + relative |b|; NaN if a has NaN."""
    error = torch.where(a == b, 0.0, (a - b).abs())
    return float((error / (absolute + relative * b.abs())).max())


# One case: a program, a dtype and inputs, with the outcome of each policy and rule

CONFIDENCE = 0.95


def upper(count: int, trials: int, confidence: float = CONFIDENCE) -> float:
    """Return the one-sided upper bound of Clopper and Pearson 1934 on a rate, from a count.

    The p at which at most this many successes have probability 1 − confidence:
    Σ_{k ≤ count} C(trials, k) pᵏ (1 − p)^(trials − k) = 1 − confidence, by bisection on the exact
    sum (its terms through lgamma); the upper end of the bracket.  Without successes it is
    1 − (1 − confidence)^(1/trials), about 3/trials.

    >>> round(upper(0, 10_000), 6), round(upper(4_200, 10_000), 4), upper(3, 3)
    (0.0003, 0.4282, 1.0)
    """
    if not 0 <= count <= trials:
        raise ValueError(f"wanted a count from 0 to {trials} in {trials} trials, got {count}")
    if count == trials:
        return 1.0
    low, high = count / trials, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if _at_most(count, trials, middle) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high


def _at_most(count: int, trials: int, p: float) -> float:
    """Return the probability of at most ``count`` successes."""
    yes, no = math.log(p) if p else -math.inf, math.log1p(-p) if p < 1 else -math.inf
    whole = math.lgamma(trials + 1)
    return math.fsum(
        math.exp(
            whole
            - math.lgamma(k + 1)
            - math.lgamma(trials - k + 1)
            + (k * yes if k else 0.0)
            + (trials - k) * no
        )
        for k in range(count + 1)
    )


EVERY_RULE = (*POLICIES, *RULES)
ALARMS = ("violated", "non-finite")


@dataclass(frozen=True)
class Case:
    """One program on one draw in one dtype.

    ``size``: the exact effect of a fault on the output over the deterministic bound, largest over
    the entries; None for correct programs.
    """

    trial: str
    implementation: str
    dtype: str
    distribution: str
    seed: int
    sizes: dict[str, int]
    said: tuple[Said, ...]
    size: float | None = None
    skipped: str = ""


def _case(trial: str, task: Task, program: Implementation, dtype: torch.dtype) -> Case:
    claim, kind = task.statement.claims[""], name_of(dtype)
    case = Case(trial, program.name, kind, task.scale.distribution.name, task.seed, task.sizes, ())
    try:
        found = run(task, "", claim, program, dtype)
    except (DoesNotFit, TooLarge) as reason:
        return replace(case, skipped=str(reason))
    exact, radius = exact_values(task, program, dtype)
    computed = values_in(task, program.replaced, dtype)
    share = largest(computed.double() - exact, radius)
    said = [
        replace(one, ratio=max(one.ratio, share) if one.alarm else share)
        if one.rule == "deterministic" and one.alarm is not None
        else one
        for one in _policies(found)
    ]
    return replace(case, said=(*said, *ruled(computed, exact, values_in(task, {}, dtype))))


def _policies(found: MeasuredEvidence) -> list[Said]:
    """Return the outcome of each policy for a measurement."""
    judged = {one.policy: one for one in found.policies}
    said = []
    for policy in POLICIES:
        if policy not in judged:
            said.append(Said(policy, None, 0.0, "the policy does not apply to this statement"))
            continue
        one = judged[policy]
        applied = None if one.status == "skipped" else one.status in ALARMS
        said.append(Said(policy, applied, as_float(one.ratio), one.told))
    return said


def largest(error: Tensor, radius: Tensor) -> float:
    """Return the largest error over its radius; infinity for NaN."""
    ratio = torch.where(error == 0, 0.0, error.abs() / radius)
    return float(ratio.nan_to_num(nan=math.inf, posinf=math.inf).max())


def selected(task: Task) -> Where:
    """Return the rows of the left side that are compared."""
    return task.rows(task.statement.claims[""].left, 0, task.scale.rows)


def exact_values(task: Task, program: Implementation, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return the exact left side at these rows, for inputs in the dtype, and its tolerance.

    In float64 the tolerance includes the error of the reference, which is also in float64.
    """
    profile = profile_of(dtype, task.device)
    left, where = task.statement.claims[""].left, selected(task)
    found = task.bound(left, where, 0, profile, program.bounds)
    radius = found.error()
    if dtype == torch.float64:
        radius = radius + task.bound(left, where, 0, profile, {}).error()
    return found.value, radius


def values_in(
    task: Task,
    replaced: Mapping[str, Replacement],
    dtype: torch.dtype,
    inputs: torch.dtype | None = None,
) -> Tensor:
    """Return the left side at these rows, computed by a program in a dtype.

    ``inputs``: another dtype to which the inputs are rounded first.
    """
    sample = task.sample(0)
    values = sample.in_dtype(inputs or dtype, task.device)
    if inputs is not None:
        values = {
            name: x.to(dtype) if isinstance(x, Tensor) and x.is_floating_point() else x
            for name, x in values.items()
        }
    reading = TorchReading(sample.sizes, values, dtype, task.device, {**SOFTMAX, **replaced})
    with torch.no_grad():
        found: Tensor = reading.read(task.statement.claims[""].left, selected(task))
    return found.cpu()


def effect(task: Task, program: Implementation, dtype: torch.dtype) -> float:
    """Return the largest exact effect of a fault over the deterministic bound.

    The faulty program is run in float64, on inputs rounded to the dtype, and compared with the
    exact values.  Above 2 the deterministic bound must detect it, since the rounding of the
    program itself may compensate one bound.
    """
    exact, radius = exact_values(task, program, dtype)
    return largest(values_in(task, program.replaced, torch.float64, dtype) - exact, radius)


# Cases in batches, each of one draw, which may run in separate processes

LONG_SEEDS = 3
"""Number of draws of slow cases."""


@dataclass(frozen=True)
class Batch:
    """One draw of a trial, with all correct programs or one planted fault, in several dtypes."""

    kind: Literal["honest", "fault"]
    name: str
    distribution: str
    seed: int
    dtypes: tuple[str, ...]
    device: str

    def cases(self) -> list[Case]:
        """Run the cases; those of a fault with its size."""
        distribution, device = DISTRIBUTIONS[self.distribution], torch.device(self.device)
        fault = FAULTS[self.name] if self.kind == "fault" else None
        trial = TRIALS[self.name if fault is None else fault.trial]
        long = fault is not None and fault.long
        tokens = LONG if long else TOKENS[self.seed % len(TOKENS)]
        task = task_of(trial, tokens, distribution, self.seed, device)
        tried = honest(trial.name, device) if fault is None else [fault.implementation]
        found = []
        for dtype in (DTYPES[name] for name in self.dtypes):
            for one in tried:
                size = None if fault is None else effect(task, one, dtype)
                found.append(replace(_case(trial.name, task, one, dtype), size=size))
        return found


def programs(device: str) -> dict[str, int]:
    """Return the number of correct programs of each trial."""
    return {name: len(honest(name, torch.device(device))) for name in TRIALS}


def honest_batches(
    cases: int, distributions: Sequence[str], dtypes: Sequence[str], device: str, seed: int
) -> list[Batch]:
    """Return draws on which the correct programs make at least ``cases`` cases.

    Each seed is used for all trials and distributions; the last seed for a random part of them.
    """
    size = {name: count * len(dtypes) for name, count in programs(device).items()}
    found: list[Batch] = []
    made = 0
    while made < cases:
        batches = [
            Batch("honest", name, distribution, seed, tuple(dtypes), device)
            for name in TRIALS
            for distribution in distributions
        ]
        random.Random(seed).shuffle(batches)
        for batch in batches:
            if made < cases:
                found.append(batch)
                made += size[batch.name]
        seed += 1
    return found


def fault_batches(
    seeds: int, distributions: Sequence[str], dtypes: Sequence[str], device: str, seed: int
) -> list[Batch]:
    """Return draws of every fault in every distribution, with this many seeds.

    Faults in one of very many keys cost a hundred times as much: they are drawn only in the first
    distribution, with few seeds.
    """
    return [
        Batch("fault", fault.name, distribution, seed + k, tuple(dtypes), device)
        for fault in FAULTS.values()
        for k in range(min(seeds, LONG_SEEDS) if fault.long else seeds)
        for distribution in (distributions[:1] if fault.long else distributions)
    ]
