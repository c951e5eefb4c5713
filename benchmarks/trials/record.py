"""Records of trials: alarms of each policy on correct programs, and the faults it catches."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from time import perf_counter

import torch
from pydantic import AwareDatetime, Field

from attnproof import __version__
from attnproof.documents.document import Grid
from attnproof.documents.evidence import Record
from attnproof.numeric.results import POLICIES, Number
from attnproof.theorem_runs.records import Machine
from benchmarks.markdown import items
from benchmarks.trials.judging import (
    CONFIDENCE,
    EVERY_RULE,
    Batch,
    Case,
    Said,
    fault_batches,
    honest_batches,
    programs,
    upper,
)

AIM = 1e-3
"""The fraction of correct programs that a policy may refuse."""


class RateRecord(Record):
    """The rate at which one policy or rule refuses correct programs."""

    rule: str
    policy: bool = Field(description="One of attnproof's policies; else a usual rule.")
    dtype: str = Field(description="Empty for all together.")
    cases: int = Field(ge=0, description="Cases that it was applied to.")
    alarms: int = Field(ge=0)
    upper: float = Field(
        ge=0, le=1, description="Clopper and Pearson's one-sided upper confidence bound."
    )
    by_distribution: dict[str, int] = Field(
        description="Alarms in each input distribution that has any."
    )


class AlarmRecord(Record):
    """A correct program refused by one of attnproof's policies, and a command to reproduce it."""

    trial: str
    implementation: str
    dtype: str
    distribution: str
    seed: int
    sizes: dict[str, int]
    policy: str
    ratio: Number
    told: str
    again: str = Field(description="The command that shows it again, among others of its kind.")


class LeftOutRecord(Record):
    """Cases in which a policy did not apply, or the program could not be run."""

    rule: str = Field(description="Empty where the program was not run.")
    why: str
    cases: int = Field(ge=1)


class CaughtRecord(Record):
    """The outcome of one policy or rule for a fault; a seed counts if any distribution shows it."""

    rule: str
    policy: bool
    seeds: int = Field(ge=0, description="Seeds in which it was applied, in some distribution.")
    caught: int = Field(ge=0)
    least: Number | None = Field(
        description="Over the seeds the smallest of the largest ratios over distributions: error "
        "over "
        "tolerance, or |z| over its limit. Null if it was never applied."
    )
    distribution: str = Field(
        description="The distribution in which its smallest ratio is largest."
    )


class FaultRecord(Record):
    """One planted fault in one dtype."""

    fault: str
    trial: str
    dtype: str
    size: Number = Field(
        description="Its exact effect over the deterministic bound at the worst entry: the largest "
        "over distributions, the smallest over seeds."
    )
    above: int = Field(ge=0, description="Cases in which that is above 1.")
    missed: int = Field(ge=0, description="Of those, the cases that no policy caught.")
    rules: tuple[CaughtRecord, ...]


class TrialsRecord(Record):
    """One run of the trials."""

    attnproof: str
    created: AwareDatetime
    seconds: float = Field(ge=0)
    command: str
    machine: Machine
    device: str
    seed: int
    fault_seeds: int
    distributions: tuple[str, ...]
    dtypes: tuple[str, ...]
    confidence: float
    cases: int = Field(ge=0, description="Correct programs that were run.")
    fault_cases: int = Field(ge=0, description="Wrong programs that were run.")
    rates: tuple[RateRecord, ...]
    alarms: tuple[AlarmRecord, ...] = Field(description="The first of them, at most a hundred.")
    left_out: tuple[LeftOutRecord, ...]
    faults: tuple[FaultRecord, ...]
    unfinished: int = Field(ge=0, description="Draws that an interrupted run did not reach.")

    @property
    def ok(self) -> bool:
        """Whether no policy refuses too many, and every fault above the bound is caught."""
        rates = [one for one in self.rates if one.policy and not one.dtype and one.cases]
        few = all(one.alarms <= AIM * one.cases for one in rates)
        return few and not self.unfinished and not any(fault.missed for fault in self.faults)


KEPT_ALARMS = 100
Tell = Callable[[Batch, list[Case]], None]


@dataclass(frozen=True)
class Asked:
    """The requested trials; ``command``: the command line of the request."""

    cases: int
    fault_seeds: int
    dtypes: tuple[str, ...]
    distributions: tuple[str, ...]
    device: str
    seed: int
    jobs: int
    command: str

    def batches(self) -> list[Batch]:
        """Return all draws: of correct programs, then of faults."""
        how = (self.distributions, self.dtypes, self.device, self.seed)
        return honest_batches(self.cases, *how) + fault_batches(self.fault_seeds, *how)


