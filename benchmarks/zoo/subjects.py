"""What the zoo checks: ``subjects.toml``, and every rotary class of transformers.

A table of the file is a library: ``packages``, whose versions are on its page; ``lines``, of each
subject what follows ``attnproof check``; ``uncalled``, of each subject that no line calls the
reason, though earlier results of it may be stored.

transformers repeats a rotary class in every model that uses it.  Each source is checked once: two
are the same code if their text, and that of the functions in their file with rotary or rotate in
their name, is equal but for the names of models, and if their configs choose the same function
among those.  Llama's class is checked for all of its copies; of others the first by name.
"""

from __future__ import annotations

import ast
import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).with_name("subjects.toml")
BEST_KNOWN = ("LlamaRotaryEmbedding",)
CLASS = re.compile(r"^class (\w*Rotary\w*)\(", re.MULTILINE)
# The setting by which a config chooses the function that rotates neighbouring channels.
CHOOSES = re.compile(r"^\s*rope_interleave\b[^=\n]*=\s*(\w+)", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Library:
    """The subjects of a library; ``same``: the classes for whose code a subject stands."""

    name: str
    packages: tuple[str, ...]
    lines: dict[str, str] = field(default_factory=dict)
    uncalled: dict[str, str] = field(default_factory=dict)
    same: dict[str, tuple[str, ...]] = field(default_factory=dict)


def libraries(path: Path = HERE) -> dict[str, Library]:
    """Return the libraries of the file.  Raises ``TypeError`` for an unknown key."""
    told = tomllib.loads(path.read_text(encoding="utf-8"))
    return {
        name: Library(**{**one, "name": name, "packages": tuple(one["packages"])})
        for name, one in told.items()
    }


def rotary_classes() -> tuple[tuple[str, str], ...]:
    """Return (module, class) for every class with Rotary in its name, without importing any.

    Raises ``ImportError`` if transformers is not installed.
    """
    import transformers

    root = Path(transformers.__file__).parent
    return tuple(
        (".".join(["transformers", *path.relative_to(root).with_suffix("").parts]), name)
        for path in sorted(root.glob("models/*/modeling_*.py"))
        for name in CLASS.findall(path.read_text(encoding="utf-8"))
    )


def with_rotary_classes(library: Library) -> Library:
    """Return transformers with a line for each source of a rotary class that has none.

    Raises ``ImportError`` if transformers is not installed.
    """
    found = by_source()
    lines = {name: f"{module}::{name} --as rotary" for module, name in found}
    return Library(
        **{
            **vars(library),
            "lines": {**lines, **library.lines},
            "same": {name: others for (_, name), others in found.items() if others},
        }
    )


@cache
def by_source() -> dict[tuple[str, str], tuple[str, ...]]:
    """(module, class) of the first class of each source, with the names of its copies."""
    first: dict[str, tuple[str, str]] = {}
    found: dict[tuple[str, str], list[str]] = {}
    for module, name in sorted(rotary_classes(), key=lambda place: place[1] not in BEST_KNOWN):
        text = _text(module, name)
        if text not in first:
            first[text] = (module, name)
            found[module, name] = []
        else:
            found[first[text]].append(name)
    return {place: tuple(names) for place, names in found.items()}


def _text(module: str, name: str) -> str:
    """The code of a class and of the functions that rotate, less comments and names of models."""
    tree = ast.parse(_source(module))
    model = name.partition("Rotary")[0]
    parts = []
    for node in tree.body:
        rotates = isinstance(node, ast.FunctionDef) and re.search("rotary|rotate", node.name)
        if rotates or (isinstance(node, ast.ClassDef) and node.name == name):
            for inner in ast.walk(node):
                body = getattr(inner, "body", None)
                if isinstance(body, list) and body and _is_docstring(body[0]):
                    inner.body = body[1:] or [ast.Pass()]  # type: ignore[attr-defined]
            parts.append(ast.unparse(node))
    text = "\n".join([*sorted(parts), *_chosen(module)])
    return re.sub(rf"\b{model}\w*?(Config|Rotary)", r"Model\1", text) if model else text


def _chosen(module: str) -> list[str]:
    """What the config of the model says of the function that rotates, if it says something."""
    place = module.replace(".modeling_", ".configuration_")
    return CHOOSES.findall(_source(place)) if place != module and find_spec(place) else []


def _source(module: str) -> str:
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).read_text(encoding="utf-8")


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
