"""Help and list are quick because they load neither torch nor SymPy."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

WriteTheorem = Callable[..., Path]
HEAVY = {"flint", "jinja2", "joblib", "matplotlib", "numpy", "rich", "sympy", "torch"}
LOADED = "import sys; print(*sys.modules, sep='\\n', file=sys.stderr)"


def loaded(root: Path, *arguments: str) -> set[str]:
    """The heavy libraries in ``sys.modules`` after a command, in a process of its own."""
    code = f"from attnproof.cli import main; main({list(arguments)!r}); {LOADED}"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    return HEAVY & set(done.stderr.split())


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["run", "--help"],
        ["claims", "--help"],
        ["check", "--help"],
        ["identify", "--help"],
        ["list"],
        ["list", "--code-laws"],
        ["--version"],
    ],
)
def test_help_and_list_load_nothing_heavy(root: Path, arguments: list[str]) -> None:
    assert loaded(root, *arguments) == set()


def test_this_test_can_fail(root: Path, write_theorem: WriteTheorem, true_theorem: str) -> None:
    path = write_theorem("loads_sympy", f"import sympy\n{true_theorem}")
    assert "sympy" in loaded(root, "list", "--theorems", str(path))


def test_the_command_line_itself_loads_no_records(root: Path) -> None:
    code = f"import attnproof.cli; {LOADED}"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert not (HEAVY | {"pydantic"}) & set(done.stderr.split())


def test_importing_the_package_loads_nothing_heavy(root: Path) -> None:
    code = f"import attnproof; from attnproof import theorem, equal, softmax; {LOADED}"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert not HEAVY & set(done.stderr.split())
