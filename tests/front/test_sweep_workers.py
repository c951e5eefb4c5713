"""Workers of a sweep: one that dies, does not end or wants too much takes no other with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from attnproof.numeric.measurement import Measurement
from attnproof.sweeping.engines import Engine
from attnproof.sweeping.limits import OutOfTime, limited_memory, limited_time, spent_memory
from attnproof.sweeping.store import Store
from attnproof.sweeping.sweep import sweep
from attnproof.sweeping.work import Cell, Measure
from attnproof.symbolic.statement import Statement
from tests.front.swept import SOFTMAX, asked, held, plan_of


@pytest.fixture
def deadly() -> Measure:
    """Ends its process, or does not end; a function that workers need no test file for."""
    inner = held

    def measured(statement: Statement, cell: Cell) -> Sequence[Measurement]:
        if cell.seed == 1:
            os._exit(3)
        if cell.seed == 2:
            time.sleep(60)
        return inner(statement, cell)

    return measured


def test_a_worker_that_dies_takes_no_finished_cell_with_it(tmp_path: Path, deadly: Measure) -> None:
    plan = plan_of(asked(0, 1, 2, 3))
    with Store(tmp_path / "store.sqlite") as store:
        found = sweep(
            plan,
            asked(engine=Engine("loky"), limit=1.0),
            store,
            measure=deadly,
        )
        assert sorted(name[-1] for _, name, _, _ in store) == ["0", "3"]
    told = {cell.seed: cell for cell in found.cells}
    assert [told[k].status for k in range(4)] == ["held", "died", "out of time", "held"]
    assert "EXIT(3)" in told[1].reason
    assert told[2].reason == "no end after 1 s"


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
    assert "another than the sweep was planned for: code" in cell.reason


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


def test_a_sweep_that_is_killed_goes_on_where_it_was(root: Path, tmp_path: Path) -> None:
    place = tmp_path / "store.sqlite"
    words = [
        sys.executable,
        "-m",
        "attnproof",
        "sweep",
        SOFTMAX,
        "--dtype",
        "float32",
        "--device",
        "cpu",
        "--seeds",
        "0:120",
        "--store",
        str(place),
    ]
    process = subprocess.Popen(
        words,
        cwd=root,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    while process.poll() is None and (not place.exists() or _rows(place) < 10):
        time.sleep(0.05)
    assert process.poll() is None, "it was over before it was killed"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    kept = _rows(place)
    done = subprocess.run(words, cwd=root, capture_output=True, text=True, check=True)
    assert f"{kept} of 120 found in the store" in done.stdout
    assert "120 cells: 120 held" in done.stdout
    assert _rows(place) == 120


def _rows(place: Path) -> int:
    with Store(place, named=True) as store:
        return len(store)
