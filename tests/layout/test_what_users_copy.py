"""The hook and the workflow for users' repositories are read, and what stands in them is run."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from attnproof.cli import main

HOOK = ".pre-commit-hooks.yaml"
FALSE = ("first * cos - second * sin", "first * cos + second * sin")


@pytest.fixture
def examples(root: Path) -> Path:
    return root / "docs" / "examples"


def workflow(examples: Path) -> dict[Any, Any]:
    read: dict[Any, Any] = yaml.safe_load((examples / "attnproof.yml").read_text(encoding="utf-8"))
    return read


def test_the_workflow_has_what_github_wants(examples: Path) -> None:
    read = workflow(examples)
    assert read[True] == ["push", "pull_request"]  # YAML 1.1 reads ``on`` as a truth value
    (job,) = read["jobs"].values()
    assert job["runs-on"]
    assert all(("uses" in step) != ("run" in step) for step in job["steps"])


def test_the_command_of_the_workflow_passes_and_can_fail(
    examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (job,) = workflow(examples)["jobs"].values()
    (command,) = (
        step["run"] for step in job["steps"] if step.get("run", "").startswith("attnproof")
    )
    code = (examples / "model.py").read_text(encoding="utf-8")
    assert FALSE[0] in code
    monkeypatch.chdir(tmp_path)
    words = [*shlex.split(command)[1:], "--law", "norm", "--store", "store"]
    for text, ended in ((code, 0), (code.replace(*FALSE), 1)):
        (tmp_path / "model.py").write_text(text, encoding="utf-8")
        assert main(words) == ended
        assert (tmp_path / "rope.json").exists()


def test_the_hook_is_one_and_passes_and_can_fail(
    root: Path,
    examples: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Pre-commit takes the hook out of a repository, and runs it in one of a user.

    There a script stands for the program: it writes down its words, and ends as these words end.
    """
    clientlib = pytest.importorskip("pre_commit.clientlib")
    (hook,) = clientlib.load_manifest(root / HOOK)
    assert hook["id"] == "attnproof-check"
    ours, theirs, programs = (tmp_path / name for name in ("ours", "theirs", "bin"))
    for folder in (ours, theirs, programs):
        folder.mkdir()
    program = programs / "attnproof"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > words\nexit "$ENDED"\n', encoding="utf-8")
    program.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PRE_COMMIT_HOME": str(tmp_path / "kept"),
    }

    def run(*words: str, at: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, cwd=at, env=environment, capture_output=True, text=True, check=False
        )

    def commit(at: Path) -> None:
        run("git", "init", "--quiet", at=at)
        run("git", "add", ".", at=at)
        author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        done = run("git", *author, "commit", "--quiet", "--no-verify", "-m", "one", at=at)
        assert done.returncode == 0, done.stderr

    (ours / HOOK).write_text((root / HOOK).read_text(encoding="utf-8"), encoding="utf-8")
    commit(ours)
    monkeypatch.chdir(theirs)
    revision = run("git", "rev-parse", "HEAD", at=ours).stdout.strip()
    used = {"id": "attnproof-check", "args": ["model.py::rope", "--law", "norm"]}
    config = {"repos": [{"repo": str(ours), "rev": revision, "hooks": [used]}]}
    (theirs / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    code = (examples / "model.py").read_text(encoding="utf-8")
    for text, ended in ((code, 0), (code.replace(*FALSE), 1)):
        (theirs / "model.py").write_text(text, encoding="utf-8")
        commit(theirs)
        environment["ENDED"] = str(ended)
        done = run(sys.executable, "-m", "pre_commit", "run", "--all-files", at=theirs)
        assert done.returncode == ended, done.stdout + done.stderr
        assert main((theirs / "words").read_text(encoding="utf-8").splitlines()) == ended
        assert ("broken" in capsys.readouterr().out) == bool(ended)
