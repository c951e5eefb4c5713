"""Sweeps: every cell is measured once, and how it ended is told."""

from __future__ import annotations

import json
import os
import platform
import signal
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from attnproof import cli
from attnproof.numeric.check import measure
from attnproof.numeric.results import MeasuredEvidence, PolicyRecord
from attnproof.sweeping.cells import MAX_BATCH, Cell, Grid, Measure, Shared, batches, scaled
from attnproof.sweeping.records import SweepRecord, sweep_summary
from attnproof.sweeping.sweep import Engine, SweepRequest, planned, sweep
from attnproof.symbolic.statement import Statement
from attnproof.theorem_runs.catalogue import load_catalogue
from attnproof.theorem_runs.limits import OutOfTime, limited_memory, limited_time, spent_memory
from attnproof.theorem_runs.store import Store
from tests.front.outputs import begun, conforms, python
from tests.front.swept import ATTENTION, SOFTMAX, asked, held, plan_of


def test_a_sweep_is_a_product_of_what_serves_the_statement() -> None:
    grid = Grid(
        ("float64", "float32"),
        ("small", "default"),
        (None, 64),
        ("normal", "needle"),
        tuple(range(3)),
        ("cpu",),
    )
    plan = plan_of(SweepRequest(grid), SOFTMAX, ATTENTION)
    assert len({key for _, key in plan.cells}) == len(plan.cells)
    names = {cell.claimed.name: set[str]() for cell, _ in plan.cells}
    for cell, _ in plan.cells:
        names[cell.claimed.name].add(cell.implementation)
    assert names[SOFTMAX] == {"eager"}
    assert "scaled_dot_product_attention (math)" in names[ATTENTION]
    assert len(plan.cells) == 2 * 2 * 2 * 2 * 3 * sum(map(len, names.values()))


def test_controls_and_what_is_ill_typed() -> None:
    entries = [e for e in load_catalogue().entries if e.theorem.expected == "ill-typed"][:1]
    plan = planned([*load_catalogue().only(SOFTMAX).entries, *entries], asked(0, controls=True))
    assert {(cell.claimed.control, cell.claimed.expected) for cell, _ in plan.cells} == {
        (False, "proved"),
        (True, "refuted"),
        (True, "proved"),
    }
    (told,) = plan.unusable
    assert (told.theorem, told.broken) == (entries[0].id, False)


def test_batches_are_whole_groups_of_one_statement() -> None:
    plan = plan_of(asked(*range(40)), SOFTMAX, ATTENTION)
    found = batches(plan.cells, 2)
    assert [pair for batch in found for pair in batch.cells] == plan.cells
    assert len(found) > 8
    homes: dict[object, set[int]] = {}
    for number, batch in enumerate(found):
        assert len({cell.claimed for cell, _ in batch.cells}) == 1
        assert len(batch.cells) <= MAX_BATCH
        for cell, _ in batch.cells:
            homes.setdefault(cell.group, set()).add(number)
    assert all(len(numbers) == 1 for numbers in homes.values())


@pytest.mark.parametrize(("name", "scale"), [(ATTENTION, "small"), (SOFTMAX, "default")])
def test_a_shared_cell_is_what_measure_finds_by_itself(name: str, scale: str) -> None:
    grid = Grid(("float32", "float64"), (scale,), distributions=("needle",), seeds=(3,))
    plan = plan_of(SweepRequest(grid), name)
    (entry,) = load_catalogue().only(name).entries
    shared = Shared()
    for cell, _ in plan.cells:
        alone = measure(
            entry.theorem.statement,
            scale=scale,
            device="cpu",
            dtypes=[cell.dtype],
            seed=3,
            implementations=[cell.implementation],
            distributions=["needle"],
        )
        together = shared(entry.theorem.statement, cell)
        assert [replace(m, seconds=0.0) for m in together] == [
            replace(m, seconds=0.0) for m in alone
        ]
        assert together


def test_so_many_tokens_are_asked_for() -> None:
    assert scaled("small", 32).lengths["tokens"] == (32, 20, 10, 6)
    assert scaled("small", None) == scaled("small", None)
    assert scaled("small", 32).lengths["features"] == scaled("small", None).lengths["features"]


def test_a_second_sweep_finds_every_cell(tmp_path: Path) -> None:
    plan, told = plan_of(asked()), list[str]()
    with Store(tmp_path / "store.sqlite") as store:
        one = sweep(plan, asked(), store, report=told.append, measure=held)
        two = sweep(plan, asked(), store, report=told.append, measure=_refuse)
        more = plan_of(asked(0, 1, 2, 3))
        three = sweep(more, asked(), store, measure=held)
        fresh = sweep(plan, asked(fresh=True), store, measure=held)
        assert len(store) == 4
    assert told == []
    assert [cell.model_copy(update={"stored": None}) for cell in two.cells] == list(one.cells)
    assert all(cell.stored is not None for cell in two.cells)
    assert [cell.stored is None for cell in three.cells] == [False, False, False, True]
    assert all(cell.stored is None for cell in fresh.cells)
    assert "3 of 3 found in the store, measured 20" in sweep_summary(two)
    assert "found in the store" not in sweep_summary(one)
    assert one.ok
    assert SweepRecord.model_validate_json(two.model_dump_json()) == two


