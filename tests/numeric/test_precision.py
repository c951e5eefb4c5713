"""Rotary encoding in short formats: its tables printed, in the record and in the document."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from benchmarks.markdown import markdown
from benchmarks.precision import __main__ as command
from benchmarks.precision import survey as surveying
from benchmarks.precision.record import PrecisionRecord, document, sheets
from benchmarks.precision.survey import Tell

QUICK = ("float32", "bfloat16", "float16 throughout")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surveying, "BASES", (1e4,))
    monkeypatch.setattr(surveying, "DTYPES", surveying.DTYPES[:1])


@cache
def surveyed(device: str, seed: int) -> PrecisionRecord:
    """What is measured, once for all tests."""
    return surveying.survey(device=device, seed=seed, content=64, pairs=8)


def run(tmp_path: Path, violations: int = 0) -> tuple[int, PrecisionRecord, str]:
    """The command; each error that was measured is told with so many more violations."""
    file, written = tmp_path / "precision.json", tmp_path / "precision.md"
    kept: list[PrecisionRecord] = []

    def seen(*, device: str, seed: int, tell: Tell) -> PrecisionRecord:
        tell("all of it", 1, 1)
        found = surveyed(device, seed)
        more = [replace(one, violations=one.violations + violations) for one in found.errors]
        kept.append(found.model_copy(update={"errors": tuple(more)}))
        return kept[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "survey", seen)
        code = command.main(["--json", str(file), "--markdown", str(written)])
    (record,) = kept
    told = json.loads(file.read_text(encoding="utf-8"))
    assert "non-finite" in {one["rms"] for one in told["errors"]}
    assert len(told["breaks"]) == len(record.breaks)
    return code, record, written.read_text(encoding="utf-8")


def test_one_command_writes_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, record, written = run(tmp_path)
    told = capsys.readouterr().out
    assert code == 0
    assert record.violations == 0
    assert {one.form for one in record.errors} >= set(QUICK)
    for sheet in sheets(record):
        assert sheet.title in told
        assert f"## {sheet.title}" in written
        assert all(len(row) == len(sheet.columns) for row in sheet.rows)
    assert "| bfloat16 | 257 | none |" in written
    assert "base 10001 (float32): pair" in written
    assert f"torch {record.machine.torch}" in written
    assert markdown(document(record)) == written


def test_an_error_above_its_bound_is_an_exit_code(tmp_path: Path) -> None:
    code, record, written = run(tmp_path, violations=1)
    assert code == 1
    assert record.violations == len(record.errors)
    assert f"| {record.violations} |" in written
