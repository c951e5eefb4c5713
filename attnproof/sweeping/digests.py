"""What a result depends on, as digests: the code, the libraries, the device, the statement."""

from __future__ import annotations

import ast
import json
import platform
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import cache
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..processor import processor

if TYPE_CHECKING:
    from ..symbolic.statement import Statement

PACKAGE = Path(__file__).resolve().parent.parent
WHOLE = ("symbolic", "numeric", "theorems/definitions")
"""Parts that find files by looking into folders: every file of them counts."""
ROOTS = ("checking", "demonstrations", "sweeping.work")
"""What makes results; everything these import counts."""
LIBRARIES = (
    "torch",
    "numpy",
    "sympy",
    "python-flint",
    "mpmath",
    "array-api-compat",
    "transformers",
)
Stamp = tuple[str, int, int]
"""Path, time of change in nanoseconds, bytes: what differs when a file is written."""


def sources() -> tuple[Path, ...]:
    """Every file of the package that can change a result, sorted.

    The folders of :data:`WHOLE`, and what :data:`ROOTS` import, directly or not, wherever the
    import stands.  A theorem's own file is none of them: it changes that theorem alone.
    """
    found: set[Path] = set()
    for part in WHOLE:
        inside = (PACKAGE / part).rglob("*")
        found |= {p for p in inside if p.is_file() and "__pycache__" not in p.parts}
    waiting = [_module_file(root) for root in ROOTS]
    while waiting:
        path = waiting.pop()
        if path is not None and path not in found:
            found.add(path)
            waiting += [_module_file(name) for name in _imports(path)]
    return tuple(sorted(found))


def _module_file(name: str) -> Path | None:
    """The file of a module of the package, named from the package on; None of what is whole."""
    parts = name.split(".")
    if parts[0] in {Path(part).parts[0] for part in WHOLE}:
        return None
    place = PACKAGE.joinpath(*parts)
    candidates = (place.with_suffix(".py"), place / "__init__.py")
    return next((path for path in candidates if path.is_file()), None)


def _imports(path: Path) -> Iterator[str]:
    """The modules of the package that a file imports, named from the package on."""
    home = path.relative_to(PACKAGE).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom):
            continue
        if node.level:
            start = list(home[: len(home) - node.level + 1])
        elif (node.module or "").split(".")[0] == PACKAGE.name:
            start = []
        else:
            continue
        told = (node.module or "").split(".") if node.level else (node.module or "").split(".")[1:]
        base = ".".join(part for part in (*start, *told) if part)
        yield base
        yield from (f"{base}.{alias.name}".lstrip(".") for alias in node.names)


def stamps(paths: Iterable[Path]) -> tuple[Stamp, ...]:
    """The stamps of files; a file that is gone has one that no file has."""
    found = []
    for path in paths:
        try:
            stat = path.stat()
            found.append((str(path), stat.st_mtime_ns, stat.st_size))
        except OSError:
            found.append((str(path), -1, -1))
    return tuple(found)


def source_digest(paths: Iterable[Path]) -> str:
    """The digest of files: of their names inside the package, and what stands in them."""
    digest = sha256()
    for path in paths:
        inside = path.relative_to(PACKAGE) if path.is_relative_to(PACKAGE) else Path(path.name)
        text = path.read_bytes()
        digest.update(f"{inside.as_posix()}\0{len(text)}\0".encode() + text)
    return digest.hexdigest()


@cache
def versions() -> dict[str, str]:
    """Python and every library that numbers or proofs come from, as far as installed."""
    from .. import __version__

    found = {"attnproof": __version__, "python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def calibration(device: str) -> str:
    """The digest of the rounding constants in force on a device, and of the backend they are for.

    Where none are, what needs them is skipped and says so; that is told apart as well.
    """
    from ..numeric.calibration.store import NotCalibrated, calibration_of
    from ..numeric.devices import chosen

    try:
        found = calibration_of(chosen(device))
    except NotCalibrated:
        return "none"
    constants = [one.model_dump(mode="json") for one in found.constants]
    return digest_of([found.backend.model_dump(mode="json"), constants])


@cache
def device_name(device: str) -> str:
    """The device that is meant and what it is: ``cpu, AMD EPYC``, ``cuda:0, NVIDIA H200``."""
    from ..numeric.devices import chosen

    where = chosen(device)
    if where.type == "cuda":
        import torch

        return f"cuda:{where.index or 0}, {torch.cuda.get_device_name(where)}"
    return f"{where}, {processor()}"


def statement_digest(statement: Statement) -> str:
    """The digest of a statement: givens, claims with their chains, hypotheses.

    Terms count by their canonical key, which is the same in every process.
    """
    return digest_of(_plain(statement))


def digest_of(told: Any) -> str:
    """The digest of plain data."""
    return sha256(json.dumps(told, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Plain data that differ where the values do.  Refuses what it does not know."""
    from ..symbolic.claim import Instance
    from ..symbolic.terms import Term

    if isinstance(value, Term):
        return ["term", value.key.hex()]
    if isinstance(value, Instance):  # its own indices have names that count up in a process
        return ["instance", *map(_plain, value.sides)]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Fraction):
        return ["fraction", str(value)]
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    if isinstance(value, frozenset):
        return ["set", *sorted((_plain(part) for part in value), key=json.dumps)]
    if hasattr(value, "items"):
        return ["map", *([_plain(k), _plain(v)] for k, v in value.items())]  # order counts in draws
    if is_dataclass(value):
        named = [(f.name, getattr(value, f.name)) for f in fields(value) if f.compare]
        return [type(value).__name__, *([name, _plain(part)] for name, part in named)]
    raise TypeError(f"a statement holds a {type(value).__name__}, which has no digest: {value!r}")