def _refuse(statement: Statement, cell: Cell) -> Sequence[MeasuredEvidence]:
    raise AssertionError(f"{cell} of {statement} was measured again")


def test_how_a_cell_ended_is_told_and_what_was_lost_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cleared: list[str] = []
    told_of = SimpleNamespace(collect=lambda: cleared.append("where memory was spent"))
    monkeypatch.setattr("attnproof.sweeping.cells.gc", told_of)

    def odd(statement: Statement, cell: Cell) -> Sequence[MeasuredEvidence]:
        (one,) = held(statement, cell)
        if cell.seed == 1:
            raise ValueError("no such thing")
        if cell.seed == 2:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        if cell.seed == 3:
            return [replace(one, status="violated", error=1.0), one]
        if cell.seed == 4:
            return [replace(one, status="skipped", reason="no kernel")]
        if cell.seed == 5:
            spoke = (
                PolicyRecord("residual", "held", 0.5, "one key"),
                PolicyRecord("bitwise", "held", 0.0, ""),
            )
            return [replace(one, policies=spoke)]
        return []

    with Store(tmp_path / "store.sqlite") as store:
        plan = plan_of(asked(*range(7)))
        found = sweep(plan, asked(), store, measure=odd)
        assert len(store) == 5
        assert sum(c.stored is None for c in sweep(plan, asked(), store, measure=odd).cells) == 2
    assert len(cleared) == 2
    told = {cell.seed: cell for cell in found.cells}
    assert [told[k].status for k in range(7)] == [
        "skipped",
        "failed",
        "out of memory",
        "violated",
        "skipped",
        "held",
        "skipped",
    ]
    assert told[0].reason == "it implements no definition of this statement"
    assert told[1].reason == "ValueError: no such thing"
    assert told[3].ratio == pytest.approx(1e6)
    assert (told[4].reason, told[4].ratio) == ("no kernel", None)
    assert (told[5].ratio, told[5].policy) == (0.5, "residual")
    assert not found.ok


def test_a_violated_control_is_no_fault_and_a_lost_one_is() -> None:
    def violated(statement: Statement, cell: Cell) -> Sequence[MeasuredEvidence]:
        (one,) = held(statement, cell)
        return [replace(one, status="violated" if cell.claimed.control else "held")]

    def lost(statement: Statement, cell: Cell) -> Sequence[MeasuredEvidence]:
        raise ValueError(f"{statement} {cell}")

    plan = plan_of(asked(0, controls=True))
    assert sweep(plan, asked(controls=True), measure=violated).ok
    assert not sweep(plan, asked(controls=True), measure=lost).ok


def test_the_command_sweeps_writes_and_resumes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = tmp_path / "sweep.json"
    asked_for = f"sweep {SOFTMAX} --dtype float32 --seeds 0:2 --device cpu --engine threading"
    words = [*asked_for.split(), "--json", str(record)]
    assert cli.main(words) == 0
    assert "2 cells: 2 held" in capsys.readouterr().out
    assert cli.main([*words, "--seeds", "0:3", "--tokens", "20"]) == 0
    assert "3 cells: 3 held" in capsys.readouterr().out
    assert cli.main(words) == 0
    assert "2 of 2 found in the store" in capsys.readouterr().out
    found = json.loads(record.read_text(encoding="utf-8"))
    conforms(record.read_text(encoding="utf-8"), "--sweep")
    assert len(found["cells"]) == 2
    assert cli.main([*words, "--tokens", "20"]) == 0
    more = json.loads(record.read_text(encoding="utf-8"))
    sizes = [{m["sizes"]["n"] for c in r["cells"] for m in c["measured"]} for r in (found, more)]
    assert sizes[0] != sizes[1]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--seeds", "5:2"], "wanted seeds as FIRST:END"),
        (["--distribution", "odd"], "wanted an input distribution (normal, "),
        (["--device", "tpu"], "wanted a device"),
        (["--implementation", "mine"], "implementation 'mine' was asked for"),
        (["--address", "10.0.0.1:6379"], "with it goes --engine ray"),
        (["--scale", "large", "--seeds", "0:9999999"], "at most 1,000,000 are swept"),
    ],
)
def test_a_wrong_word_is_told_in_one_line(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["sweep", SOFTMAX, *words]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert told in lines[0]


def test_distributions_may_still_be_given_as_designs_and_it_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["sweep", SOFTMAX, "--design", "odd"]) == 2
    note, refusal = capsys.readouterr().err.splitlines()
    assert note == "attnproof: --design is now called --distribution"
    assert refusal.endswith("or all, got 'odd'")


# Workers of a sweep: one that dies, does not end or wants too much takes no other with it.


@pytest.fixture
def deadly() -> Measure:
    """Ends its process, or does not end; a function that workers need no test file for."""
    inner = held

    def measured(statement: Statement, cell: Cell) -> Sequence[MeasuredEvidence]:
        if cell.seed == 1:
            os._exit(3)
        if cell.seed == 2:
            time.sleep(60)
        return inner(statement, cell)

    return measured


