"""A bare import of a layer would make a second kernel; it is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .test_packages import LAYERS


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
