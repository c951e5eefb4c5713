"""Wrong input to ``check``, ``identify`` and ``schema``: one line or paragraph, what is near."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from attnproof.cli import main
from attnproof.documents.evidence import write_json
from attnproof.programs.adapting import OtherKind, adapt
from attnproof.programs.declarations import DeclaredAttention, DeclaredRotary, declares
from attnproof.programs.no_adapter import NoAdapter
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Mask
from attnproof.real_code import targets
from attnproof.real_code.asserting import check_rotary
from attnproof.real_code.collecting import Collected
from attnproof.real_code.loading import CannotLoad, load, require_target
from attnproof.real_code.records import CodesRecord, codes_record
from attnproof.real_code.request import CodeRequest
from attnproof.real_code.running import Child, Limits, run
from tests.front.code_files import CODE, write_code
from tests.front.outputs import Output, python


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["schema", "--table", "--code"], "got --table and --code; give one of them at most"),
        (["schema", "--sweep", "--table", "--calibration"], "--table and --sweep and --calib"),
        (["list", "--code-laws", "--encodings"], "give one of them"),
        (["check", "a.py::f", "--as", "rotory"], "a kind of code, got 'rotory'; nearest: rotary"),
        (["identify", "a.py::f", "--as", "x"], "see rotary, attention, bias"),
        (["check", "a.py::f", "--declare", "rpoe:base=1"], "got 'rpoe:base=1'; nearest: rope"),
        (["check", "a.py::f", "--declare", "rope:bsae=1"], "in 'rope:bsae=1'; nearest: base"),
        (["check", "a.py::f", "--declare", "rope:layout=halff"], "got 'halff'; nearest: half;"),
        (["check", "a.py::f", "--declare", "rope:base=-4"], "base is above 0; got -4.0"),
        (["check", "a.py::f", "--declare", "rope:base=nan"], "base is finite; got nan"),
        (["check", "a.py::f", "--declare", "mask:window=0"], "window is above 0; got 0"),
        (["check", "a.py::f", "--declare", "bias:slopes=1;inf"], "slopes is finite"),
        (["check", "a.py::f", "--declare", "rope:scaling=yarn"], "yarn wants original"),
        (["check", "a.py::f", "--as", "bias", "--declare", "rope:base=1"], "of rotary code"),
        (["check", "a.py::f", "--json", "."], "got the folder .; name a file in it"),
    ],
)
def test_a_usage_error_is_one_line(capsys: Output, arguments: list[str], told: str) -> None:
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert told in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out == ""


@pytest.mark.parametrize("flag", ["--table", "--code"])
def test_one_schema_is_printed(capsys: Output, flag: str) -> None:
    assert main(["schema", flag]) == 0
    assert capsys.readouterr().out.startswith("{")


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("notes.txt::f", "got notes.txt, which is not a Python file"),
        ("book.ipynb::f", "which is a notebook; write it out with `jupyter nbconvert"),
        ("code.py:rope", "got 'code.py:rope'; write code.py::rope"),
        ("code.py::Rope::rotate", "write code.py::Rope.rotate"),
    ],
)
def test_what_is_nearly_a_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("notes.txt", "book.ipynb", "code.py"):
        (tmp_path / name).touch()
    with pytest.raises(CannotLoad) as refused:
        require_target(target)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("textwarp", "; nearest: textwrap"),
        ("collections.abd", "there is no 'abd' in collections; nearest: collections.abc"),
        ("os.path.more", "there is no 'more' in os.path"),
    ],
)
def test_modules_of_nearly_that_name(name: str, told: str) -> None:
    with pytest.raises(CannotLoad) as refused:
        load(f"{name}::f")
    assert told in str(refused.value)


def test_what_every_adapter_met_is_told_once() -> None:
    def fails(x: Tensor) -> Tensor:  # noqa: ARG001 (its name is what an adapter reads)
        raise RuntimeError("Found no NVIDIA driver on your system")

    with pytest.raises(NoAdapter) as refused:
        adapted_as(fails)
    told = str(refused.value)
    why = "it raised RuntimeError: Found no NVIDIA driver on your system"
    assert f"attention, bias, additive, mask, layer: {why}" in told
    assert "This code asks for a CUDA device, and was run without one" in told
    assert "--as" not in told  # that is said on the command line
    assert "--as rotary" in refused.value.on_command_line


def test_what_is_declared_of_other_code_is_told() -> None:
    mine = Mask(name="mine", mask=lambda t, s: torch.ones(t, s).tril().bool())
    with pytest.raises(OtherKind, match="mine is mask code, and the declaration is one of"):
        adapt(mine, declared=DeclaredRotary())
    with pytest.raises(OtherKind, match="mine is mask code, and bias code was asked for"):
        adapt(mine, kind="bias")
    assert adapt(mine, declared=DeclaredAttention(causal=True)).kind == "mask"
    assert declares("mask:causal") == ("mask",)
    assert declares("attention:causal") == ("attention", "mask", "layer")


def missing(folder: Path, count: int = 1) -> list[str]:
    """Targets that are told without starting a process."""
    return [f"{folder}/none{i}.py::f" for i in range(count)]


def test_an_interrupt_while_a_page_is_printed_keeps_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(targets, "_show", interrupted)
    out = tmp_path / "found.json"
    first, second = missing(tmp_path, 2)
    assert main(["check", first, second, "--json", str(out)]) == 130
    record = CodesRecord.model_validate_json(out.read_text(encoding="utf-8"))
    assert [code.target for code in record.codes] == [first]
    assert record.unfinished == (second,)


def test_nobody_reads_on_and_the_record_is_written(root: Path, tmp_path: Path) -> None:
    """As behind ``| head -1``: the other targets go on, and the exit code is theirs."""
    out = tmp_path / "found.json"
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "attnproof", "check", *missing(tmp_path, 2), "--json", str(out)],
        cwd=root,
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (2, "")
    assert len(CodesRecord.model_validate_json(out.read_text(encoding="utf-8")).codes) == 2


def test_a_terminal_without_the_letters(root: Path) -> None:
    plain = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = python("-m", "attnproof", "check", "nö.py::f", cwd=root, check=False, env=plain)
    assert (done.returncode, done.stderr) == (2, "")
    assert "n?.py" in done.stdout


def test_a_record_that_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("attnproof.documents.evidence.write_json", full)
    out = tmp_path / "found.json"
    assert main(["check", *missing(tmp_path), "--json", str(out)]) == 2
    shown = capsys.readouterr()
    assert f"wanted to write {out}, but could not (No space left on device)" in shown.err
    assert "which does not exist" in " ".join(shown.out.split())


def test_a_file_that_may_only_be_read_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    out = tmp_path / "found.json"
    out.touch()
    monkeypatch.setattr("attnproof.errors.os.access", lambda _, how: how != os.W_OK)
    assert main(["check", *missing(tmp_path), "--json", str(out)]) == 2
    assert "which is read-only" in capsys.readouterr().err


def test_what_is_no_regular_file_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    heard: list[str] = []
    reader = threading.Thread(target=lambda: heard.append(pipe.read_text()), daemon=True)
    reader.start()
    write_json(codes_record((), (), 0.0), pipe)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    reader.join(20)
    assert CodesRecord.model_validate_json(heard[0]).codes == ()


FORKS = """

