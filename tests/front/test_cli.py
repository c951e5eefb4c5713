"""The command line: what it prints, ``attnproof show``, and its exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from attnproof import __version__
from attnproof.cli import main
from attnproof.commands.options import Dtype
from attnproof.documents.document import Grid, Line, plain_text, show
from attnproof.documents.evidence import schema_text
from attnproof.errors import UsageError, require_known
from attnproof.symbolic.prove import decide
from attnproof.symbolic.steps import flatten
from attnproof.theorem_runs.catalogue import load_catalogue
from attnproof.theorem_runs.records import Results
from tests.front.outputs import Output, WriteTheorem

if TYPE_CHECKING:
    from tests.front.conftest import Numbers


NAME = "softmax-ignores-a-constant-in-each-row"


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
    assert capsys.readouterr().out == schema_text(Results)


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


def test_run_prints_a_verdict_for_each_theorem_and_writes_the_record(
    capsys: Output, numbers: Numbers, tmp_path: Path
) -> None:
    file = tmp_path / "new" / "results.json"
    assert main(["run", "--no-numeric", "bias", "--json", str(file)]) == 0
    out, err = capsys.readouterr()
    assert "alibi-is-a-key-bias-" in out
    count = len(load_catalogue().select(["bias"]).entries)
    assert f"SymPy: {count} of {count} proved theorems also derived, at small sizes" in out
    assert f"{count} theorems: {count} proved; {count} as expected in verdict and control" in out
    assert "✓ proved" in out
    assert "alibi-is-a-key-bias-under-a-causal-mask" in err
    assert numbers.asked == []
    results = Results.model_validate_json(file.read_text(encoding="utf-8"))
    assert results.ok
    assert results.options.selection == ("bias",)
    assert f"wrote {file}" in out
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
    assert main(["run", NAME, "--no-numeric", "--theorems", str(path)]) == 0
    assert main(["run", "broken", "--no-numeric", "--theorems", str(path)]) == 1


def test_an_unknown_id_is_answered_with_the_nearest(capsys: Output) -> None:
    told = refused(capsys, "run", "attention-ignores-order-of-pairs")
    assert "got 'attention-ignores-order-of-pairs'" in told
    assert "nearest: attention-ignores-the-order-of-pairs" in told
    assert "nearest: softmax" in refused(capsys, "run", "sofmax")
    assert "self-attention-is-equivariant, " in refused(capsys, "run", "attention")


@pytest.mark.parametrize("nonsense", ["zzz", "", "a", "the-quick-brown-fox", "not-a-theorem"])
def test_nonsense_is_answered_with_the_list(capsys: Output, nonsense: str) -> None:
    assert refused(capsys, "run", nonsense).endswith(f"got {nonsense!r}; see `attnproof list`")


def test_a_subject_is_answered_with_its_ids(capsys: Output) -> None:
    told = refused(capsys, "show", "softmax")
    assert "got the subject 'softmax'; its ids are rows-of-softmax-" in told
    assert "rows-of-softmax-are-distributions" in told
    assert "permuting" not in told


def test_several_theorems_are_shown_one_after_the_other(capsys: Output) -> None:
    names = [NAME, "rows-of-softmax-are-distributions"]
    assert main(["show", *names, "--no-numeric"]) == 0
    lines = capsys.readouterr().out.splitlines()
    first, second = (lines.index(f"{name} (softmax)") for name in names)
    assert first < second
    assert "got 'zzzz'" in refused(capsys, "show", names[0], "zzzz")


def test_an_unwritable_folder_is_refused_before_the_work(capsys: Output, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for option, value in (("--json", file / "results.json"), ("--html", file / "report")):
        told = refused(capsys, "run", option, str(value))
        assert "wanted a folder that can be written to" in told
        assert str(file) in told
    assert "got the folder" in refused(capsys, "run", "--json", str(tmp_path))


@pytest.mark.parametrize("name", ["nonsense", "auto:1", ""])
def test_what_is_no_device_is_told_so(capsys: Output, name: str) -> None:
    told = refused(capsys, "run", "softmax", "--no-numeric", "--device", name)
    assert f"wanted a device (cpu, cuda, mps, auto), got {name!r}, which is not one" in told


def test_an_absent_device_is_refused_with_those_present(
    capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnproof.numeric.devices.devices", lambda: ("cpu",))
    told = refused(capsys, "run", "softmax", "--device", "cuda")
    assert "'cuda'" in told
    assert "not on this machine; present: cpu" in told


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["--json", "--fresh"], "wanted a file or folder behind --json, got the option --fresh"),
        (["--scale", "huge"], "'small', 'default', 'large'"),
        (["--dtype", "int8"], "'float64', 'float32', 'bfloat16'"),
        (["--jobs", "0"], "greater than or equal to 1"),
        (["--seed", "x"], "integer"),
        (["--what"], "No such option: --what"),
        (["--theorems", "nowhere"], "got nowhere, which does not exist"),
    ],
)
def test_a_wrong_option_is_told_in_one_line(
    capsys: Output, arguments: list[str], wanted: str
) -> None:
    told = refused(capsys, "run", *arguments)
    assert wanted in told
    assert arguments[-1] in told
    assert "Value error" not in told
    assert "--theorems" in arguments or told.endswith("; see `attnproof run --help`")


@pytest.mark.parametrize("command", [["run"], ["list"], ["show", "x"]])
def test_a_place_without_theorem_files_is_refused(
    capsys: Output, write_theorem: WriteTheorem, tmp_path: Path, command: list[str]
) -> None:
    deep = tmp_path / "deep"
    (deep / "a" / "b").mkdir(parents=True)
    write_theorem("addition_commutes", subject="deep/a/b")
    write_theorem("_no_theorem", subject="deep")
    told = refused(capsys, *command, "--theorems", str(deep))
    assert told.startswith(f"attnproof: no theorem file in {deep} or its folders; ")
    text = tmp_path / "notes.txt"
    text.touch()
    told = refused(capsys, *command, "--theorems", str(text))
    assert f"wanted a folder or a .py file of theorems, got {text}, which is neither" in told


def test_the_table_has_a_line_for_each_theorem_at_80_columns(
    capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    names = [
        "a-product-through-a-smaller-width-is-not-invertible",
        "rows-of-softmax-are-distributions",
    ]
    assert main(["run", *names, "--no-numeric"]) == 0
    out, err = capsys.readouterr()
    head, line, *rows = out.splitlines()
    assert head.split() == ["verdict", "control", "steps", "SymPy", "numbers", "theorem"]
    assert len(line) <= 80
    assert len(rows) == 2 + 2 + 1 + 3  # theorems, subjects, a condition, legend and summary
    (cut,) = [row for row in rows if "…" in row]
    assert "a-product-through-a-smaller-" in cut
    assert "a-product-through-a-smaller-width-is-not-invertible" in err
    assert rows[-3] == "steps: kernel steps"
    assert rows[-2] == "SymPy: 1 of 2 proved theorems also derived, at small sizes"
    assert all(len(row) <= 80 for row in rows)


def test_one_theorem_is_one(capsys: Output) -> None:
    assert main(["run", "rows-of-softmax-are-distributions", "--no-numeric"]) == 0
    assert "\n1 theorem: 1 proved; 1 as expected in " in capsys.readouterr().out


def test_what_is_wrong_stands_in_the_progress_and_the_summary(
    capsys: Output, write_theorem: WriteTheorem, numbers: Numbers
) -> None:
    numbers.true = replace(numbers.true, status="violated", error=0.5)
    path = str(write_theorem("addition_commutes"))
    assert main(["run", "mine", "--device", "cpu", "--theorems", path]) == 1
    out, err = capsys.readouterr()
    wrong = "torch, cpu, float32: violated, error 0.5 against 1e-06"
    assert f"addition-commutes  ! {wrong}" in err
    told = "1 theorem: 1 proved; 0 as expected in verdict, numbers and control, 1 not as expected. "
    assert told in out
    assert " 0/1 " in out


def test_numbers_count_what_is_as_it_must_be_and_what_was_skipped(
    capsys: Output, write_theorem: WriteTheorem, true_theorem: str, numbers: Numbers
) -> None:
    text = true_theorem.replace("sources=", 'expected="refuted", sources=')
    text = text.replace("x + y, y + x", "x, y").replace("x - y, y - x", "x + y, y + x")
    path = str(write_theorem("all_are_equal", text))
    arguments = ["run", "mine", "--device", "cpu", "--theorems", path]
    numbers.true = replace(numbers.true, status="violated")
    main(arguments)
    out = capsys.readouterr().out
    assert " 1/1 " in out
    legend = "steps: kernel steps; numbers: held (violated, if the statement is false) of all"
    assert f"\n{legend}\n" in out
    numbers.true = replace(
        numbers.true, status="skipped", error=nan, tolerance=nan, reason="too large"
    )
    main(arguments)
    out = capsys.readouterr().out
    assert " 0/1 " in out
    assert "1 of 1 measurements skipped; `attnproof show ID` says why" in out


def test_a_wrong_command_is_told_in_one_line(capsys: Output) -> None:
    assert "No such command 'prove'" in refused(capsys, "prove")


def test_the_dtypes_are_those_of_the_numeric_side() -> None:
    from attnproof.numeric.devices import DTYPES

    assert {dtype.value for dtype in Dtype} == set(DTYPES)


def test_of_names_that_hold_what_was_written_the_shortest_are_nearest() -> None:
    with pytest.raises(UsageError, match=r"nearest: rope, m-rope, rope-ntk$"):
        require_known(["rop"], ["m-rope", "rope-llama3", "rope-ntk", "rope"])


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    """As of `attnproof list | head`: what is left is not written, and nothing is told."""
    command = [sys.executable, "-m", "attnproof", "list"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


FLAGSHIP = "attention-ignores-the-order-of-pairs"


def shown(output: Output, *arguments: str) -> str:
    assert main(["show", *arguments]) == 0
    return output.readouterr().out


def test_a_page_has_statement_givens_chain_assumptions_control_and_sources(capsys: Output) -> None:
    page = shown(capsys, FLAGSHIP, "--no-numeric")
    for part in (
        "✓ proved, for all r, ",
        "attention(Q, K[sigma], V[sigma]) = attention(Q, K, V)",
        "sigma (n): a permutation",
        "for every r (tokens)",
        "softmax commutes with a permutation",
        "kernel steps]",
        "sigma is a permutation",
        "Its negative control: ",
        "✗ refuted (as expected)",
        "a gap of at least ",
        "Sources",
    ):
        assert part in page


def test_every_kernel_step_is_shown_when_asked_for(capsys: Output) -> None:
    theorem = next(e.theorem for e in load_catalogue().entries if e.id == FLAGSHIP)
    links = [link for claim in decide(theorem.statement).claims for link in claim.links]
    steps = [step for link in links if link.derivation for step in flatten(link.derivation)]
    assert len(steps) > 20
    few, many = (shown(capsys, FLAGSHIP, "--no-numeric", *more) for more in ((), ("--steps",)))
    assert many.count(" at ") - few.count(" at ") >= len(steps)
    for rule in {step.rule for step in steps}:
        assert f". {rule} at " in many


def test_numbers_are_on_the_page(
    capsys: Output, write_theorem: WriteTheorem, numbers: Numbers
) -> None:
    path = write_theorem("addition_commutes")
    page = shown(capsys, "addition-commutes", "--theorems", str(path))
    assert "n = 4; every entry; on cpu\n" in page
    lines = [line.split() for line in page.splitlines()]
    assert ["torch"] in lines
    assert ["✓", "float32", "1e-07", "1e-06", *"––––"] in lines
    assert ["✗", "float32", "1", "1e-06", *"––––"] in lines
    assert any(line[0] == "violated" for line in lines if line)
    assert numbers.asked[0]["scale"] == "small"


def test_a_broken_theorem_has_no_page(
    capsys: Output, write_theorem: WriteTheorem, mismatched: str
) -> None:
    for name, text in (("raises", "1 / 0"), ("mismatched", mismatched)):
        path = write_theorem(name, text)
        assert main(["show", name, "--no-numeric", "--theorems", str(path)]) == 1
        out, err = capsys.readouterr()
        assert not out
        assert str(path) in err


LINES = [
    Line("again: attnproof check a_long_name", "dim"),
    Line("  so many words that they need two lines", hang=2),
]
GRID = Grid("Laws", ("law", "verdict"), (("even", "proved"),))


def test_a_page_is_lines_and_tables_of_which_some_lines_stay_whole(capsys: Output) -> None:
    show([*LINES, GRID], Console(width=24))
    first, *rest = capsys.readouterr().out.splitlines()
    assert first == "again: attnproof check a_long_name"
    assert rest[:3] == ["  so many words that", "    they need two lines", "Laws"]
    assert rest[-1].split() == ["even", "proved"]
    assert plain_text(LINES, 24).splitlines() == [first, *rest[:2]]
    assert plain_text([Line("an_address/without_spaces", hang=2)], 8) == "an_address/without_spaces"
