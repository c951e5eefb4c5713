"""What is installed: every sub-package, every asset, and nothing at the top but attnproof."""

from __future__ import annotations

import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

LAYERS = ("symbolic", "numeric", "theorems", "programs")


@pytest.fixture(scope="module")
def setuptools(root: Path) -> dict[str, Any]:
    """The packaging part of pyproject.toml."""
    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    found: dict[str, Any] = tomllib.loads(text)["tool"]["setuptools"]
    return found


def packages(root: Path) -> set[str]:
    """The packages that the folders hold: those with a Python file in them."""
    found = {"attnproof"}
    for path in (root / "attnproof").glob("*/*.py"):
        if not path.parent.is_symlink():
            found.add(f"attnproof.{path.parent.name}")
    for layer in LAYERS:
        for path in (root / layer).rglob("*.py"):
            found.add(".".join(("attnproof", *path.parent.relative_to(root).parts)))
    return found


def test_the_package_list_is_what_the_folders_hold(root: Path, setuptools: dict[str, Any]) -> None:
    assert sorted(setuptools["packages"]) == sorted(packages(root)), "mend pyproject.toml"
    assert setuptools["packages"] == sorted(setuptools["packages"])


def test_a_package_that_is_not_listed_would_be_seen(tmp_path: Path) -> None:
    for folder in ("attnproof", *LAYERS, "symbolic/new"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").touch()
    assert "attnproof.symbolic.new" in packages(tmp_path)


def test_every_package_has_an_init(root: Path) -> None:
    for name in packages(root):
        folder = root / name.replace(".", "/")
        assert (folder / "__init__.py").exists(), name


def test_the_layers_are_links_that_work(root: Path, setuptools: dict[str, Any]) -> None:
    for layer in LAYERS:
        link = root / "attnproof" / layer
        assert link.is_symlink()
        assert not link.readlink().is_absolute()
        assert link.resolve() == root / layer
        assert setuptools["package-dir"][f"attnproof.{layer}"] == layer


def test_every_asset_is_package_data(root: Path, setuptools: dict[str, Any]) -> None:
    for name in packages(root):
        folder = root / name.replace(".", "/")
        inner = {other.removeprefix(name + ".").split(".")[0] for other in packages(root)}
        for path in folder.rglob("*"):
            place = path.relative_to(folder)
            if path.is_dir() or "__pycache__" in place.parts or path.suffix in (".py", ".md"):
                continue
            if place.parts[0] in {*inner, *LAYERS}:
                continue
            patterns = setuptools["package-data"].get(name, [])
            assert any(fnmatch(str(place), p) for p in patterns), f"{name}: {place}"


def test_no_folder_of_the_root_hides_the_standard_library(root: Path) -> None:
    assert not (root / "encodings").exists()
