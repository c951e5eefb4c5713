"""What a result depends on, as digests; and what a run takes from the store and leaves in it."""

from __future__ import annotations

import ast
import json
import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from fractions import Fraction
from functools import cache
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from ..documents.evidence import Record
from .limits import spent_memory
from .records import DemonstrationRecord, TheoremRecord, processor
from .store import Key, Store, StoreError

if TYPE_CHECKING:
    from ..symbolic.statement import Statement
    from .catalogue import Entry
    from .checking import Options


PACKAGE = Path(__file__).resolve().parent.parent
WHOLE = ("symbolic", "numeric", "theorems/definitions")
"""Parts that find files by searching folders: all their files are sources."""
ROOTS = ("theorem_runs.checking", "theorem_runs.demonstrations", "sweeping.cells")
"""Modules that compute results: everything that they import is a source."""
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
"""Path, modification time in nanoseconds, size in bytes; writing a file changes its stamp."""


def sources() -> tuple[Path, ...]:
    """Return every file of the package that can change a result, sorted.

    These are the folders of :data:`WHOLE`, and whatever :data:`ROOTS` import, directly or
    indirectly, at any place in a file.  A theorem's own file is not among them: it changes only
    that theorem.
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
    """Return the file of a module, named within the package; None if its folder counts whole."""
    parts = name.split(".")
    if parts[0] in {Path(part).parts[0] for part in WHOLE}:
        return None
    place = PACKAGE.joinpath(*parts)
    candidates = (place.with_suffix(".py"), place / "__init__.py")
    return next((path for path in candidates if path.is_file()), None)


def _imports(path: Path) -> Iterator[str]:
    """Yield the modules of the package that a file imports, named within the package."""
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
    """Return the stamps of files; a file that is gone has one that no file has."""
    found = []
    for path in paths:
        try:
            stat = path.stat()
            found.append((str(path), stat.st_mtime_ns, stat.st_size))
        except OSError:
            found.append((str(path), -1, -1))
    return tuple(found)


def source_digest(paths: Iterable[Path]) -> str:
    """Return the digest of files: of their names within the package, and of their contents."""
    digest = sha256()
    for path in paths:
        inside = path.relative_to(PACKAGE) if path.is_relative_to(PACKAGE) else Path(path.name)
        text = path.read_bytes()
        digest.update(f"{inside.as_posix()}\0{len(text)}\0".encode() + text)
    return digest.hexdigest()


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of every installed library that results come from."""
    from .. import __version__

    found = {"attnproof": __version__, "python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def calibration(device: str) -> str:
    """Return the digest of the rounding constants in force on a device, and of their backend.

    If there are none, what needs them is skipped and says so; this case has a value of its own.
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
    """Return the device and what it is: ``cpu, AMD EPYC``, ``cuda:0, NVIDIA H200``."""
    from ..numeric.devices import chosen

    where = chosen(device)
    if where.type == "cuda":
        import torch

        return f"cuda:{where.index or 0}, {torch.cuda.get_device_name(where)}"
    return f"{where}, {processor()}"


def statement_digest(statement: Statement) -> str:
    """Return the digest of a statement: givens, claims with their chains, hypotheses.

    Terms count by their canonical key, which is the same in every process.
    """
    return digest_of(_plain(statement))


def digest_of(told: Any) -> str:
    """Return the digest of plain data."""
    return sha256(json.dumps(told, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Return plain data that differ if the values do.  Refuses what it does not know."""
    from ..symbolic.claim import Instance
    from ..symbolic.terms import Term

    if isinstance(value, Term):
        return ["term", value.key.hex()]
    if isinstance(value, Instance):  # the names of its indices are numbered per process
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
        return ["map", *([_plain(k), _plain(v)] for k, v in value.items())]  # draws depend on order
    if is_dataclass(value):
        named = [(f.name, getattr(value, f.name)) for f in fields(value) if f.compare]
        return [type(value).__name__, *([name, _plain(part)] for name, part in named)]
    raise TypeError(
        f"a statement contains a {type(value).__name__}, which has no digest: {value!r}"
    )


R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class Code:
    """The package's code as it was when a run began: its digest, and the stamps of its files."""

    digest: str
    stamps: tuple[Stamp, ...]

    @property
    def unchanged(self) -> bool:
        """Whether no file has been written since."""
        return stamps(Path(path) for path, _, _ in self.stamps) == self.stamps


@cache
def code() -> Code:
    """Return the code of this process."""
    found = sources()
    return Code(source_digest(found), stamps(found))


@dataclass(frozen=True)
class Writer:
    """Stores finished records, from any process.

    Nothing is stored once a file that the record depends on has changed: code loaded before and
    after would be mixed, and the key would describe neither.
    """

    place: Path
    code: Code
    fresh: bool

    def store(
        self, key: Key, files: tuple[Stamp, ...], record: TheoremRecord | DemonstrationRecord
    ) -> str:
        """Store a record; return why it could not be stored, or nothing.

        A record that is not ok is not stored, nor one with measurements skipped for lack of memory:
        another time there may be more.
        """
        if not record.ok or _short_of_memory(record):
            return ""
        if not self.code.unchanged or stamps(Path(path) for path, _, _ in files) != files:
            return SOURCES_CHANGED
        return store_record(attached(self.place), key, record, fresh=self.fresh)

    def here(self) -> RunStore | None:
        """Return the store as this process reads and writes it; None if its code differs."""
        if code().digest != self.code.digest:
            return None
        return RunStore(attached(self.place), self.fresh, code=self.code)


def _short_of_memory(record: TheoremRecord | DemonstrationRecord) -> bool:
    if not isinstance(record, TheoremRecord):
        return False
    found = (*record.evidence, *record.control.evidence)
    return any(e.kind == "measured" and spent_memory(e.reason) for e in found)


@cache
def attached(place: Path) -> Store:
    """Return the store as opened by this process."""
    return Store(place, examine=False)


SOURCES_CHANGED = "source files changed during the run, so no further results were stored"


def store_record(store: Store, key: Key, record: Record, *, fresh: bool) -> str:
    """Store a record, replacing what is there if ``fresh``; return why it could not be stored."""
    try:
        store.put(key, record.model_dump_json(), replace=fresh)
    except StoreError as error:
        return str(error)
    return ""


@dataclass
class RunStore:
    """The store of one run.

    ``messages`` are lines for the user.  If ``fresh``, no record is taken from the store, and
    finished records replace those in it.
    """

    store: Store
    fresh: bool = False
    messages: list[str] = field(default_factory=list)
    code: Code = field(default_factory=code)

    @property
    def writer(self) -> Writer:
        """What workers store records with."""
        return Writer(self.store.place, self.code, self.fresh)

    def tell(self, line: str) -> None:
        """Add a line for the user, once."""
        if line and line not in self.messages:
            self.messages.append(line)

    def get(self, key: Key, kind: type[R]) -> R | None:
        """Return the record stored under a key, with the time of its check."""
        if self.fresh:
            return None
        try:
            stored = self.store.get(key)
            if stored is None:
                return None
            record = kind.model_validate_json(stored.record)
        except (StoreError, ValidationError) as error:
            self.tell(f"{key.name} is checked again: {' '.join(str(error).split())}")
            return None
        finally:
            for line in self.store.messages:
                self.tell(line)
        return record.model_copy(update={"stored": stored.made})


def surroundings(device: str = "") -> dict[str, object]:
    """Return what a result depends on besides the request: code, libraries, and the device.

    ``device``: where numbers are computed, if they are.
    """
    told: dict[str, object] = {"code": code().digest, "versions": versions()}
    if device:
        told |= {"device": device_name(device), "calibration": calibration(device)}
    return told


def theorem_key(entry: Entry, options: Options) -> tuple[Key, tuple[Stamp, ...]]:
    """Return the key of a theorem's record, and the stamp of its file.

    Raises what building its statements raises.
    """
    path = entry.source.path
    files = stamps([path])
    return Key(
        "theorem",
        entry.id,
        json.dumps(
            {
                "id": entry.id,
                "file": entry.source.label,
                "source": source_digest([path]),
                "statements": [statement_digest(statement) for statement in entry.statements],
                **surroundings(options.device if options.numeric else ""),
                "options": {
                    "numeric": options.numeric,
                    "scale": options.scale,
                    "dtypes": options.dtypes,
                    "seed": options.seed,
                }
                if options.numeric
                else {"numeric": False},
            },
            sort_keys=True,
        ),
    ), files


def demonstration_keys(files: Mapping[str, Path]) -> dict[str, tuple[Key, tuple[Stamp, ...]]]:
    """Return the key of each demonstration, which depends on the files beside its own.

    What they print comes from numpy on this processor; torch and its calibration play no part.
    """
    return {
        name: (_demonstration_key(name, _beside(path)), stamps(_beside(path)))
        for name, path in files.items()
    }


def _demonstration_key(name: str, beside: tuple[Path, ...]) -> Key:
    told = {"id": name, "source": source_digest(beside), **surroundings(), "on": processor()}
    return Key("demonstration", name, json.dumps(told, sort_keys=True))


def _beside(path: Path) -> tuple[Path, ...]:
    return tuple(sorted(path.parent.glob("*.py")))
