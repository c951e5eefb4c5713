"""Ctrl-C leaves what was finished written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

WriteTheorem = Callable[..., Path]
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
    words = '"""The order of two summands does not matter."""'
    folder = write_theorem("a_quick").parent
    slow = write_theorem("b_slow", true_theorem.replace(words, words + SLOW))
    write_theorem("c_not_reached", true_theorem.replace(words, words + SLOW))
    file = tmp_path / "results.json"
    arguments = ["run", "mine", "--no-numeric", "--theorems", str(folder), "--json", str(file)]
    process = subprocess.Popen(
        [sys.executable, "-m", "attnproof", *arguments, "--html", str(tmp_path / "report"),
         "--jobs", str(jobs)],
        cwd=root, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert process.stderr is not None
    heard = process.stderr.readline()
    assert "a-quick" in heard, heard + process.stderr.read()
    _wait_for(slow.with_suffix(".started"))
    os.killpg(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted; not reached: b-slow, c-not-reached" in out
    record = json.loads(file.read_text(encoding="utf-8"))
    assert [theorem["id"] for theorem in record["theorems"]] == ["a-quick"]
    assert record["unfinished"] == ["b-slow", "c-not-reached"]
    assert record["ok"] is False
    assert (tmp_path / "report" / "index.html").exists()


def _wait_for(path: Path, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < end, f"{path.name} never came"
        time.sleep(0.05)