def run_trials(asked: Asked, tell: Tell | None = None) -> TrialsRecord:
    """Run the trials; after an interrupt (Ctrl-C) the record has the finished part."""
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
    return TrialsRecord(
        attnproof=__version__,
        created=datetime.now(UTC),
        seconds=perf_counter() - started,
        command=asked.command,
        machine=Machine.here(),
        device=asked.device,
        seed=asked.seed,
        fault_seeds=asked.fault_seeds,
        distributions=asked.distributions,
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
    """Yield the cases of each batch, in order."""
    if jobs == 1:
        for batch in batches:
            yield batch.cases()
        return
    from joblib import Parallel, delayed

    work = (delayed(_in_worker)(batch) for batch in batches)
    yield from Parallel(n_jobs=jobs, return_as="generator")(work)


def _in_worker(batch: Batch) -> list[Case]:
    torch.set_num_threads(1)
    return batch.cases()


def _rates(cases: Sequence[Case], dtypes: Sequence[str]) -> Iterator[RateRecord]:
    for rule in EVERY_RULE:
        for dtype in (*dtypes, ""):
            said = [
                (case, one)
                for case in cases
                if not dtype or case.dtype == dtype
                for one in case.said
                if one.rule == rule and one.alarm is not None
            ]
            alarms = Counter(case.distribution for case, one in said if one.alarm)
            yield RateRecord(
                rule=rule,
                policy=rule in POLICIES,
                dtype=dtype,
                cases=len(said),
                alarms=alarms.total(),
                upper=upper(alarms.total(), len(said)),
                by_distribution=dict(alarms),
            )


def _alarms(cases: Sequence[Case], device: str) -> Iterator[AlarmRecord]:
    every = sum(programs(device).values())
    for case in cases:
        for one in case.said:
            if one.alarm and one.rule in POLICIES:
                yield AlarmRecord(
                    trial=case.trial,
                    implementation=case.implementation,
                    dtype=case.dtype,
                    distribution=case.distribution,
                    seed=case.seed,
                    sizes=case.sizes,
                    policy=one.rule,
                    ratio=_number(one.ratio),
                    told=one.told,
                    again=f"python -m benchmarks.trials --cases {every} --fault-seeds 0 "
                    f"--seed {case.seed} --distribution {case.distribution} --dtype {case.dtype} "
                    f"--device {device}",
                )


def _left_out(cases: Sequence[Case]) -> Iterator[LeftOutRecord]:
    reasons = Counter(("", case.skipped) for case in cases if case.skipped)
    reasons += Counter(
        (one.rule, one.told) for case in cases for one in case.said if one.alarm is None
    )
    for (rule, why), count in sorted(reasons.items()):
        yield LeftOutRecord(rule=rule, why=why, cases=count)


def _faults(cases: Sequence[tuple[str, Case]]) -> Iterator[FaultRecord]:
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
            case
            for case in above
            if not any(one.alarm for one in case.said if one.rule in POLICIES)
        ]
        yield FaultRecord(
            fault=name,
            trial=found[0].trial,
            dtype=dtype,
            size=_number(min(sizes.values())),
            above=len(above),
            missed=len(missed),
            rules=tuple(_caught(rule, found, policy=rule in POLICIES) for rule in EVERY_RULE),
        )


def _caught(rule: str, cases: Sequence[Case], *, policy: bool) -> CaughtRecord:
    """Summarise one rule on one fault in one dtype, over seeds and distributions."""
    seeds: dict[int, list[Said]] = defaultdict(list)
    distributions: dict[str, list[float]] = defaultdict(list)
    for case in cases:
        for one in case.said:
            if one.rule == rule and one.alarm is not None:
                seeds[case.seed].append(one)
                distributions[case.distribution].append(one.ratio)
    least = min((max(one.ratio for one in said) for said in seeds.values()), default=None)
    return CaughtRecord(
        rule=rule,
        policy=policy,
        seeds=len(seeds),
        caught=sum(any(one.alarm for one in said) for said in seeds.values()),
        least=None if least is None else _number(least),
        distribution=max(distributions, key=lambda name: min(distributions[name]), default=""),
    )


def _number(x: float) -> Number:
    return x if math.isfinite(x) else "non-finite"


NOTHING = "–"
BRACKETS = (
    "Share of alarms; in brackets the upper {:.0%} confidence bound of Clopper and Pearson, as if "
    "cases were independent (the cases of one draw share it)."
)
WHOSE = (
    "deterministic, probabilistic, residual and bitwise are attnproof's policies; assert_close is "
    "torch.testing's defaults, by hand 1e-8, 1e-5, 1e-2 and 1e-3 in float64, float32, bfloat16 and "
    "float16, twice eager the rule of flash-attention's tests."
)
EFFECT = (
    "effect: the exact effect of the fault divided by the deterministic bound, at the worst entry; "
    "largest over distributions, smallest over seeds."
)
LEAST = (
    "least ratio: for the policy that sees most, the smallest ratio over seeds of error to bound, "
    "or of |z| to its limit, and the distribution that shows it best."
)


def grids(record: TrialsRecord) -> tuple[Grid, ...]:
    """Return both tables."""
    return alarms_grid(record), faults_grid(record)


