"""Help and list are quick because they load neither torch nor SymPy."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from attnproof.options import completed

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


def completion(root: Path, **shell: str) -> list[str]:
    """What a shell that asks for completion is answered, and last the heavy libraries loaded."""
    code = (
        "import atexit, sys; from attnproof.cli import main\n"
        f"atexit.register(lambda: print(sorted({HEAVY!r} & set(sys.modules))))\n"
        "main([])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        env={**os.environ, **shell},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split("\n")[:-1]


def offered(root: Path, *words: str) -> list[str]:
    """What bash is offered for the last word, and in the last line the heavy libraries loaded."""
    return completion(
        root,
        _ATTNPROOF_COMPLETE="complete_bash",
        COMP_WORDS=" ".join(words),
        COMP_CWORD=str(len(words) - 1),
    )


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("attnproof", "ca"), ["card", "calibrate"]),
        (("attnproof", "run", "--sca"), ["--scale"]),
        (("attnproof", "check", "a.py::f", "--law", "relat"), ["relative"]),
        (("attnproof", "show", "softmax-of-one"), []),
    ],
)
def test_a_shell_completes_words_without_anything_heavy(
    root: Path, words: tuple[str, ...], wanted: list[str]
) -> None:
    *names, heavy = offered(root, *words)
    assert [name for name in names if name] == wanted
    assert heavy == "[]"


def test_a_shell_completes_the_ids_of_theorems_and_claims(root: Path) -> None:
    ids = offered(root, "attnproof", "show", "attention-ignores")
    assert "attention-ignores-the-order-of-pairs" in ids
    assert "B1" in offered(root, "attnproof", "show", "B")


def test_names_that_cannot_be_read_are_not_offered() -> None:
    def broken() -> list[str]:
        raise OSError

    assert completed(broken)("a") == []
    assert completed(lambda: ["ab", "b"])("a") == ["ab"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_completion_names_the_command(root: Path, shell: str) -> None:
    *script, heavy = completion(root, _ATTNPROOF_COMPLETE=f"source_{shell}")
    assert any("attnproof" in line and line.startswith(("complete", "compdef")) for line in script)
    assert heavy == "[]"


@pytest.mark.parametrize(("more", "loads"), [((), False), (("--encodings",), True)])
def test_a_command_alone_reads_no_options(
    root: Path, more: tuple[str, ...], *, loads: bool
) -> None:
    code = f"from attnproof.cli import main; main({['list', *more]!r}); {LOADED}"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert ("pydantic" in done.stderr.split()) == loads


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
