"""Help and list are quick because they load neither torch nor SymPy."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

import pytest

import attnproof
from attnproof.commands.options import completed
from tests.cases import each
from tests.front.outputs import python

HEAVY = {"flint", "jinja2", "joblib", "matplotlib", "numpy", "rich", "sympy", "torch"}
HELP = [
    ["--help"],
    ["run", "--help"],
    ["claims", "--help"],
    ["check", "--help"],
    ["identify", "--help"],
    ["list", "--code-laws"],
    ["--version"],
]


def loaded(root: Path, *lines: str) -> list[set[str]]:
    """What is loaded after each of these lines of Python, one after the other in one process."""
    code = "".join(f"\n{line}\nprint(*sys.modules, file=sys.stderr)" for line in lines)
    told = python("-c", f"import sys{code}", cwd=root).stderr
    return [set(line.split()) for line in told.splitlines()]


def test_help_and_list_load_nothing_heavy(
    root: Path, write_theorem: Callable[..., Path], true_theorem: str
) -> None:
    """What one command loads, the next have as well: the light ones first, then what can fail."""
    path = write_theorem("loads_sympy", f"import sympy\n{true_theorem}")
    commands = [["list"], *HELP, ["list", "--encodings"], ["list", "--theorems", str(path)]]
    itself, alone, *light, package, asserting, encodings, theorems = loaded(
        root,
        "from attnproof.cli import main",
        *(f"main({words!r})" for words in commands[:-2]),
        "from attnproof import theorem, equal, softmax",
        "import attnproof.real_code.asserting, attnproof.testing",
        *(f"main({words!r})" for words in commands[-2:]),
    )
    assert not (HEAVY | {"pydantic"}) & (itself | alone)  # a command alone reads no options
    assert len(light) == len(HELP)
    assert [words for words, names in zip(HELP, light, strict=True) if HEAVY & names] == []
    assert not HEAVY & package
    assert "torch" not in asserting
    assert "pydantic" in encodings
    assert "sympy" in theorems


ANSWERS = """
import json, os, sys
from attnproof.cli import main
for shell in json.loads(sys.argv[1]):
    if os.fork() == 0:
        os.environ.update(shell)
        try:
            main([])
        except SystemExit:
            pass
        print(*sorted(set(sys.modules) & set(sys.argv[2:])), flush=True)
        os._exit(0)
    os.wait()
    print("--", flush=True)
"""
WORDS: list[tuple[str, list[str] | None]] = [
    ("attnproof ca", ["card", "calibrate"]),
    ("attnproof run --sca", ["--scale"]),
    ("attnproof check a.py::f --law relat", ["relative"]),
    ("attnproof show softmax-of-one", []),
    ("attnproof show attention-ignores", None),
    ("attnproof show B", None),
]
SHELLS = ("bash", "zsh", "fish")


def asking(words: str) -> dict[str, str]:
    """What bash asks for the last word with."""
    place = str(words.count(" "))
    return {"_ATTNPROOF_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": place}


@pytest.fixture(scope="module")
def answers(root: Path) -> dict[str, Sequence[str]]:
    """What a shell is answered, and in the last line the heavy libraries loaded for it."""
    asked = {words: asking(words) for words, _ in WORDS}
    asked |= {shell: {"_ATTNPROOF_COMPLETE": f"source_{shell}"} for shell in SHELLS}
    done = python("-c", ANSWERS, json.dumps([*asked.values()]), *HEAVY, cwd=root)
    told = done.stdout.split("--\n")[:-1]
    return {of: one.split("\n")[:-1] for of, one in zip(asked, told, strict=True)}


@pytest.mark.parametrize(("words", "wanted"), WORDS)
def test_a_shell_completes_words_without_anything_heavy(
    answers: dict[str, Sequence[str]], words: str, wanted: list[str] | None
) -> None:
    *names, heavy = answers[words]
    if wanted is not None:  # the ids of theorems and claims are read from their files
        assert [name for name in names if name] == wanted
        assert heavy == ""
    elif words.endswith("B"):
        assert "B1" in names
    else:
        assert "attention-ignores-the-order-of-pairs" in names


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_of_completion_names_the_command(
    answers: dict[str, Sequence[str]], shell: str
) -> None:
    *script, heavy = answers[shell]
    assert any("attnproof" in line and line.startswith(("complete", "compdef")) for line in script)
    assert heavy == ""


def test_names_that_cannot_be_read_are_not_offered() -> None:
    def broken() -> list[str]:
        raise OSError

    assert completed(broken)("a") == []
    assert completed(lambda: ["ab", "b"])("a") == ["ab"]


# The public names: on one page, lazily loaded, and visible to a type checker.


NAMES: list[str] = vars(attnproof)["__all__"]


def announced(root: Path) -> dict[str, str]:
    """Names and homes as a type checker reads them: ``as`` makes a name of a stub public."""
    tree = ast.parse((root / "attnproof" / "__init__.pyi").read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert len(imports) == len(tree.body) - 2
    return {alias.asname or "": node.module or "" for node in imports for alias in node.names}


def test_a_type_checker_sees_the_names_that_are_there(root: Path) -> None:
    assert announced(root) == attnproof._HOME
    assert set(NAMES) == {*attnproof._HOME, "__version__"}
    assert dir(attnproof) == sorted(NAMES)


@each([name for name in NAMES if name != "__version__"])
def test_every_name_is_the_object_of_its_home(name: str) -> None:
    home = import_module(f"attnproof.{attnproof._HOME[name]}")
    assert getattr(attnproof, name) is getattr(home, name)


def test_an_unknown_name_is_answered_with_those_there_are() -> None:
    with pytest.raises(AttributeError, match=r"attnproof has no 'atention'; it has .*attention"):
        getattr(attnproof, "atention")  # noqa: B009 (a type checker would refuse it)
