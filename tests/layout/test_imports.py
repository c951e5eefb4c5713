"""Imports run one way: theorems and numeric use symbolic, the front door uses all."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

import attnproof
from attnproof import programs
from tests.cases import each

STANDARD = set(sys.stdlib_module_names)
LAYERS = ("symbolic", "numeric", "theorems", "programs")
FRONT = "attnproof"

# What a layer may import beside the standard library and itself.
ALLOWED = {
    # How a package loads its names imports nothing itself.
    "symbolic": {"attnproof.lazy_names", "sympy", "flint", "numpy", "array_api_compat"},
    "definitions": {"attnproof.symbolic", "array_api_compat"},
    # `equal` of arrays is symbolic's; of programs the front door's, which it loads when asked.
    "theorems": {"attnproof.symbolic", "attnproof.answers.equality", "array_api_compat"},
    "demonstrations": {
        "attnproof.numeric.demonstration",
        "attnproof.theorems.definitions",
        "numpy",
    },
    "numeric": {
        "attnproof.symbolic",
        "attnproof.theorems.definitions",
        "numpy",
        "torch",
        "array_api_compat",
        "flint",
        "pydantic",
        "sympy",
        "transformers",
    },
    "programs": {
        "attnproof.symbolic",
        "attnproof.numeric",
        "attnproof.theorems.definitions",
        "attnproof.theorems.laws",
        "attnproof.documents.verdict_line",
        "numpy",
        "torch",
        "array_api_compat",
        "pydantic",
        "sympy",
        "transformers",
    },
}

# Parts of programs, and the parts that they may not import: what they share stands beside them.
METHODS = ("prove", "exact", "measure")
APART = {
    **{one: {"equal", "identify", *METHODS} - {one} for one in (*METHODS, "identify")},
    "reading": {"equal", "identify", *METHODS},
    "": {"equal", "identify", "reading", *METHODS},
    "equal": set(),  # it asks all methods
}

# Parts of programs and of the front door from the first to the last: each imports only parts that
# stand before it.
ORDER = (
    {"ORDER", "aten", "code", "declarations", "finding", "subjects"},
    *({name} for name in programs.ORDER),
)
FRONT_ORDER = (
    {"__version__", "lazy_names", "errors"},
    {"documents"},
    {"theorem_runs"},
    {"encoding"},
    {"laws"},
    {"cards"},
    {"sweeping"},
    {"real_code"},
    {"report"},
    {"answers"},
    {"testing", "pytest_plugin", "encodings"},  # as users would write them
    {"commands"},
    {"cli"},
    {"__main__"},
)


def module_of(path: Path, root: Path) -> str:
    """The name a file is imported by."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join((FRONT, *parts) if parts[0] in LAYERS else parts)


@cache
def imports_in(text: str) -> list[ast.Import | ast.ImportFrom]:
    """The imports of a file, wherever they stand in it."""
    return [x for x in ast.walk(ast.parse(text)) if isinstance(x, ast.Import | ast.ImportFrom)]


def imported(text: str, module: str, *, package: bool = False) -> Iterator[str]:
    """The absolute name of every import in a file; those for a type checker only as well."""
    home = module.split(".") if package else module.split(".")[:-1]
    for node in imports_in(text):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            start = home[: len(home) - node.level + 1] if node.level else []
            if not node.module:
                yield from (".".join((*start, alias.name)) for alias in node.names)
                continue
            name = ".".join((*start, node.module))
            public = [attnproof._HOME.get(alias.name) for alias in node.names]
            yield from (f"{name}.{other}" if name == FRONT and other else name for other in public)


def layer_of(module: str) -> str:
    """The layer of a module; definitions and demonstrations are theorems only by their folder."""
    parts = module.split(".")
    if parts[:2] == [FRONT, "theorems"] and parts[2:3] in (["definitions"], ["demonstrations"]):
        return parts[2]
    return parts[1] if parts[1:2] and parts[1] in LAYERS else FRONT


def wrong_way(text: str, module: str, *, package: bool = False) -> list[str]:
    """The imports of a file that its layer may not have."""
    layer = layer_of(module)
    if layer == FRONT:
        return []
    inner = layer in ("definitions", "demonstrations")
    own = f"attnproof.theorems.{layer}" if inner else f"attnproof.{layer}"
    allowed = {own, *ALLOWED[layer]}
    return [
        name
        for name in imported(text, module, package=package)
        if name.split(".")[0] not in STANDARD and not _within(name, allowed)
    ]


