"""``attnproof trials``: the tables, the record and its schema."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnproof.cli import main
from attnproof.trials import TrialsRecord
from tests.front.outputs import conforms

Output = pytest.CaptureFixture[str]
FEW = ["trials", "--cases", "1", "--fault-seeds", "0", "--design", "normal", "--dtype", "float32",
       "--jobs", "1"]  # fmt: skip


def test_both_tables_are_printed_and_written(tmp_path: Path, capsys: Output) -> None:
    files = ["--json", str(tmp_path / "t.json"), "--markdown", str(tmp_path / "t.md")]
    assert main([*FEW, *files]) == 0
    told = capsys.readouterr().out
    assert "correct programs" in told
    assert "Planted faults" in told
    written = (tmp_path / "t.json").read_text(encoding="utf-8")
    conforms(written, "--trials")
    record = TrialsRecord.model_validate_json(written)
    assert record.dtypes == ("float32",)
    assert record.cases > 1
    text = (tmp_path / "t.md").read_text(encoding="utf-8")
    assert record.command in text
    assert record.machine.torch in text
    again = [*record.command.split()[1:], "--json", str(tmp_path / "again.json")]
    assert main(again) == 0
    other = TrialsRecord.model_validate_json(
        (tmp_path / "again.json").read_text(encoding="utf-8")
    )
    assert (other.rates, other.command) == (record.rates, record.command)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--design", "wide"], "wanted an input distribution, got 'wide'"),
        (["--device", "abacus"], "wanted a device"),
    ],
)
def test_what_is_not_there_is_refused(arguments: list[str], told: str, capsys: Output) -> None:
    assert main([*FEW, *arguments]) == 2
    assert told in capsys.readouterr().err


def test_a_policy_that_refuses_correct_programs_fails_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.setattr("attnproof.trials.AIM", -1.0)
    assert main(FEW) == 1
    assert "aim" in capsys.readouterr().out
