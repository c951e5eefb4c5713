"""Tests are handed to workers a few at a time, the longest first, and what belongs together whole.

A worker that dies takes only its test with it, even where both die at once.  So does one that
hangs: it is ended, and says where it was.
"""

from __future__ import annotations

import gc
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import conftest
from tests.cases import each

WHOLE = ("tests/front/test_cards.py", *conftest.WHOLE)
CHEAP = "tests/symbolic/test_terms.py"
LONG = "tests/attacks/test_false_theorems.py"
NODES = [f"{file}::test_it[{k}]" for file in (CHEAP, *WHOLE, LONG) for k in range(30)]


@pytest.mark.parametrize("part", [*conftest.FIRST, *conftest.WHOLE, *conftest.SINGLY])
def test_what_is_named_is_there(root: Path, part: str) -> None:
    assert (root / part).exists()


@pytest.mark.parametrize("file", WHOLE)
def test_a_file_that_makes_something_for_all_of_its_tests_is_one_unit(file: str) -> None:
    found = conftest.units(NODES)
    assert {found[node] for node in NODES if node.startswith(file)} == {file}


def test_short_tests_go_together_and_long_ones_alone() -> None:
    sizes = Counter(conftest.units(NODES).values())
    files = {
        unit: {n.partition("::")[0] for n in NODES if conftest.units(NODES)[n] == unit}
        for unit in sizes
    }
    assert all(len(held) == 1 for held in files.values())
    of = {file: sorted(n for u, n in sizes.items() if files[u] == {file}) for file in (CHEAP, LONG)}
    most = conftest.TOGETHER
    assert of[CHEAP] == sorted([most] * (30 // most) + [30 % most] * bool(30 % most))
    assert of[LONG] == [1] * 30


def test_the_longest_are_begun_first() -> None:
    order = sorted(NODES, key=conftest.place)
    assert order[0].startswith(conftest.WHOLE)
    assert order[-1].startswith(CHEAP)


@pytest.mark.parametrize("of_worker", [False, True])
def test_what_is_left_is_gone_through_where_it_is_told(
    monkeypatch: pytest.MonkeyPatch, *, of_worker: bool
) -> None:
    done: list[str] = []
    for name in ("collect", "freeze"):
        monkeypatch.setattr(gc, name, partial(done.append, name))
    config: Any = SimpleNamespace(**{"workerinput": {}} if of_worker else {})
    conftest.pytest_unconfigure(config)
    assert done == (["freeze"] if of_worker else ["collect", "freeze"])


DIES = """
import os, time, pytest

def hangs():
    while True:
        time.sleep(1)

@pytest.mark.parametrize("k", range(20))
def test_it(k):
    if k == {at}:
        {does}
"""


def test_workers_that_die_or_hang_are_replaced(root: Path, tmp_path: Path) -> None:
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    ours = settings["tool"]["pytest"]["ini_options"]
    assert ours["faulthandler_timeout"] > 0
    assert ours["faulthandler_exit_on_timeout"]
    shutil.copy(root / "tests" / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nfaulthandler_timeout = 5\nfaulthandler_exit_on_timeout = true\n",
        encoding="utf-8",
    )
    for name, at, does in (("a", 3, "os._exit(1)"), ("b", 2, "os._exit(1)"), ("c", 4, "hangs()")):
        text = DIES.format(at=at, does=does)
        (tmp_path / f"test_{name}.py").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-n",
            "2",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:attnproof",
            "--rootdir",
            str(tmp_path),
            str(tmp_path),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert "3 failed, 57 passed" in done.stdout, done.stdout + done.stderr
    assert "in hangs" in done.stderr


def test_a_test_of_many_cases_names_those_that_fail() -> None:
    def even(k: int) -> None:
        assert k % 2 == 0, "odd"

    each([0, 2])(even)()
    with pytest.raises(AssertionError, match="odd") as failed:
        each([0, 1, 2, 3])(even)()
    assert failed.value.__notes__ == ["case 1: 1\ncase 3: 3"]
    with pytest.raises(AssertionError, match="there is no case"):
        each([])(even)()


def test_what_should_have_been_raised_is_a_failure_of_its_case() -> None:
    def refused(text: str, kind: type[Exception]) -> None:
        with pytest.raises(kind):
            int(text)

    with pytest.raises(pytest.fail.Exception) as failed:
        each([("a", ValueError), ("1", ValueError)])(refused)()
    assert failed.value.__notes__ == ["case 1: ('1', <class 'ValueError'>)"]