def part_of(module: str) -> str | None:
    """The part of programs that a module is of, "" beside them all; None elsewhere."""
    parts = module.split(".")
    if parts[:2] != [FRONT, "programs"]:
        return None
    return parts[2] if parts[2:3] and parts[2] in APART else ""


def crossing(text: str, module: str, *, package: bool = False) -> list[str]:
    """The imports of a file of programs by which one method would know another."""
    part = part_of(module)
    if part is None:
        return []
    names = imported(text, module, package=package)
    return [name for name in names if part_of(name) in APART[part]]


def place_of(module: str) -> tuple[str, int]:
    """The folder of a module, and its place in the order of that; beyond it for other parts."""
    folder = layer_of(module)
    order = {FRONT: FRONT_ORDER, "programs": ORDER}.get(folder, ())
    part = [*module.split("."), "", ""][1 if folder == FRONT else 2]
    return folder, next((k for k, parts in enumerate(order) if part in parts), len(order))


def backward(text: str, module: str, *, package: bool = False) -> list[str]:
    """The imports of a file of programs or of the front door from parts behind its own."""
    names = (n for n in imported(text, module, package=package) if n.startswith(f"{FRONT}."))
    folder, own = place_of(module)
    return [name for name in names if place_of(name)[0] == folder and place_of(name)[1] > own]


def _within(name: str, allowed: set[str]) -> bool:
    return any(name == one or name.startswith(one + ".") for one in allowed)


def files(root: Path) -> Iterator[Path]:
    """The files of the layers, and those of the front door, which holds links to the layers."""
    for layer in LAYERS:
        yield from sorted((root / layer).rglob("*.py"))
    yield from sorted((root / FRONT).glob("*.py"))
    yield from sorted(p for p in (root / FRONT).glob("*/*.py") if not p.parent.is_symlink())


@pytest.mark.parametrize("refused", [wrong_way, crossing, backward])
def test_imports_run_one_way_and_methods_do_not_know_each_other(
    root: Path, refused: Callable[..., list[str]]
) -> None:
    found = {
        str(path.relative_to(root)): wrong
        for path in files(root)
        if (
            wrong := refused(
                path.read_text(encoding="utf-8"),
                module_of(path, root),
                package=path.name == "__init__.py",
            )
        )
    }
    assert not found


@each(
    [
        ("from ..measure.base import Probe", "attnproof.programs.reading.applicability", True),
        ("from ..exact import exact", "attnproof.programs.prove.gate", True),
        ("def f():\n    from ..prove import prove", "attnproof.programs.measure.base", True),
        ("from .measure.base import Probe", "attnproof.programs.applicable_laws", True),
        ("from ..equal.pair import two", "attnproof.programs.prove.gate", True),
        ("from ..prove import prove", "attnproof.programs.equal.deciding", False),
        ("from .identify import identify", "attnproof.programs.applicable_laws", True),
        ("from ..identify.rotary import x", "attnproof.programs.measure.base", True),
        ("from ..identify.rotary import x", "attnproof.programs.reading.calls", True),
        ("from .reading.calls import calls_of", "attnproof.programs.applicable_laws", True),
        ("from ..reading.applicability import no_formula", "attnproof.programs.exact.laws", False),
        ("from ..draw import Draw", "attnproof.programs.reading.applicability", False),
        ("from ..programs.measure.base import FINITE", "attnproof.real_code.checking", False),
    ]
)
def test_a_crossing_import_is_caught(text: str, module: str, wrong: bool) -> None:
    assert bool(crossing(text, module)) == wrong


