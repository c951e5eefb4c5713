"""Load the public names of a package when they are first used."""

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from sys import modules
from typing import Any


def lazy_names(package: str, text: Path) -> tuple[dict[str, str], Callable[[str], Any]]:
    """Return the module of each name that a stub file imports, and the package's ``__getattr__``.

    The names are written once, as imports that a type checker reads and nothing runs.

    >>> home, load = lazy_names("attnproof", Path(__file__).with_name("__init__.pyi"))
    >>> home["check"], load("check").__name__
    ('answers.programs', 'check')
    """
    home = {
        name.name: node.module or ""
        for node in ast.walk(ast.parse(text.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.level
        for name in node.names
    }

    def load(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"{package} has no {name!r}; it has {', '.join(sorted(home))}")
        value = getattr(import_module(f"{package}.{home[name]}"), name)
        vars(modules[package])[name] = value
        return value

    return home, load