def test_a_worker_that_dies_takes_no_finished_cell_with_it(tmp_path: Path, deadly: Measure) -> None:
    plan = plan_of(asked(0, 1, 2, 3))
    with Store(tmp_path / "store.sqlite") as store:
        found = sweep(plan, asked(engine=Engine("loky"), limit=1.0), store, measure=deadly)
        assert sorted(name[-1] for _, name, _, _ in store) == ["0", "3"]
    told = {cell.seed: cell for cell in found.cells}
    assert [told[k].status for k in range(4)] == ["held", "died", "out of time", "held"]
    assert "EXIT(3)" in told[1].reason
    assert told[2].reason == "not finished after 1 s"


def test_ray_does_the_same(tmp_path: Path, deadly: Measure) -> None:
    pytest.importorskip("ray", reason="Ray is not installed (the extra ray)")
    plan = plan_of(asked(0, 1, 3))
    with Store(tmp_path / "store.sqlite") as store:
        found = sweep(plan, asked(engine=Engine("ray")), store, measure=deadly)
        assert len(store) == 2
    assert [cell.status for cell in found.cells] == ["held", "died", "held"]


def test_a_worker_with_other_code_measures_nothing() -> None:
    plan = plan_of(asked(0))
    plan.surroundings["cpu"]["code"] = "another"
    (cell,) = sweep(plan, asked(), measure=held).cells
    assert cell.status == "failed"
    assert "does not match the sweep's plan: code" in cell.reason


def test_an_interrupt_keeps_what_was_measured(tmp_path: Path) -> None:
    heard: list[int] = []

    def tell(cell: Any) -> None:
        heard.append(cell.seed)
        if len(heard) == 2:
            raise KeyboardInterrupt

    plan = plan_of(asked(*range(20)))
    with Store(tmp_path / "store.sqlite") as store:
        found = sweep(plan, asked(), store, tell, measure=held)
        assert len(store) >= 2
    assert len(found.cells) + found.unfinished == 20
    assert found.unfinished > 0
    assert not found.ok


def test_a_limit_of_time_is_no_error_that_code_survives() -> None:
    def stubborn() -> None:
        while True:
            try:
                time.sleep(5)
            except Exception:  # noqa: BLE001
                continue

    with pytest.raises(OutOfTime), limited_time(0.05):
        stubborn()
    with limited_time(0.05) as why:
        assert why == ""
    time.sleep(0.1)


def test_a_limit_of_memory_is_kept_and_taken_back() -> None:
    import torch

    with pytest.raises(RuntimeError) as caught, limited_memory(0.25):
        torch.empty(1 << 27, dtype=torch.float64)
    assert spent_memory(str(caught.value))
    assert len(torch.empty(1 << 27, dtype=torch.float64)) == 1 << 27
    assert not spent_memory("ValueError: shapes do not fit")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="malloc of another library")
def test_memory_that_is_kept_is_not_fetched_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty arrays of 64 MB, one after the other: each page is fetched once, or twenty times."""
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    code = """
import resource
from attnproof.theorem_runs.limits import keep_memory
{}
for _ in range(20):
    b"x" * 2**26
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
"""
    given_back, kept = (
        int(python("-c", code.format(line), cwd=root).stdout) for line in ("", "keep_memory()")
    )
    assert kept < given_back / 4


def test_a_worker_that_grows_is_kept(root: Path) -> None:
    """Two workers of which each grows by 400 MB in its second call: they end then, or go on."""
    pytest.importorskip("psutil")
    code = """
import os, sys, time
from joblib import Parallel, delayed
from attnproof.theorem_runs.limits import keep_worker

def grow(call):
    {}
    if call:
        sys.held = b"x" * 400_000_000
    time.sleep(1.2)
    return os.getpid()

asked = (delayed(grow)(call) for call in (0, 0, 1, 1, 0, 0))
print(len(set(Parallel(n_jobs=2, batch_size=1, pre_dispatch=2)(asked))))
"""

    def workers(line: str) -> int:
        return int(python("-c", code.format(line), cwd=root).stdout)

    with ThreadPoolExecutor(2) as both:  # they sleep most of the time
        ended, kept = both.map(workers, ("pass", "keep_worker()"))
    assert ended > kept == 2


def test_a_sweep_that_is_killed_goes_on_where_it_was(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "store.sqlite"
    asked = f"sweep {SOFTMAX} --dtype float32 --device cpu --seeds 0:120".split()
    words = [*asked, "--store", str(place)]
    process = begun(root, *words)
    while process.poll() is None and (not place.exists() or _rows(place) < 10):
        time.sleep(0.05)
    assert process.poll() is None, "it was over before it was killed"
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    kept = _rows(place)
    assert cli.main([*words, "--engine", "threading"]) == 0
    printed = capsys.readouterr().out
    assert f"{kept} of 120 found in the store" in printed
    assert "120 cells: 120 held" in printed
    assert _rows(place) == 120


def _rows(place: Path) -> int:
    with Store(place, named=True) as store:
        return len(store)