@each(
    [
        ("from ..calls.masks import x", "attnproof.programs.loading.building", True),
        ("def f():\n    from ..call_forms import rotary", "attnproof.programs.calls.rotary", True),
        ("from ..adapting import adapt", "attnproof.programs.call_forms.rotary", True),
        ("from .signatures.grammar import parse", "attnproof.programs.code", True),
        ("from ..code import Code", "attnproof.programs.signatures.layout", False),
        ("from ..loading.building import code_of", "attnproof.programs.calls.tables", False),
        ("from ..calls.masks import x", "attnproof.programs.measure.base", False),
        ("from .. import adapting", "attnproof.programs.calls.masks", True),
        ("from ..theorem_runs import runner", "attnproof.documents.evidence", True),
        ("from attnproof import check", "attnproof.real_code.table", True),
        ("def f():\n    from ..answers.cards import x", "attnproof.cards.table", True),
        ("from .. import __version__", "attnproof.theorem_runs.runner", False),
        ("from attnproof import Encoding", "attnproof.encodings.rope", False),
        ("from ..programs.code import Code", "attnproof.real_code.checking", False),
    ]
)
def test_an_import_from_behind_is_caught(text: str, module: str, wrong: bool) -> None:
    assert bool(backward(text, module)) == wrong


def test_each_part_of_the_front_door_has_a_place(root: Path) -> None:
    names = {module_of(path, root) for path in files(root) if path.is_relative_to(root / FRONT)}
    names -= {f"{FRONT}.__init__"}
    assert {place_of(name)[1] for name in names} == set(range(len(FRONT_ORDER)))


@each(
    [
        ("import torch", "attnproof.symbolic.kernel"),
        ("from ..numeric import check", "attnproof.symbolic.kernel"),
        ("from attnproof.theorem_runs.records import Results", "attnproof.numeric.check"),
        ("from ..theorems.softmax import x", "attnproof.numeric.check"),
        ("from attnproof.numeric.check import measure", "attnproof.theorems.softmax"),
        ("from attnproof import measure", "attnproof.theorems.softmax"),
        ("from ..softmax import x", "attnproof.theorems.definitions.attention"),
        ("import numpy", "attnproof.theorems.softmax"),
        ("import torch", "attnproof.theorems.demonstrations.x"),
        ("def f():\n    import torch", "attnproof.symbolic.kernel"),
        ("import symbolic.kernel", "attnproof.numeric.check"),
        ("from symbolic import kernel", "attnproof.symbolic.prove"),
    ]
)
def test_a_wrong_import_is_caught(text: str, module: str) -> None:
    assert wrong_way(text, module)


@pytest.mark.parametrize(
    ("text", "module"),
    [
        ("from .terms import Term", "attnproof.symbolic.kernel"),
        ("from ..terms import Term", "attnproof.symbolic.normal_form.sums"),
        ("from ..symbolic.terms import Term", "attnproof.numeric.check"),
        ("from attnproof import equal, theorem", "attnproof.theorems.softmax"),
        ("import numpy", "attnproof.theorems.demonstrations.x"),
    ],
)
def test_a_right_import_is_not(text: str, module: str) -> None:
    assert not wrong_way(text, module)


def test_symbolic_never_loads_torch(root: Path) -> None:
    """In a process of its own, which says that torch is loaded once it is."""
    modules = [
        module_of(path, root).removesuffix(".__init__")
        for path in sorted((root / "symbolic").rglob("*.py"))
    ]
    assert "attnproof.symbolic.kernel" in modules
    look = "print('torch' in sys.modules)"
    code = f"import sys, {', '.join(modules)}\n{look}\nimport torch\n{look}"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True"]


def absent(text: str, root: Path) -> list[str]:
    """The modules of the package that a file of its root loads by name and that are not there."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and node.args]
    first = [call.args[0] for call in calls if ast.unparse(call.func).endswith("import_module")]
    names = [argument.value for argument in first if isinstance(argument, ast.Constant)]
    return [
        name
        for name in map(str, names)
        if name.startswith(".")
        and not any(
            (root / FRONT / (name[1:].replace(".", "/") + end)).is_file()
            for end in (".py", "/__init__.py")
        )
    ]


def test_what_is_loaded_by_its_name_is_there(root: Path) -> None:
    found = {
        path.name: names
        for path in sorted((root / FRONT).glob("*.py"))
        if (names := absent(path.read_text(encoding="utf-8"), root))
    }
    assert not found


def test_a_name_of_no_module_is_caught(root: Path) -> None:
    assert absent('import_module(".numeric.gone", __package__)', root) == [".numeric.gone"]
    assert not absent('import_module(".numeric.check", __package__)', root)
