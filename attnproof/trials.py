"""Running trials: batches in processes, and what their cases add up to."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from time import perf_counter
from typing import TYPE_CHECKING

from . import __version__
from .evidence import Number
from .machine import machine
from .trial_records import (
    AlarmRecord,
    CaughtRecord,
    FaultRecord,
    LeftOutRecord,
    RateRecord,
    TrialsRecord,
)  # fmt: skip

if TYPE_CHECKING:
    from .numeric.trials.judging import Batch, Case, Said

__all__ = ["Asked", "run_trials"]

KEPT_ALARMS = 100
Tell = Callable[["Batch", list["Case"]], None]


@dataclass(frozen=True)
class Asked:
    """What trials are asked for; ``command`` is the line that asks for them."""

    cases: int
    fault_seeds: int
    dtypes: tuple[str, ...]
    designs: tuple[str, ...]
    device: str
    seed: int
    jobs: int
    command: str

    def batches(self) -> list[Batch]:
        """All draws: of correct programs, then of faults."""
        from .numeric.trials.judging import fault_batches, honest_batches

        how = (self.designs, self.dtypes, self.device, self.seed)
        return honest_batches(self.cases, *how) + fault_batches(self.fault_seeds, *how)


def run_trials(asked: Asked, tell: Tell | None = None) -> TrialsRecord:
    """Run them; an interrupt (Ctrl-C) ends it early, and what was finished is in the record."""
    started = perf_counter()
    batches = asked.batches()
    honest: list[Case] = []
    faulty: list[tuple[str, Case]] = []
    done = 0
    try:
        for batch, cases in zip(batches, _tried(batches, asked.jobs), strict=True):
            if batch.kind == "honest":
                honest += cases
            else:
                faulty += [(batch.name, case) for case in cases]
            done += 1
            if tell is not None:
                tell(batch, cases)
    except KeyboardInterrupt:
        pass
    from .numeric.trials.judging import CONFIDENCE

    return TrialsRecord(
        attnproof=__version__,
        created=datetime.now(UTC),
        seconds=perf_counter() - started,
        command=asked.command,
        machine=machine(numeric=True),
        device=asked.device,
        seed=asked.seed,
        fault_seeds=asked.fault_seeds,
        designs=asked.designs,
        dtypes=asked.dtypes,
        confidence=CONFIDENCE,
        cases=sum(not case.skipped for case in honest),
        fault_cases=sum(not case.skipped for _, case in faulty),
        rates=tuple(_rates(honest, asked.dtypes)),
        alarms=tuple(_alarms(honest, asked.device))[:KEPT_ALARMS],
        left_out=tuple(_left_out([*honest, *(case for _, case in faulty)])),
        faults=tuple(_faults(faulty)),
        unfinished=len(batches) - done,
    )


def _tried(batches: Sequence[Batch], jobs: int) -> Iterator[list[Case]]:
    """The cases of each batch, in order, as they come."""
    if jobs == 1:
        for batch in batches:
            yield batch.cases()
        return
    from joblib import Parallel, delayed

    work = (delayed(_in_worker)(batch) for batch in batches)
    yield from Parallel(n_jobs=jobs, return_as="generator")(work)


def _in_worker(batch: Batch) -> list[Case]:
    import torch

    torch.set_num_threads(1)
    return batch.cases()


def _rates(cases: Sequence[Case], dtypes: Sequence[str]) -> Iterator[RateRecord]:
    from .numeric.measurement import POLICIES
    from .numeric.trials.judging import EVERY_RULE, upper

    for rule in EVERY_RULE:
        for dtype in (*dtypes, ""):
            said = [
                (case, one)
                for case in cases if not dtype or case.dtype == dtype
                for one in case.said if one.rule == rule and one.alarm is not None
            ]  # fmt: skip
            alarms = Counter(case.design for case, one in said if one.alarm)
            yield RateRecord(
                rule=rule, policy=rule in POLICIES, dtype=dtype, cases=len(said),
                alarms=alarms.total(), upper=upper(alarms.total(), len(said)),
                by_design=dict(alarms),
            )  # fmt: skip


def _alarms(cases: Sequence[Case], device: str) -> Iterator[AlarmRecord]:
    from .numeric.measurement import POLICIES
    from .numeric.trials.judging import programs

    every = sum(programs(device).values())
    for case in cases:
        for one in case.said:
            if one.alarm and one.rule in POLICIES:
                yield AlarmRecord(
                    trial=case.trial, implementation=case.implementation, dtype=case.dtype,
                    design=case.design, seed=case.seed, sizes=case.sizes, policy=one.rule,
                    ratio=_number(one.ratio), told=one.told,
                    again=f"attnproof trials --cases {every} --fault-seeds 0 --seed {case.seed} "
                    f"--design {case.design} --dtype {case.dtype} --device {device}",
                )  # fmt: skip


def _left_out(cases: Sequence[Case]) -> Iterator[LeftOutRecord]:
    reasons = Counter(("", case.skipped) for case in cases if case.skipped)
    reasons += Counter(
        (one.rule, one.told) for case in cases for one in case.said if one.alarm is None
    )
    for (rule, why), count in sorted(reasons.items()):
        yield LeftOutRecord(rule=rule, why=why, cases=count)


def _faults(cases: Sequence[tuple[str, Case]]) -> Iterator[FaultRecord]:
    from .numeric.measurement import POLICIES
    from .numeric.trials.judging import EVERY_RULE

    grouped: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for name, case in cases:
        if not case.skipped:
            grouped[name, case.dtype].append(case)
    for (name, dtype), found in grouped.items():
        sizes: dict[int, float] = defaultdict(float)
        for case in found:
            sizes[case.seed] = max(sizes[case.seed], case.size or 0.0)
        above = [case for case in found if (case.size or 0.0) > 1]
        missed = [
            case for case in above
            if not any(one.alarm for one in case.said if one.rule in POLICIES)
        ]  # fmt: skip
        yield FaultRecord(
            fault=name, trial=found[0].trial, dtype=dtype, size=_number(min(sizes.values())),
            above=len(above), missed=len(missed),
            rules=tuple(_caught(rule, found, policy=rule in POLICIES) for rule in EVERY_RULE),
        )  # fmt: skip


def _caught(rule: str, cases: Sequence[Case], *, policy: bool) -> CaughtRecord:
    """One rule on one fault in one dtype, over seeds and designs."""
    seeds: dict[int, list[Said]] = defaultdict(list)
    designs: dict[str, list[float]] = defaultdict(list)
    for case in cases:
        for one in case.said:
            if one.rule == rule and one.alarm is not None:
                seeds[case.seed].append(one)
                designs[case.design].append(one.ratio)
    least = min((max(one.ratio for one in said) for said in seeds.values()), default=None)
    return CaughtRecord(
        rule=rule, policy=policy, seeds=len(seeds),
        caught=sum(any(one.alarm for one in said) for said in seeds.values()),
        least=None if least is None else _number(least),
        design=max(designs, key=lambda name: min(designs[name]), default=""),
    )  # fmt: skip


def _number(x: float) -> Number:
    return x if math.isfinite(x) else "non-finite"
