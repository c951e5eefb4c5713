"""Ctrl-C leaves what was finished written."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from attnproof.errors import interrupts_delayed
from tests.front.outputs import WriteTheorem, begun, python, wait_for

# Sleeps while its statement is built, and says that it does.
SLOW = """
    import pathlib, time
    pathlib.Path(__file__).with_suffix(".started").touch()
    time.sleep(120)
"""


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupted_run_keeps_its_record_and_its_report(
    root: Path, write_theorem: WriteTheorem, true_theorem: str, tmp_path: Path, jobs: int
) -> None:
    doc = '"""The order of two summands does not matter."""'
    folder = write_theorem("a_quick").parent
    slow = write_theorem("b_slow", true_theorem.replace(doc, doc + SLOW))
    write_theorem("c_not_reached", true_theorem.replace(doc, doc + SLOW))
    file = tmp_path / "results.json"
    arguments = ["run", "mine", "--no-numeric", "--theorems", str(folder), "--json", str(file)]
    process = begun(root, *arguments, "--html", str(tmp_path / "report"), "--jobs", str(jobs))
    assert process.stderr is not None
    heard = process.stderr.readline()
    assert "a-quick" in heard, heard + process.stderr.read()
    wait_for(slow.with_suffix(".started"))
    os.killpg(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "interrupted; not reached: b-slow, c-not-reached" in out
    record = json.loads(file.read_text(encoding="utf-8"))
    assert [theorem["id"] for theorem in record["theorems"]] == ["a-quick"]
    assert record["unfinished"] == ["b-slow", "c-not-reached"]
    assert record["ok"] is False
    assert (tmp_path / "report" / "index.html").exists()


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupt_before_the_first_theorem_leaves_the_old_files(
    root: Path, write_theorem: WriteTheorem, true_theorem: str, tmp_path: Path, jobs: int
) -> None:
    doc = '"""The order of two summands does not matter."""'
    slow = write_theorem("a_slow", true_theorem.replace(doc, doc + SLOW))
    write_theorem("b_not_reached")
    old = [tmp_path / "results.json", tmp_path / "report" / "index.html"]
    for file in old:
        file.parent.mkdir(exist_ok=True)
        file.write_text("yesterday's")
    words = ["--json", str(old[0]), "--html", str(old[1].parent), "--jobs", str(jobs)]
    process = begun(root, "run", "mine", "--no-numeric", "--theorems", str(slow.parent), *words)
    wait_for(slow.with_suffix(".started"))
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "attnproof: interrupted before any theorem was finished; nothing written\n" in err
    assert "wrote" not in out
    assert [file.read_text() for file in old] == ["yesterday's"] * 2


# As Ctrl-C would, in the middle of an import: of typer, and of a library of the checker.
EARLY = """
import builtins, os, signal
real = builtins.__import__
def load(name, *rest):
    if name == {name!r}:
        builtins.__import__ = real
        os.kill(os.getpid(), signal.SIGINT)
    return real(name, *rest)
builtins.__import__ = load
from attnproof.cli import main
raise SystemExit(main(["run", "softmax", "--no-numeric"]))
"""


@pytest.mark.parametrize("name", ["typer", "pydantic", "numpy"])
def test_an_interrupt_at_the_start_is_one_line(root: Path, name: str) -> None:
    done = python("-c", EARLY.format(name=name), cwd=root, check=False)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "attnproof: interrupted\n"


def test_a_library_is_loaded_whole_before_an_interrupt_ends_the_command() -> None:
    done: list[str] = []

    def load() -> None:
        with interrupts_delayed():
            os.kill(os.getpid(), signal.SIGINT)
            done.append("loaded")

    with pytest.raises(KeyboardInterrupt):
        load()
    assert done == ["loaded"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
