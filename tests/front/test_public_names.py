"""The public names: on one page, lazily loaded, and visible to a type checker."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

import attnproof

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


@pytest.mark.parametrize("name", [name for name in NAMES if name != "__version__"])
def test_every_name_is_the_object_of_its_home(name: str) -> None:
    home = import_module(f"attnproof.{attnproof._HOME[name]}")
    assert getattr(attnproof, name) is getattr(home, name)


def test_an_unknown_name_is_answered_with_those_there_are() -> None:
    with pytest.raises(AttributeError, match=r"attnproof has no 'atention'; it has .*attention"):
        getattr(attnproof, "atention")  # noqa: B009 (a type checker would refuse it)
