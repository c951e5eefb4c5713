"""One case: a program, a dtype, inputs; what each policy and each usual rule says of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..designs import Design
from ..implementations import DoesNotFit, Implementation
from ..implementations.eager import SOFTMAX
from ..measurement import POLICIES, Measurement
from ..profile import profile_of
from ..run import run
from ..task import Task
from ..torch_reading import TorchReading
from ..walk import Replacement, TooLarge, Where
from .faults import Fault
from .honest import honest
from .rules import RULES, ruled
from .statements import LONG, TOKENS, TRIALS, task_of

__all__ = ["CONFIDENCE", "EVERY_RULE", "Case", "Said", "fault_cases", "honest_cases", "upper"]


CONFIDENCE = 0.95


def upper(count: int, trials: int, confidence: float = CONFIDENCE) -> float:
    """The one-sided upper bound of Clopper and Pearson 1934 on a rate, count of trials seen.

    The p at which so few successes have probability 1 − confidence:
    Σ_{k ≤ count} C(trials, k) pᵏ (1 − p)^(trials − k) = 1 − confidence, by bisection on the exact
    sum (its terms through lgamma); the upper end of the bracket.  Without successes it is
    1 − (1 − confidence)^(1/trials), about 3/trials.

    >>> round(upper(0, 10_000), 6), round(upper(4_200, 10_000), 4), upper(3, 3)
    (0.0003, 0.4282, 1.0)
    """
    if not 0 <= count <= trials:
        raise ValueError(f"a count of 0 to {trials} was wanted, of {trials} trials; got {count}")
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
    """The probability of at most so many successes."""
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
class Said:
    """What one policy or rule says: ``alarm`` is None where it was not applied, ``told`` why.

    ``ratio`` is its largest error over its tolerance, or |z| over its limit.
    """

    rule: str
    alarm: bool | None
    ratio: float
    told: str = ""


@dataclass(frozen=True)
class Case:
    """One program on one draw in one dtype.

    ``size`` is that of a fault: its exact effect on the output over the deterministic bound,
    largest over the entries; None for honest programs.
    """

    trial: str
    implementation: str
    dtype: str
    design: str
    seed: int
    sizes: dict[str, int]
    said: tuple[Said, ...]
    size: float | None = None
    skipped: str = ""


def honest_cases(
    trial: str, design: Design, seed: int, dtypes: Sequence[torch.dtype], device: torch.device
) -> list[Case]:
    """Every correct program for a trial on one draw, in every dtype."""
    task = task_of(TRIALS[trial], TOKENS[seed % len(TOKENS)], design, seed, device)
    programs = honest(trial, device)
    return [_case(trial, task, one, dtype) for dtype in dtypes for one in programs]


def fault_cases(
    fault: Fault, design: Design, seed: int, dtypes: Sequence[torch.dtype], device: torch.device
) -> list[Case]:
    """A planted fault on one draw, in every dtype, with its size."""
    trial = TRIALS[fault.trial]
    tokens = LONG if fault.long else TOKENS[seed % len(TOKENS)]
    task = task_of(trial, tokens, design, seed, device)
    program = fault.implementation
    return [
        replace(_case(trial.name, task, program, dtype), size=effect(task, program, dtype))
        for dtype in dtypes
    ]


def _case(trial: str, task: Task, program: Implementation, dtype: torch.dtype) -> Case:
    claim, kind = task.statement.claims[""], str(dtype).removeprefix("torch.")
    case = Case(trial, program.name, kind, task.scale.design.name, task.seed, task.sizes, ())
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
    rules = ruled(computed, exact, values_in(task, {}, dtype))
    said += [Said(one.rule, one.alarm, one.ratio, one.why) for one in rules]
    return replace(case, said=tuple(said))


def _policies(found: Measurement) -> list[Said]:
    """What each policy says of a measurement."""
    judged = {one.policy: one for one in found.judged}
    said = []
    for policy in POLICIES:
        if policy not in judged:
            said.append(Said(policy, None, 0.0, "the policy does not speak of this statement"))
            continue
        one = judged[policy]
        applied = None if one.status == "skipped" else one.status in ALARMS
        said.append(Said(policy, applied, one.ratio, one.told))
    return said


def largest(error: Tensor, radius: Tensor) -> float:
    """The largest error over its radius; where it is no number, infinite."""
    ratio = torch.where(error == 0, 0.0, error.abs() / radius)
    return float(ratio.nan_to_num(nan=math.inf, posinf=math.inf).max())


def selected(task: Task) -> Where:
    """The rows of the left side that are compared."""
    return task.rows(task.statement.claims[""].left, 0, task.scale.rows)


def exact_values(task: Task, program: Implementation, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """The exact left side at these rows, from inputs rounded to the dtype, and its tolerance.

    In float64 the tolerance holds the errors of the reference as well, which is in float64.
    """
    profile = profile_of(dtype, task.device, str(dtype).removeprefix("torch."))
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
    """The left side at these rows as a program computes it in a dtype.

    ``inputs`` is the dtype that the inputs are rounded to before, where it is another.
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
    """What a fault does exactly, over the deterministic bound: the largest entry.

    The faulty program in float64, on inputs rounded to the dtype, against the exact values.
    Above 2 the deterministic bound must see it: the program's own rounding may hide one bound.
    """
    exact, radius = exact_values(task, program, dtype)
    return largest(values_in(task, program.replaced, torch.float64, dtype) - exact, radius)
