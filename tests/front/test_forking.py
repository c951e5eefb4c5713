"""What is forked from a process that has the libraries is as a process that loads them itself."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from attnproof.cli import main
from attnproof.real_code import forking
from attnproof.real_code.forking import ForkServer
from attnproof.real_code.request import CodeRequest
from attnproof.real_code.running import Child, Process, Start
from tests.conftest import SPAWNED

OPEN = 8  # standard streams, the way to its findings, its input, and what looks
SEEN = """
import json, os, random
import numpy as np
told = {
    "folder": os.getcwd(),
    "word": os.environ.get("WORD"),
    "gone": os.environ.get("GONE"),
    "parent": os.getppid(),
    "leads": os.getsid(0) == os.getpid(),
    "random": [random.random(), np.random.rand()],
    "open": len(os.listdir("/proc/self/fd")),
}
with open(__file__ + ".json", "w") as out:
    json.dump(told, out)
"""


def seen(file: Path) -> Any:
    """What code saw of its process."""
    return json.loads(Path(f"{file}.json").read_text(encoding="utf-8"))


@contextmanager
def ended(start: Start, file: Path) -> Iterator[Process]:
    """A process that looks at a function of a file; nothing is left of it."""
    process = start(CodeRequest(target=f"{file}::f").text())
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()


@pytest.mark.parametrize("forks", [True, False])
def test_it_is_in_the_folder_and_the_environment_of_the_moment(
    fork_server: ForkServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, forks: bool
) -> None:
    start: Start = fork_server.started if forks else SPAWNED
    file = tmp_path / "seen.py"
    file.write_text(SEEN, encoding="utf-8")
    found = []
    monkeypatch.setenv("GONE", "not yet")
    for word, gone in (("one", "not yet"), ("another", None)):
        folder = tmp_path / word
        folder.mkdir()
        monkeypatch.chdir(folder)
        monkeypatch.setenv("WORD", word)
        with ended(start, file) as process:
            assert process.wait(300) == process.poll() == 0
            assert process.stdout is not None
            assert json.loads(process.stdout.read().splitlines()[-1]) == {"event": "ended"}
        found.append(seen(file))
        assert {"folder": str(folder), "word": word, "gone": gone}.items() <= found[-1].items()
        assert found[-1]["leads"]
        assert (found[-1]["parent"] == os.getpid()) == (not forks)
        monkeypatch.delenv("GONE", raising=False)
    first, second = found
    assert not set(first["random"]) & set(second["random"])
    assert first["open"] == second["open"] <= OPEN


@pytest.mark.parametrize(
    ("text", "code"), [("import os; os._exit(5)", 5), ("import os; os.abort()", -signal.SIGABRT)]
)
def test_how_it_ended_is_told(
    fork_server: ForkServer, tmp_path: Path, text: str, code: int
) -> None:
    file = tmp_path / "ends.py"
    file.write_text(text, encoding="utf-8")
    with ended(fork_server.started, file) as process:
        assert process.wait(300) == code


def test_it_runs_until_it_is_killed(fork_server: ForkServer, tmp_path: Path) -> None:
    file = tmp_path / "runs.py"
    file.write_text("while True: pass", encoding="utf-8")
    with ended(fork_server.started, file) as process:
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.1)
        process.kill()
        assert process.wait(300) == -signal.SIGKILL


def test_one_that_leads_no_group_yet_is_killed(
    fork_server: ForkServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody(pid: int, number: int) -> None:
        raise ProcessLookupError(pid, number)

    file = tmp_path / "runs.py"
    file.write_text("while True: pass", encoding="utf-8")
    monkeypatch.setattr(os, "killpg", nobody)
    child = Child(CodeRequest(target=f"{file}::f"), fork_server.started)
    child.kill()
    assert child.process.poll() == -signal.SIGKILL


def test_where_none_can_be_forked_one_is_spawned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forking, "SERVE", "")
    file = tmp_path / "seen.py"
    file.write_text(SEEN, encoding="utf-8")
    with ForkServer() as server:
        for _ in range(2):
            with ended(server.started, file) as process:
                assert process.wait(300) == 0
                assert seen(file)["parent"] == os.getpid()


def test_one_target_is_spawned_and_several_are_forked(
    tmp_path: Path, spawned: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    del spawned
    begun, begins = set(), ForkServer._begun

    def noted(self: ForkServer) -> socket.socket:
        begun.add(self)
        return begins(self)

    monkeypatch.setattr(ForkServer, "_begun", noted)
    files = [tmp_path / f"{name}.py" for name in "ab"]
    for file in files:
        file.write_text(SEEN, encoding="utf-8")
    for count, servers in ((1, 0), (2, 1)):
        assert main(["check", "--fresh", *(f"{file}::f" for file in files[:count])]) == 2
        assert len(begun) == servers
        assert [seen(file)["parent"] == os.getpid() for file in files[:count]] == [
            not servers
        ] * count
