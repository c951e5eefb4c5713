"""A check shared out over two processes is the check of one, to the last bit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from attnproof.numeric.at_scale.methods import check_at_scale
from attnproof.numeric.results import MeasuredEvidence
from attnproof.numeric.sharded import SIDES_DIFFER
from attnproof.numeric.sharded.attention import processes
from attnproof.sweeping.scale import sharded_lines, sharded_record
from tests.numeric.shared_out import CASES, CPU, REFUSED, THEOREMS, call


@pytest.fixture(scope="module")
def found(root: Path) -> dict[str, Any]:
    """What two processes on loopback found, in one start."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    for _ in range(5):  # on a busy machine processes may abort in the rendezvous; ours always fail
        done = subprocess.run(
            [*command, "--nproc-per-node", "2", "-m", "tests.numeric.shared_out"],
            cwd=root,
            env=os.environ | {"PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        if done.returncode == 0:
            break
    assert done.returncode == 0, done.stderr[-2_000:]
    parsed: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return parsed


@pytest.mark.parametrize("case", CASES)
def test_two_processes_find_what_one_finds(found: dict[str, Any], case: str) -> None:
    (alone,) = check_at_scale(call(**CASES[case]), ["sampled"])
    shared = found[case]
    assert (shared["error"], shared["tolerance"]) == (alone.error, alone.tolerance)
    assert tuple(shared["worst"]) == alone.worst
    assert shared["status"] == alone.status == "held"
    assert "of which each compared" in shared["looked"]
    assert shared["device"] == "0: cpu, 1: cpu"


@pytest.mark.parametrize("case", ["heads", "rows"])
def test_a_fault_of_process_1_alone_is_told(found: dict[str, Any], case: str) -> None:
    shared = found[f"fault, {case}"]
    assert shared["status"] == "violated"
    assert shared["reason"].startswith("process 1: ")
    head, row, _ = shared["worst"]
    assert head >= 2 if case == "heads" else row >= 512


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_go_round_is_refused(found: dict[str, Any], case: str) -> None:
    assert "wanted heads in equal parts for 2 processes, got 3" in found[case]


def test_any_statement_is_read_on_shares(found: dict[str, Any]) -> None:
    held, wrong = found["statement"], found["fault, statement"]
    assert (held["status"], wrong["status"]) == ("held", "violated")
    assert "shared out: " in held["sampled"]
    assert "shared out: nothing" not in held["sampled"]
    assert wrong["reason"].startswith("process 1: the left side is not the value")
    assert found["small statement"]["status"] == "held"


@pytest.mark.parametrize("name", THEOREMS)
def test_every_equation_of_a_theorem_is_computed(found: dict[str, Any], name: str) -> None:
    for m in found[f"{name}, proved"]:
        if m["status"] == "skipped":
            assert "only equations are read on shares, and this says >" in m["reason"]
        else:
            assert (m["status"], m["reason"]) == ("held", "")
    (control,) = found[f"{name}, refuted"]
    assert (control["status"], control["reason"][11:]) == ("violated", SIDES_DIFFER)


def test_rows_selected_wrongly_by_process_1_are_told_there(found: dict[str, Any]) -> None:
    alone = found["fault, selection"][0]
    assert alone["status"] == "violated"
    assert alone["reason"].startswith("process 1: ")


def test_what_was_not_shared_out_is_told(found: dict[str, Any]) -> None:
    told = [m["sampled"] for m in found["any-score-function-keeps-the-symmetries, proved"]]
    assert all("on gathered arrays: matmul" in text for text in told[:1])


def test_only_sides_that_differ_are_expected_of_a_control() -> None:
    measured = MeasuredEvidence(
        says="",
        implementation="eager",
        device="cpu",
        dtype="float32",
        sizes={},
        seed=0,
        sampled="every entry",
        error=1.0,
        tolerance=0.1,
        worst=(),
        seconds=0.0,
        status="violated",
        reason=f"process 0: {SIDES_DIFFER}",
    )
    misread = replace(measured, reason="process 1: the left side is not the value")
    held = replace(measured, status="held", error=0.0, reason="")

    def ok(*found: tuple[str, bool, MeasuredEvidence]) -> bool:
        return sharded_record("a-theorem", found, "2", 2).ok

    assert ok(("proved", False, held), ("refuted", True, measured))
    assert not ok(("proved", False, measured))
    assert not ok(("proved", False, held), ("refuted", True, misread))
    assert not ok(("proved", False, replace(held, status="skipped", reason="why")))
    (line,) = sharded_lines(sharded_record("a-theorem", [("refuted", True, measured)], "2", 2))
    assert line.endswith("the sides differ, as expected")


def test_a_process_started_alone_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(ValueError, match="torchrun --nproc-per-node 2"), processes(CPU):
        pass
