"""The command line: what it prints, and its exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from attnproof import __version__
from attnproof.cli import Dtype, main
from attnproof.records import Results, schema_text

if TYPE_CHECKING:
    from tests.front.conftest import Numbers

WriteTheorem = Callable[..., Path]
Output = pytest.CaptureFixture[str]


def refused(output: Output, *arguments: str) -> str:
    """The one line of a usage error."""
    assert main(list(arguments)) == 2
    out, err = output.readouterr()
    assert not out
    (line,) = err.splitlines()
    assert line.startswith("attnproof: ")
    return line


def test_version_and_help(capsys: Output) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"attnproof {__version__}\n"
    assert main([]) == 0
    told = capsys.readouterr().out
    assert all(command in told for command in ("list", "show", "run", "schema"))


def test_the_schema_is_printed(capsys: Output) -> None:
    assert main(["schema"]) == 0
    assert capsys.readouterr().out == schema_text()


def test_list_names_every_theorem_by_subject(capsys: Output, write_theorem: WriteTheorem) -> None:
    assert main(["list", "--theorems", str(write_theorem("addition_commutes"))]) == 0
    lines = capsys.readouterr().out.splitlines()
    place = lines.index("mine")
    assert lines[place + 1 : place + 3] == ["  addition-commutes", "      Addition commutes"]
    assert "permutation" in lines


def test_list_shows_a_broken_file_and_fails(capsys: Output, write_theorem: WriteTheorem) -> None:
    path = write_theorem("raises", "1 / 0")
    assert main(["list", "--theorems", str(path)]) == 1
    out = capsys.readouterr().out
    assert f"! broken: {path}" in out
    assert "ZeroDivisionError" in out
    assert "rows-of-softmax-are-distributions" in out


def test_run_prints_a_verdict_for_each_theorem(capsys: Output, numbers: Numbers) -> None:
    assert main(["run", "--no-numeric", "softmax"]) == 0
    out, err = capsys.readouterr()
    assert "rows-of-softmax-are-" in out
    assert "every verdict as expected" in out
    assert "✓ proved" in out
    assert "rows-of-softmax-are-distributions" in err
    assert numbers.asked == []


def test_run_writes_the_record(capsys: Output, tmp_path: Path) -> None:
    file = tmp_path / "new" / "results.json"
    assert main(["run", "--no-numeric", "softmax", "--json", str(file)]) == 0
    results = Results.model_validate_json(file.read_text(encoding="utf-8"))
    assert results.ok
    assert results.options.selection == ("softmax",)
    assert f"wrote {file}" in capsys.readouterr().out
    assert [path.name for path in file.parent.iterdir()] == ["results.json"]


def test_run_fails_when_a_verdict_is_not_the_expected_one(
    capsys: Output, write_theorem: WriteTheorem, true_theorem: str
) -> None:
    text = true_theorem.replace("sources=", 'expected="refuted", sources=')
    path = write_theorem("addition_commutes", text)
    assert main(["run", "addition-commutes", "--no-numeric", "--theorems", str(path)]) == 1
    out = capsys.readouterr().out
    assert "! addition-commutes: expected refuted, is proved" in out
    assert "1 not as expected" in out


def test_run_goes_on_after_a_broken_file_and_fails(
    capsys: Output, write_theorem: WriteTheorem, mismatched: str, tmp_path: Path
) -> None:
    file, folder = tmp_path / "results.json", write_theorem("addition_commutes").parent
    write_theorem("broken", "1 / 0")
    write_theorem("mismatched", mismatched)
    arguments = ["mine", "--no-numeric", "--theorems", str(folder), "--json", str(file)]
    assert main(["run", *arguments]) == 1
    record = json.loads(file.read_text(encoding="utf-8"))
    assert [theorem["verdict"] for theorem in record["theorems"]] == ["proved"]
    assert {b["file"] for b in record["broken"]} == {"mine/broken.py", "mine/mismatched.py"}
    assert "2 broken" in capsys.readouterr().out


def test_a_broken_file_elsewhere_does_not_fail_a_selection(write_theorem: WriteTheorem) -> None:
    path = write_theorem("broken", "1 / 0")
    assert main(["run", "softmax", "--no-numeric", "--theorems", str(path)]) == 0
    assert main(["run", "broken", "--no-numeric", "--theorems", str(path)]) == 1


def test_an_unknown_id_is_answered_with_the_nearest(capsys: Output) -> None:
    told = refused(capsys, "run", "attention-ignores-order-of-pairs")
    assert "got 'attention-ignores-order-of-pairs'" in told
    assert "nearest: attention-ignores-the-order-of-pairs" in told
    assert "nearest: softmax" in refused(capsys, "run", "sofmax")
    assert "see `attnproof list`" in refused(capsys, "run", "zzz")
    assert "got 'softmax'" in refused(capsys, "show", "softmax")


def test_an_unwritable_folder_is_refused_before_the_work(capsys: Output, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for option, value in (("--json", file / "results.json"), ("--html", file / "report")):
        told = refused(capsys, "run", option, str(value))
        assert "wanted a folder that can be written to" in told
        assert str(file) in told
    assert "got the folder" in refused(capsys, "run", "--json", str(tmp_path))


def test_an_absent_device_is_refused_with_those_present(
    capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnproof.numeric.devices.devices", lambda: ("cpu",))
    told = refused(capsys, "run", "softmax", "--device", "cuda")
    assert "'cuda'" in told
    assert "present: cpu" in told


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["--scale", "huge"], "'small', 'default', 'large'"),
        (["--dtype", "int8"], "'float64', 'float32', 'bfloat16'"),
        (["--jobs", "0"], "greater than or equal to 1"),
        (["--seed", "x"], "integer"),
        (["--what"], "No such option: --what"),
        (["--theorems", "nowhere"], "got nowhere, which is not there"),
    ],
)
def test_a_wrong_option_is_told_in_one_line(
    capsys: Output, arguments: list[str], wanted: str
) -> None:
    told = refused(capsys, "run", *arguments)
    assert wanted in told
    assert arguments[-1] in told


def test_a_wrong_command_is_told_in_one_line(capsys: Output) -> None:
    assert "No such command 'prove'" in refused(capsys, "prove")


def test_the_dtypes_are_those_of_the_numeric_side() -> None:
    from attnproof.numeric.devices import DTYPES

    assert {dtype.value for dtype in Dtype} == set(DTYPES)
