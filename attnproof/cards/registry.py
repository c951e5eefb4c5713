"""Find encodings: those of the package, those of files, and those of plug-ins.

There is no list to edit.  A module of ``attnproof/encodings`` is found because it is there, a file
by its path, and an installed package by an entry point of the group ``attnproof.encodings``, whose
value is a module or a class::

    [project.entry-points."attnproof.encodings"]
    mine = "my_package.encodings"

What cannot be used is reported by name, and stops nothing else.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from ..encoding.base import Encoding, id_of
from ..errors import broken_by
from ..numeric.file_imports import imported
from .records import BrokenEncoding

BUILT_IN = GROUP = "attnproof.encodings"
OUTSIDE = "_attnproof_file_"  # prefix of the name of a module that was read from a path

# Where an encoding acts, by the methods it writes; the first match is its place in a table.
PLACES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("added to the input", ("add",)),
    ("on queries and keys", ("rotate", "query", "key")),
    ("on the product q·k", ("relate",)),
    ("on the score", ("bias", "scores")),
    ("on which keys are seen", ("sees",)),
    ("on the values", ("value",)),
)
NOWHERE = "nowhere"


@dataclass(frozen=True)
class Encodings:
    """The encodings that were found, in table order, and what could not be used."""

    kinds: tuple[type[Encoding], ...]
    broken: tuple[BrokenEncoding, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """The id of each."""
        return tuple(kind.id() for kind in self.kinds)

    def only(self, name: str) -> type[Encoding]:
        """Return the encoding with this id.  Raises ``KeyError`` if there is none."""
        return {kind.id(): kind for kind in self.kinds}[name]


def place(kind: type[Encoding]) -> int:
    """Return where it acts, as a number that orders tables: what adds to the input comes first."""
    acts = (at for at, (_, methods) in enumerate(PLACES) if kind.defines(*methods))
    return next(acts, len(PLACES))


def place_words(kind: type[Encoding]) -> str:
    """Return where it acts, in words.

    >>> from attnproof.encodings.bias import Alibi
    >>> place_words(Alibi), place_words(Encoding)
    ('on the score', 'nowhere')
    """
    at = place(kind)
    return PLACES[at][0] if at < len(PLACES) else NOWHERE


def load_encodings(files: Sequence[Path | str] = ()) -> Encodings:
    """Return the encodings of the package, of plug-ins and of these files.

    >>> "rope" in load_encodings().ids
    True
    """
    kinds: dict[str, type[Encoding]] = {}
    broken: list[BrokenEncoding] = []
    for name, path, load in _sources(files):
        try:
            found = _declared(load())
        except (Exception, SystemExit) as error:  # noqa: BLE001 (one source stops no other)
            broken.append(BrokenEncoding(name=name, **broken_by(error, path)))
            continue
        for kind in found:
            first = kinds.setdefault(kind.id(), kind)
            if _home(first) != _home(kind):
                taken = " of ".join(_home(first))
                told = f"the id {kind.id()} is taken by {taken}; rename {kind.__name__}"
                broken.append(BrokenEncoding(name=name, error=told))
    return Encodings(in_order(kinds.values()), tuple(broken))


def in_order(kinds: Iterable[type[Encoding]]) -> tuple[type[Encoding], ...]:
    """Return the encodings sorted by where they act, then by title."""
    return tuple(sorted(kinds, key=lambda kind: (place(kind), kind.title or kind.__name__)))


def load_file(path: Path) -> tuple[type[Encoding], ...]:
    """Return the encodings that a file declares.  Raises what the file raises."""
    return tuple(_declared(imported(path, OUTSIDE)))


@dataclass(frozen=True)
class Home:
    """Where a class of a file is defined, so that another process can find it."""

    path: Path
    qualname: str

    def load(self) -> type[Encoding]:
        """Return the class, from its file.  Raises what the file raises."""
        return {kind.__qualname__: kind for kind in load_file(self.path)}[self.qualname]


def home(kind: type[Encoding]) -> type[Encoding] | Home:
    """Return what another process can be given: the class, or its place if it comes from a file."""
    outside = kind.__module__.startswith(OUTSIDE)
    return Home(Path(inspect.getfile(kind)), kind.__qualname__) if outside else kind


def _sources(files: Sequence[Path | str]) -> Iterator[tuple[str, Path, Any]]:
    """Yield each source: its name, the file in which to look for an error, and how to load it."""
    package = importlib.import_module(BUILT_IN)
    for module in pkgutil.iter_modules(package.__path__):
        name = f"{BUILT_IN}.{module.name}"
        if not module.name.startswith("_"):
            path = _file_of(name)
            yield name, path, lambda name=name: importlib.import_module(name)
    for point in sorted(entry_points(group=GROUP), key=lambda p: (_dist(p), p.name)):
        yield f"{point.name} of {_dist(point)}", _file_of(point.module), point.load
    for file in files:
        yield str(file), Path(file), lambda file=file: imported(Path(file), OUTSIDE)


def _dist(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.module


def _file_of(module: str) -> Path:
    """Return the file of a module, as far as it can be known without running it."""
    try:
        spec = importlib.util.find_spec(module)
    except (Exception, SystemExit):  # noqa: BLE001 (a parent is broken; loading says so)
        spec = None
    return Path(spec.origin) if spec is not None and spec.origin else Path(module)


def ids_lost(fault: BrokenEncoding) -> Iterator[str]:
    """Yield the ids that a broken module would have: its name, and its classes if they can be read.

    >>> list(ids_lost(BrokenEncoding(name="attnproof.encodings.relative", error="")))
    ['relative', 'shaw', 'transformer-xl', 'cope']
    """
    yield fault.name.rpartition(".")[2].replace("_", "-")
    file = _file_of(fault.name)
    text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    yield from map(id_of, re.findall(r"^class ([A-Za-z]\w*)\(", text, re.MULTILINE))


def _declared(found: Any) -> list[type[Encoding]]:
    """Return the encodings that a module declares itself, or the one class that is given.

    Names with a leading underscore are private.
    """
    if inspect.isclass(found) and issubclass(found, Encoding):
        return [found]
    if not isinstance(found, ModuleType):
        raise TypeError(f"wanted a module or a subclass of attnproof.Encoding, got {found!r}")
    kinds = [
        value
        for name, value in vars(found).items()
        if _is_own(value, found) and not name.startswith("_")
    ]
    if not kinds:
        hidden = [n for n, v in vars(found).items() if n.startswith("_") and _is_own(v, found)]
        why = (
            f"{hidden[0]} begins with _ and is private"
            if hidden
            else ("no subclass of attnproof.Encoding; `attnproof new NAME` writes one")
        )
        raise TypeError(f"it declares no encoding: {why}")
    return kinds


def _is_own(value: Any, module: ModuleType) -> bool:
    """Whether it is an encoding that this module declares."""
    own = isinstance(value, type) and issubclass(value, Encoding)
    return own and value.__module__ == module.__name__


def _home(kind: type[Encoding]) -> tuple[str, str]:
    """Return its name and file, since one file may be read twice."""
    path = source_of(kind)
    return kind.__qualname__, str(path) if path.name else kind.__module__


def source_of(kind: type[Encoding]) -> Path:
    """Return the file that defines a class; empty if it was typed into a session."""
    try:
        return Path(inspect.getfile(kind)).resolve()
    except (OSError, TypeError):
        return Path()
