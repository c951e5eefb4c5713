"""The pytest plugin: options, a line in the header, verdicts in JUnit XML, and nothing heavy."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from attnproof import __version__

pytest_plugins = ["pytester"]

HEAVY = ("torch", "sympy", "numpy", "pydantic", "rich", "typer", "flint")

TEST = """
from attnproof.programs.subjects import Rotary
from attnproof.testing import check_rotary

def test_rope():
    subject = Rotary(name="rope", rotate=lambda x, positions: x, width=8)
    record = check_rotary(subject, ["norm", "linear"], name="rope", methods=["measured"])
    print(record.seed, *record.dtypes, record.device)
"""


def inside(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Run pytest in a process of its own, with the plugin that is installed."""
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments)


def test_the_entry_point_is_this_plugin() -> None:
    (point,) = [p for p in entry_points(group="pytest11") if p.name == "attnproof"]
    assert point.value == "attnproof.pytest_plugin"


def test_the_header_has_one_line(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_nothing(): pass")
    result = inside(pytester, "--attnproof-seed", "4", "--attnproof-dtype", "bfloat16")
    result.stdout.fnmatch_lines([f"attnproof {__version__}: seed 4, bfloat16, cpu"])
    result.assert_outcomes(passed=1)


FAILING = """
import logging
from attnproof.programs.subjects import Rotary
from attnproof.testing import assert_rotary

def test_rope():
    import torch  # its logger has handlers then

    before = [h for h in logging.getLogger("torch.__trace").handlers if "Log" in repr(h)]
    subject = Rotary(name="rope", rotate=lambda x, positions: x * (x > 0), width=8)
    try:
        assert_rotary(subject, ["linear"], name="rope")
    finally:
        now = logging.getLogger("torch.__trace").handlers
        print("kept:", bool(before) and set(before) <= set(now))

def test_law():
    assert_rotary(None, ["liner"])
"""


def test_verdicts_are_properties_and_a_failure_shows_the_law_alone(
    pytester: pytest.Pytester, tmp_path: Path
) -> None:
    """Nothing that torch writes of its graphs is shown."""
    pytester.makepyfile(test_good=TEST, test_bad=FAILING)
    xml = tmp_path / "junit.xml"
    told = ("--attnproof-seed", "4", "--attnproof-dtype", "float64", f"--junitxml={xml}")
    result = inside(pytester, "-rP", *told)
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*4 float64 cpu*"])
    result.stdout.fnmatch_lines(["*rope breaks a law of rotary code", "kept: True"])
    result.stdout.fnmatch_lines(["*got 'liner'; nearest: linear*"])
    result.stdout.no_fnmatch_line("*torch.__trace:*")
    result.stdout.no_fnmatch_line("*def known_laws*")
    (good,) = (one for one in ET.parse(xml).iter("testcase") if one.get("classname") == "test_good")
    found = {one.get("name"): one.get("value") for one in good.iter("property")}
    assert found == {"attnproof.rope.norm": "measured", "attnproof.rope.linear": "measured"}


def test_a_seed_that_is_none_is_a_usage_error(pytester: pytest.Pytester) -> None:
    result = inside(pytester, "--attnproof-seed", "-1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*wanted an integer of at least 0, got '-1'*"])


def loaded(root: Path, folder: Path, text: str) -> set[str]:
    """The heavy libraries that a run of pytest with the plugin has loaded at its end."""
    (folder / "test_it.py").write_text(text, encoding="utf-8")
    code = (
        "import sys, pytest\n"
        f"code = pytest.main(['-q', '-p', 'no:cacheprovider', {str(folder)!r}])\n"
        "assert 'attnproof.pytest_plugin' in sys.modules\n"
        f"print('loaded:', *(name for name in {HEAVY} if name in sys.modules))\n"
        "sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        env={
            "PYTHONPATH": str(root),
            "PATH": "",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_PLUGINS": "attnproof.pytest_plugin",
        },
    )
    return set(done.stdout.splitlines()[-1].split()[1:])


def test_the_plugin_loads_nothing_heavy(root: Path, tmp_path: Path) -> None:
    assert loaded(root, tmp_path, "def test_nothing(): pass\n") == set()


def test_this_test_can_fail(root: Path, tmp_path: Path) -> None:
    assert "numpy" in loaded(root, tmp_path, "def test_numpy():\n    import numpy\n")
