"""The distributions: built from a copy, installed in an empty folder, and run from there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from email import message_from_bytes
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml

from attnproof import __version__
from attnproof.theorem_runs.catalogue import theorem_files

LAYERS = ("symbolic", "numeric", "theorems", "programs")
LEGAL = ("LICENSE", "attnproof/report/assets/OFL.txt")
WITH_IT = ("README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff")
PARTS = ("attnproof", *LAYERS, "pyproject.toml", "MANIFEST.in", *WITH_IT)


@pytest.fixture(scope="module")
def built(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution of the checkout, and the wheel that is built of it."""
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
    return built


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip installed the wheel, without what it depends on."""
    place = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*command, "--target", str(place), str(wheel)], check=True)
    return place


def test_the_source_distribution_holds_what_belongs_to_it(built: Path, root: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
        member = opened.extractfile(next(m for m in opened.getmembers() if "/LICENSE" in m.name))
        assert member is not None
        assert member.read() == (root / "LICENSE").read_bytes()
    assert {*WITH_IT, *LEGAL, "pyproject.toml"} <= names


def test_the_wheel_says_whose_it_is_and_what_it_is(wheel: Path) -> None:
    with ZipFile(wheel) as opened:
        (name,) = (n for n in opened.namelist() if n.endswith(".dist-info/METADATA"))
        told = message_from_bytes(opened.read(name))
    assert told["Version"] == __version__
    assert told["License-Expression"] == "Apache-2.0 AND OFL-1.1"
    assert sorted(told.get_all("License-File", [])) == sorted(LEGAL)
    assert told["Keywords"]
    assert told.get_all("Classifier")


def test_the_changelog_and_the_citation_are_of_this_version(root: Path) -> None:
    changes = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    assert changes.split("\n## [")[1].startswith(f"{__version__}]")
    cited = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == __version__
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
    assert __version__ in (root / "attnproof/__init__.py").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "printed"),
    [(("--version",), f"attnproof {__version__}"), (("list",), "attention-ignores-the-order")],
)
def test_the_installed_command_runs_in_an_empty_folder(
    installed: Path, tmp_path: Path, words: tuple[str, ...], printed: str
) -> None:
    (script,) = installed.glob("bin/attnproof")
    done = subprocess.run(
        [str(script), *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert printed in done.stdout


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


def test_an_installed_wheel_finds_its_theorems(root: Path, installed: Path, tmp_path: Path) -> None:
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
        "from attnproof.theorem_runs.ledger import load_ledger\n"
        "print(len(found.entries), len(load_ledger(found).documents))\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, str(installed)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == f"{wanted} {len(documents)}", done.stderr
