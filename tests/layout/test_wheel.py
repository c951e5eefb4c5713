"""The wheel: built from a copy, unpacked, and run from there."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from attnproof.catalogue import theorem_files

LAYERS = ("symbolic", "numeric", "theorems", "programs")
PARTS = ("attnproof", *LAYERS, "pyproject.toml", "README.md")


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of the checkout, by way of the source distribution, as pip would build it."""
    copy, built = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("built")
    for part in PARTS:
        if (root / part).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(root / part, copy / part, symlinks=True, ignore=ignored)
        else:
            shutil.copy(root / part, copy / part)
    done = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(built), str(copy)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = built.glob("*.whl")
    return found


def test_the_wheel_holds_every_file_of_the_checkout(root: Path, wheel: Path) -> None:
    wanted = {
        path.relative_to(root / "attnproof" if top == "attnproof" else root)
        for top in ("attnproof", *LAYERS)
        for path in (root / top).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".md"
    }
    names = [Path(name) for name in ZipFile(wheel).namelist() if ".dist-info" not in name]
    assert {name.relative_to("attnproof") for name in names} >= wanted


def test_nothing_but_attnproof_lands_in_site_packages(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"attnproof"}


def test_an_installed_wheel_finds_its_theorems(root: Path, wheel: Path, tmp_path: Path) -> None:
    ZipFile(wheel).extractall(tmp_path)
    texts = [path.read_text(encoding="utf-8") for path in theorem_files(root / "theorems")]
    wanted = sum(text.count("\n@theorem(") for text in texts)
    documents = list((root / "theorems").glob("claims/*.toml"))
    assert documents
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import attnproof, attnproof.symbolic.kernel as kernel\n"
        "assert attnproof.__file__.startswith(sys.argv[1]), attnproof.__file__\n"
        "assert kernel.__file__.startswith(sys.argv[1]), kernel.__file__\n"
        "found = attnproof.load_catalogue()\n"
        "assert not found.broken, found.broken\n"
        "from attnproof.ledger import load_ledger\n"
        "print(len(found.entries), len(load_ledger(found).documents))\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == f"{wanted} {len(documents)}", done.stderr
