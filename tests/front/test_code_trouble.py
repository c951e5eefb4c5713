"""What code does that it should not is told as docs/code.md says, and printing is no fault."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from attnproof.cli import main
from attnproof.real_code.records import CodesRecord
from attnproof.real_code.running import counting
from tests.front.code_files import CODE, write_code

ALWAYS = CODE.replace('"LATE" in os.environ', "True").replace('print("the file is read")', "")
LAYERS = """
def rope_doubled(x):
    return torch.cat((x, x), -1)
"""
TROUBLE = (
    ("prints", "rope_prints", 0, "it printed"),
    ("changes its inputs", "rope_mutates", 1, "input 1 of rotate is changed by the call"),
    ("returns NaN or infinity", "rope_nan", 1, "is not a finite number"),
    ("is not callable", "number", 2, "cannot be run"),
    ("is not callable", "rope_doubled", 2, " back, got "),
    ("never ends", "rope_exits", 2, "was stopped"),
)


@pytest.mark.parametrize(("begins", "name", "code", "told"), TROUBLE)
def test_trouble_is_told_as_it_is_written(
    root: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    begins: str,
    name: str,
    code: int,
    told: str,
) -> None:
    text = (root / "docs" / "code.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| {begins}.*$", text, re.MULTILINE)
    assert row.endswith(f"| {code} |" if code else "| as without |")
    target = f"{write_code(tmp_path, ALWAYS + LAYERS)}::{name}"
    assert main(["check", target, "--law", "norm", "--law", "no-mutation"]) == code
    assert told in " ".join(capsys.readouterr().out.split())


def test_what_code_prints_is_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = f"{write_code(tmp_path, ALWAYS)}::rope_prints"
    out = tmp_path / "found.json"
    asked = ["--law", "norm", "--json", str(out)]
    assert main(["check", target, *asked]) == 0
    (one,) = CodesRecord.model_validate_json(out.read_text(encoding="utf-8")).codes
    assert one.printed > 1
    assert one.first_printed == ("a line of the code " * 3).strip()
    shown = capsys.readouterr().out
    assert shown.count("a line of the code a line") == 1
    assert f"it printed {one.printed} lines while it was checked; the first: a line" in shown
    assert main(["check", target.replace("rope_prints", "rope"), *asked]) == 0
    assert "it printed" not in capsys.readouterr().out


def test_lines_are_counted_however_they_are_written(tmp_path: Path) -> None:
    with (tmp_path / "said").open("w", encoding="utf-8") as file:
        said = counting(file.fileno())
        for text in ("\n", "on", "e\ntwo\n \n", "three"):
            said.write(text)
        assert said.told() == {"lines": 3, "first": "one"}
        said.close()
    assert (tmp_path / "said").read_text(encoding="utf-8") == "\none\ntwo\n \nthree"
