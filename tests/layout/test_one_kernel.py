"""There is one kernel: a bare import would make a second one, and it loads no search."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.trusted_mutants import TRUSTED

from .test_packages import LAYERS

KERNEL = sorted(name for name, functions in TRUSTED.items() if not functions)
PLAIN = {"symbolic/derivation.py", "symbolic/budget.py"}  # data that is checked, and a clock


def test_a_bare_import_makes_a_second_class_of_proofs(root: Path) -> None:
    code = (
        "import symbolic.kernel as bare, attnproof.symbolic.kernel as whole\n"
        "print(bare.Proof is whole.Proof)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def banned(root: Path, text: str, name: str = "attnproof/new.py") -> str:
    """What ruff says of a file with this text."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "ruff",
            "check",
            "--no-cache",
            "--select",
            "TID251",
            "--output-format",
            "concise",
            "--stdin-filename",
            name,
            "-",
        ],
        cwd=root,
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


@pytest.mark.parametrize(
    "text",
    [
        "import symbolic.kernel\n",
        "from symbolic.kernel import Proof\n",
        "import numeric\n",
        "from theorems.definitions.attention import attention\n",
    ],
)
def test_ruff_refuses_a_bare_import(root: Path, text: str) -> None:
    assert "TID251" in banned(root, text)


def test_ruff_refuses_it_inside_a_layer_too(root: Path) -> None:
    text = "from symbolic.kernel import Proof\n"
    assert "TID251" in banned(root, text, "attnproof/symbolic/new.py")


def test_ruff_accepts_the_whole_name(root: Path) -> None:
    text = "from attnproof.symbolic.kernel import Proof\nfrom .terms import Term\n"
    assert "TID251" not in banned(root, text, "attnproof/symbolic/new.py")


def test_no_file_has_a_bare_import(root: Path) -> None:
    folders = ["attnproof", *(f"attnproof/{name}" for name in LAYERS)]
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--no-cache", "--select", "TID251", *folders],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_one_page_lists_the_trusted_files(root: Path) -> None:
    page = (root / "symbolic" / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([\w/]+\.py)` \|[^|]*\|$", page, re.MULTILINE)
    assert sorted(f"symbolic/{name}" for name in listed) == KERNEL
    sentence = page[page.index("The functions `granted`") : page.index("are trusted as well")]
    functions = set(re.findall(r"`(\w+)`", sentence))
    assert functions == {*TRUSTED["symbolic/prove.py"], "misreading"}


def imported(root: Path, name: str, text: str | None = None) -> set[str]:
    """The files of ours that a file loads when it is loaded."""
    folder = Path(name).parent
    found = set[str]()
    for node in ast.parse(text or (root / name).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.level:
            start = folder if node.level == 1 else folder.parent
            modules = [node.module] if node.module else [one.name for one in node.names]
            for module in modules:
                path = start / module.replace(".", "/")
                file = path.with_suffix(".py")
                found.add(str(file if (root / file).exists() else path / "__init__.py"))
    return found


def test_what_is_trusted_loads_nothing_that_searches(root: Path) -> None:
    for name in KERNEL:
        assert imported(root, name) <= {*KERNEL, *PLAIN}, name
    search = imported(root, "symbolic/rules/signs.py", "from ..normal_form import sums")
    assert not search <= {*KERNEL, *PLAIN}