def rope_forks(x, position_ids):
    try:  # one time only: the copies would fork as well
        os.close(os.open(MARK, os.O_CREAT | os.O_EXCL))
        os.fork()
    except FileExistsError:
        pass
    return rope(x, position_ids)
"""


def test_code_that_forks_is_told_once(tmp_path: Path) -> None:
    """The copy has the way to the findings as well; it ends when it would write there."""
    file = write_code(tmp_path, f"{CODE}\n\nMARK = {str(tmp_path / 'forked')!r}\n{FORKS}")
    asked = CodeRequest(
        target=f"{file}::rope_forks", kind="rotary", laws=("norm", "linear"), methods=("measured",)
    )
    heard, events = Collected(asked), []

    def tell(_: Collected, event: dict[str, Any]) -> None:
        events.append(event["event"])

    stopped, said = run(heard, Limits(), tell, Child(asked))
    assert (stopped, (tmp_path / "forked").exists()) == (None, True), said
    assert events.count("adapted") == 1
    told = [one.law for one in heard.findings]
    assert told == ["norm", "linear"] * 2  # measured, and under what its `except` did
    assert {one.verdict for one in heard.findings} == {"holds"}


class Rotator:
    """Its method is known by its object, which has no name in a file."""

    def rotate(self, x: Tensor, position_ids: Tensor) -> Tensor:
        return -x * (position_ids[:, None, :, None] + 1)


def test_what_an_assertion_is_given() -> None:
    asked = check_rotary(
        Rotator().rotate,
        ["norm"],
        dtype=torch.float64,
        device=torch.device("cpu"),
        methods=["measured"],
    )
    assert asked.dtypes == ("float64",)
    assert asked.law("norm").again.startswith(
        "attnproof.testing.check_rotary(<the same Rotator.rotate of test_manners.py"
    )
    for wrong, told in (
        ({"dtype": "float"}, "wanted a dtype to draw inputs in, got 'float'; float64"),
        ({"seed": -1}, "an integer of at least 0, got -1"),
        ({"seed": 1.5}, "an integer of at least 0, got 1.5"),
        ({"declared": DeclaredRotary(layout="neox")}, "layout is one of interleaved, half"),
    ):
        with pytest.raises(ValueError, match=told):
            check_rotary(Rotator().rotate, ["norm"], **wrong)
