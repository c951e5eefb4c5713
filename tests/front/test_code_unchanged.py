"""Unchanged code is answered from the store; a changed file, version or flag is looked at again."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from attnproof.cli import main
from attnproof.real_code import targets
from attnproof.real_code.request import CodeRequest
from attnproof.real_code.targets import key_of, sources_loaded
from tests.front.outputs import python

CODE = """
import torch
from helper_of_this import factor


def doubled(x):
    return x * factor
"""
QUICK = """
import sys
from attnproof.cli import main
code = main({arguments!r})
print("loaded:", *sorted({{"torch", "sympy", "numpy"}} & set(sys.modules)), file=sys.stderr)
sys.exit(code)
"""
FROM_STORE = "(unchanged since "
ASKED = ["--as", "layer", "--law", "rows-of-batch-apart"]


@pytest.fixture
def target(tmp_path: Path) -> str:
    """Code that imports a helper beside it, both written a while ago."""
    (tmp_path / "helper_of_this.py").write_text("factor = 2.0\n", encoding="utf-8")
    (tmp_path / "mine.py").write_text(CODE, encoding="utf-8")
    for name in ("helper_of_this.py", "mine.py"):
        aged(tmp_path / name)
    return f"{tmp_path / 'mine.py'}::doubled"


def aged(path: Path) -> None:
    before = time.time() - 60
    os.utime(path, (before, before))


def checked(target: str, capsys: pytest.CaptureFixture[str], *more: str) -> bool:
    """Whether a check was answered from the store."""
    assert main(["check", target, *ASKED, *more]) == 0
    return FROM_STORE in capsys.readouterr().out


def test_code_of_an_installed_library_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    target = "torch.nn.functional::normalize"
    assert not checked(target, capsys)
    assert checked(target, capsys)


def test_unchanged_code_is_not_run_again(
    root: Path, target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not checked(target, capsys)
    assert checked(target, capsys)
    assert not checked(target, capsys, "--fresh")
    code = QUICK.format(arguments=["check", target, *ASKED])
    done = python("-c", code, cwd=root)
    assert FROM_STORE in done.stdout
    assert done.stderr.splitlines()[-1] == "loaded:"

    helper = tmp_path / "helper_of_this.py"
    helper.write_text("factor = 3.0\n", encoding="utf-8")
    aged(helper)  # it has the time and the length of the old one
    assert not checked(target, capsys)
    assert checked(target, capsys)
    helper.unlink()
    assert main(["check", target, *ASKED]) == 2
    assert FROM_STORE not in capsys.readouterr().out


def test_what_was_written_while_it_ran_is_not_kept(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ahead = time.time() + 600
    os.utime(tmp_path / "helper_of_this.py", (ahead, ahead))
    assert not checked(target, capsys)
    assert not checked(target, capsys)


def test_the_key_has_what_was_asked_and_what_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = CodeRequest(target="mine.py::f")
    keys = {key_of(asked).digest}
    assert key_of(asked).digest in keys
    for other in (
        CodeRequest(target="mine.py::g"),
        CodeRequest(target="mine.py::f", seed=1),
        CodeRequest(target="mine.py::f", strict=True),
        CodeRequest(target="mine.py::f", settings=("a=1",)),
        CodeRequest(target="mine.py::f", call="x: B n E -> x"),
        CodeRequest(target="mine.py::f", limit=3.0),
    ):
        keys.add(key_of(other).digest)
    monkeypatch.setattr(targets, "_installed", lambda: ["torch-9.9.dist-info 0"])
    keys.add(key_of(asked).digest)
    monkeypatch.setattr(targets, "_own", lambda: "other sources")
    keys.add(key_of(asked).digest)
    monkeypatch.chdir(tmp_path)
    keys.add(key_of(asked).digest)
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    keys.add(key_of(asked).digest)
    assert len(keys) == 11


def test_a_module_that_loads_itself_when_it_is_looked_at_is_not_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Lazy(ModuleType):
        def __getattr__(self, name: str) -> object:
            raise ImportError(f"{name} of what is not installed")

    monkeypatch.setitem(sys.modules, "lazy", Lazy("lazy"))
    assert sources_loaded(__file__)