def alarms_grid(record: TrialsRecord) -> Grid:
    """Return the rates of refused correct programs: a row per rule, a column per dtype."""
    by = {(one.rule, one.dtype): one for one in record.rates}
    rules = dict.fromkeys(one.rule for one in record.rates)
    rows = tuple(
        (rule, *(_rate(by[rule, dtype]) for dtype in (*record.dtypes, "")), _worst(by[rule, ""]))
        for rule in rules
    )
    return Grid(
        f"Alarms on {record.cases:,} correct programs",
        ("rule", *record.dtypes, "all", "cases", "alarms by distribution"),
        tuple((*row[:-1], f"{by[row[0], ''].cases:,}", row[-1]) for row in rows),
        (BRACKETS.format(record.confidence), WHOSE),
    )


def faults_grid(record: TrialsRecord) -> Grid:
    """Return the number of seeds in which rules catch faults: a row per fault and dtype."""
    rules = [one.rule for one in record.faults[0].rules] if record.faults else []
    spoken = [rule for k, rule in enumerate(rules) if any(f.rules[k].seeds for f in record.faults)]
    rows, before = [], ""
    for fault in record.faults:
        said = {one.rule: one for one in fault.rules}
        name = fault.fault if fault.fault != before else ""
        best = _strongest(fault)
        rows.append(
            (
                name,
                fault.dtype,
                _short(fault.size),
                *(_seeds(said[rule]) for rule in spoken),
                *(
                    (f"{_short(best.least)} {best.rule}", best.distribution)
                    if best
                    else (NOTHING, NOTHING)
                ),
            )
        )
        before = fault.fault
    return Grid(
        f"Planted faults, {record.fault_cases:,} cases",
        ("fault", "dtype", "effect", *spoken, "least ratio", "in"),
        tuple(rows),
        (
            f"Seeds of {record.fault_seeds} in which some distribution shows the fault.",
            f"{EFFECT} {_above(record)}",
            LEAST,
        ),
    )


def _above(record: TrialsRecord) -> str:
    above, missed = (sum(getattr(f, name) for f in record.faults) for name in ("above", "missed"))
    return f"Of {above:,} cases above the bound the policies miss {missed:,}."


def _strongest(fault: FaultRecord) -> CaughtRecord | None:
    """Return the policy that catches it in most seeds; among equals, with the largest ratio."""
    spoken = [one for one in fault.rules if one.policy and one.least is not None]
    return max(spoken, key=lambda one: (one.caught, _size(one.least)), default=None)


def _size(x: float | str | None) -> float:
    return float("inf") if isinstance(x, str) else (x or 0.0)


def _seeds(one: CaughtRecord) -> str:
    return f"{one.caught}/{one.seeds}" if one.seeds else NOTHING


def _rate(one: RateRecord) -> str:
    if not one.cases:
        return NOTHING
    return f"{_share(one.alarms / one.cases)} (≤ {_share(one.upper)})"


def _share(x: float) -> str:
    """Return a fraction in percent, with two significant digits.

    >>> _share(0.0), _share(0.000299), _share(0.4913), _share(1.0)
    ('0 %', '0.03 %', '49 %', '100 %')
    """
    return f"{100 * x:.2g} %" if x < 0.995 else "100 %"


def _worst(one: RateRecord) -> str:
    most = sorted(one.by_distribution.items(), key=lambda pair: -pair[1])
    return ", ".join(f"{name} {count:,}" for name, count in most[:3]) or NOTHING


def _short(x: float | str | None) -> str:
    """Return a number with two significant digits."""
    if x is None:
        return NOTHING
    return "∞" if isinstance(x, str) else f"{x:.2g}"


def summary(record: TrialsRecord) -> str:
    """Return a summary in one or two lines."""
    rates = [one for one in record.rates if one.policy and not one.dtype and one.cases]
    alarms = ", ".join(f"{one.rule} {one.alarms}" for one in rates)
    text = f"alarms on {record.cases:,} correct programs (aim: below {_share(AIM)}): {alarms}; "
    text += _above(record)[0].lower() + _above(record)[1:]
    return text + (f" {record.unfinished} draws were not reached." if record.unfinished else "")


def document(record: TrialsRecord) -> Iterator[str | Grid]:
    """Yield the parts of a page: both tables, the command, the machine and the alarms."""
    machine = record.machine
    yield "# Trials of the policies"
    yield (
        "Correct programs must raise no alarm; planted faults must. Both tables are written by\n"
        "one command:"
    )
    yield f"```sh\n{record.command}\n```"
    yield (
        f"{record.created:%Y-%m-%d}, attnproof {record.attnproof}, torch {machine.torch}, Python "
        f"{machine.python}, {machine.platform}, {machine.processors} processors, device "
        f"{record.device}, seed {record.seed}; {record.seconds:.0f} s."
    )
    yield f"In all: {summary(record)}"
    yield from grids(record)
    if record.alarms:
        yield "## Alarms of the policies"
        yield items(
            f"{a.policy}: {a.implementation}, {a.trial}, {a.dtype}, {a.distribution}, "
            f"seed {a.seed}: "
            f"ratio {_short(a.ratio)}, {a.told}; again: `{a.again}`"
            for a in record.alarms
        )
    left = [one for one in record.left_out if one.rule != "twice eager"]
    if left:
        yield "## Where a policy said nothing"
        yield items(f"{one.rule or 'not run'}: {one.why} ({one.cases:,} cases)" for one in left)
