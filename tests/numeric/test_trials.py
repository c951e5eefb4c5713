"""Trials: faults are faults, correct programs are quiet, and rates are what was counted."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import torch

from attnproof.numeric.distributions import DISTRIBUTIONS
from attnproof.numeric.results import POLICIES, PolicyRecord
from attnproof.numeric.run import run
from benchmarks.markdown import markdown
from benchmarks.trials import judging
from benchmarks.trials import record as recording
from benchmarks.trials.__main__ import main
from benchmarks.trials.faults import FAULTS, Fault, attend, honest
from benchmarks.trials.judging import (
    HAND,
    Batch,
    Case,
    Said,
    effect,
    fault_batches,
    honest_batches,
    ruled,
    upper,
    values_in,
)
from benchmarks.trials.record import (
    Asked,
    TrialsRecord,
    alarms_grid,
    document,
    faults_grid,
    grids,
    run_trials,
)
from benchmarks.trials.statements import TRIALS, task_of
from tests.cases import each
from tests.numeric.statements import CPU

SMALL = (96, 80)
SHOWN_BY = {"no maximum subtracted": "large"}  # the others show in the normal distribution
ROUNDED = {"transformers Llama rotary embedding": 1e-3}  # angles in float32
CAUGHT = ["one key dropped", "mask j ≤ i + 1", "query position + 1", "order of repeated heads"]


def drawn(trial: str, distribution: str = "normal", seed: int = 0) -> Any:
    return task_of(TRIALS[trial], SMALL, DISTRIBUTIONS[distribution], seed, CPU)


def alarms(case: Case) -> list[str]:
    return [one.rule for one in case.said if one.alarm and one.rule in POLICIES]


@each([name for name, fault in FAULTS.items() if not fault.long])
def test_a_fault_changes_what_is_computed(name: str) -> None:
    fault = FAULTS[name]
    distribution, program = SHOWN_BY.get(name, "normal"), fault.implementation
    assert any(
        effect(drawn(fault.trial, distribution, seed), program, torch.float64) > 1e3
        for seed in range(3)
    )


def test_what_is_no_fault_has_no_effect() -> None:
    none = Fault("none", "attention", "attention", attend)
    assert effect(drawn("attention"), none.implementation, torch.float64) <= 1


@pytest.mark.parametrize("name", CAUGHT)
def test_faults_are_caught(name: str) -> None:
    for case in Batch("fault", name, "normal", 0, ("float32",), "cpu").cases():
        assert "deterministic" in alarms(case)
        assert case.size is not None
        assert case.size > 2


@pytest.mark.parametrize("trial", TRIALS)
def test_correct_programs_are_quiet(trial: str) -> None:
    dtype = "bfloat16" if trial == "attention" else "float32"
    for case in Batch("honest", trial, "normal", 0, (dtype,), "cpu").cases():
        assert not alarms(case), case
        assert not case.skipped


def test_correct_programs_compute_the_same() -> None:
    for trial in TRIALS:
        task = drawn(trial)
        eager = values_in(task, {}, torch.float64)
        for one in honest(trial, CPU):
            found = values_in(task, one.replaced, torch.float64)
            room = ROUNDED.get(one.name.partition(",")[0], 1e-12)
            assert float((found - eager).abs().max()) < room, one.name


def test_a_policy_that_always_alarms_shows_a_hundred_percent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    genuine = run

    def always(*asked: Any) -> Any:
        refused = PolicyRecord("residual", "violated", 2.0, "always")
        return replace(genuine(*asked), policies=(refused,))

    monkeypatch.setattr(judging, "run", always)
    record = run_trials(Asked(1, 0, ("float32",), ("normal",), "cpu", 0, 1, "trials"))
    (row,) = (row for row in alarms_grid(record).rows if row[0] == "residual")
    assert row[1].startswith("100 %")
    (rate,) = (one for one in record.rates if (one.rule, one.dtype) == ("residual", ""))
    assert rate.alarms == rate.cases == record.cases > 1
    assert not record.ok
    first = record.alarms[0]
    assert first.told == "always"
    assert f"--seed {first.seed} --distribution normal --dtype float32" in first.again


def test_the_tables_say_what_was_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def counted(batch: Batch) -> list[Case]:
        """The residual test alarms for one dtype of two; of faults in every other seed."""
        seen = batch.kind == "fault" and batch.seed % 2 == 0
        return [
            Case(
                "attention",
                "some",
                dtype,
                batch.distribution,
                batch.seed,
                {"n": 4},
                (Said("residual", seen or (batch.kind == "honest" and dtype == "float32"), 3.0),),
                size=5.0 if batch.kind == "fault" else None,
            )
            for dtype in batch.dtypes
        ]

    monkeypatch.setattr(Batch, "cases", counted)
    asked = Asked(1, 4, ("float32", "float16"), ("normal",), "cpu", 0, 1, "benchmarks.trials ..")
    record = run_trials(asked)
    rates = {one.dtype: one for one in record.rates if one.rule == "residual"}
    assert (rates["float32"].alarms, rates["float16"].alarms) == (rates["float32"].cases, 0)
    assert rates[""].alarms * 2 == rates[""].cases == record.cases
    assert rates[""].by_distribution == {"normal": rates[""].alarms}
    faults = [f for f in record.faults if f.fault == "one key dropped"]
    assert [(f.above, f.missed) for f in faults] == [(4, 2), (4, 2)]
    column = faults_grid(record).columns.index("residual")
    assert {row[column] for row in faults_grid(record).rows} == {"2/4", "2/3"}
    assert not record.ok
    text = markdown(document(record))
    for grid in grids(record):
        for row in grid.rows:
            assert f"| {' | '.join(row)} |" in text
    assert "benchmarks.trials .." in text


def test_as_many_correct_programs_are_tried_as_asked_for() -> None:
    batches = honest_batches(300, ["normal", "large"], ["float32"], "cpu", 5)
    made = [len(honest(batch.name, CPU)) for batch in batches]
    assert sum(made) >= 300 > sum(made[:-1])
    assert len(set(batches)) == len(batches)
    faults = fault_batches(3, ["normal"], ["float32"], "cpu", 7)
    assert {batch.seed for batch in faults} == {7, 8, 9}


@pytest.mark.parametrize("dtype", HAND)
def test_the_rule_of_torch_is_that_of_torch(dtype: torch.dtype) -> None:
    exact = torch.linspace(-2, 2, 257, dtype=torch.float64)
    for size in (0.3, 0.9, 1.1, 3.0):
        room = torch.testing._comparison.default_tolerances(dtype)
        off = (exact.to(dtype).double() * (1 + size * room[0])).to(dtype)
        said = ruled(off, exact, exact.to(dtype))[0]
        try:
            torch.testing.assert_close(off, exact.to(dtype))
            assert not said.alarm
        except AssertionError:
            assert said.alarm


def test_what_is_no_number_is_refused_by_every_rule() -> None:
    exact = torch.ones(3, dtype=torch.float64)
    broken = torch.tensor([1.0, math.nan, 1.0])
    assert all(one.alarm for one in ruled(broken, exact, exact.float()))
    assert not any(one.alarm for one in ruled(exact.float(), exact, exact.float()))


@pytest.mark.parametrize(("count", "trials"), [(0, 3_000), (1, 50), (7, 12), (30, 400)])
def test_the_confidence_bound_is_where_so_few_are_rare(count: int, trials: int) -> None:
    p = upper(count, trials)
    exact = Fraction(p)
    few = sum(
        math.comb(trials, k) * exact**k * (1 - exact) ** (trials - k) for k in range(count + 1)
    )
    assert float(few) == pytest.approx(0.05, rel=1e-6)
    assert count / trials < p < 1


FEW = [
    "--cases",
    "1",
    "--fault-seeds",
    "0",
    "--distribution",
    "normal",
    "--dtype",
    "float32",
    "--jobs",
    "1",
]


def test_both_tables_are_printed_and_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ["--json", str(tmp_path / "t.json"), "--markdown", str(tmp_path / "t.md")]
    assert main([*FEW, *files]) == 0
    told = capsys.readouterr().out
    assert "correct programs" in told
    assert "Planted faults" in told
    record = TrialsRecord.model_validate_json((tmp_path / "t.json").read_text(encoding="utf-8"))
    assert record.dtypes == ("float32",)
    assert record.cases > 1
    text = (tmp_path / "t.md").read_text(encoding="utf-8")
    assert record.command in text
    assert record.machine.torch in text
    again = tmp_path / "again.json"
    assert main([*record.command.split()[3:], "--json", str(again)]) == 0
    other = TrialsRecord.model_validate_json(again.read_text(encoding="utf-8"))
    assert (other.rates, other.command) == (record.rates, record.command)


def test_a_policy_that_refuses_correct_programs_fails_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(recording, "AIM", -1.0)
    assert main(FEW) == 1
    assert "aim" in capsys.readouterr().out
