"""Find theorems: each is a function in some file, and there is no list to edit.

The catalogue consists of the files of ``theorems/`` and of its subfolders, except ``definitions/``
and the like.  Each file is imported on its own; if one fails, it becomes a :class:`Broken` entry
that names it, and the others go on.  Importing a file declares its theorems and proves nothing.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import broken_by
from ..numeric.file_imports import ids_in, imported

if TYPE_CHECKING:
    from ..symbolic.statement import Statement, Theorem

BUILT_IN = "attnproof.theorems"
WHOLE = "statement"  # the function in a file with a single theorem, whose id is the file's name
EXPECTED = ("proved", "refuted", "ill-typed")
EXPECTED_ONE_OF = (
    "ValueError: expected is 'proved', 'refuted' or 'ill-typed', not {!r}; 'undecided' cannot be "
    "expected"
)
DECLARES_NONE = "TypeError: a theorem file declares a @theorem; this one declares none"
NO_SUBJECTS = {"definitions", "demonstrations", "laws"}


@dataclass(frozen=True)
class Source:
    """Where a theorem is: its file, the module name by which to import it, and its function.

    ``module`` is empty for a file outside the package, which is imported under a name of its own.
    ``group`` is the subject, if that is not the name of the folder.
    """

    path: Path
    module: str = ""
    name: str = WHOLE
    group: str = ""

    @property
    def id(self) -> str:
        """The name of the function, with hyphens; for ``statement``, that of the file."""
        return _id(self.path, self.name)

    def same_as(self, other: Source) -> bool:
        """Whether both are the same theorem, even if its file was named twice."""
        return self.name == other.name and self.path.samefile(other.path)

    @property
    def subject(self) -> str:
        """The folder of the file; or the file itself, if it is in none and has several theorems."""
        return self.group or self.path.parent.name

    @property
    def label(self) -> str:
        """The file, with its folder, as errors and records print it."""
        if self.module:
            return "/".join(self.module.split(".")[1:]) + ".py"
        return f"{self.path.parent.name}/{self.path.name}"

    def load(self) -> Theorem:
        """Return the theorem.  Raises what the file raises, and ``TypeError`` if it is absent."""
        for theorem in self.declared():
            if theorem.body.__name__ == self.name:
                return theorem
        raise TypeError(f"{self.path.name} declares no @theorem that is called {self.name}")

    def declared(self) -> list[Theorem]:
        """Return every theorem of the file, in order.  Raises whatever the file raises."""
        from ..symbolic.statement import Theorem

        inside = bool(self.module)
        module = importlib.import_module(self.module) if inside else imported(self.path, "theorem_")
        return [
            value
            for value in vars(module).values()
            if isinstance(value, Theorem) and value.body.__module__ == module.__name__
        ]

    def holding(self, theorem: Theorem, *, top: bool) -> Source:
        """Return where a theorem of this file is; ``top``: the file is in no subject's folder."""
        name = theorem.body.__name__
        group = self.path.stem if top and name != WHOLE else ""
        return replace(self, name=name, group=group)


def _id(path: Path, name: str) -> str:
    return (path.stem if name == WHOLE else name).replace("_", "-")


@dataclass(frozen=True)
class _Sourced:
    """What a file has: a theorem, or an error in its place."""

    source: Source

    @property
    def id(self) -> str:
        """The theorem's id, or the file's name."""
        return self.source.id

    @property
    def subject(self) -> str:
        """The subject that the theorem has, or would have."""
        return self.source.subject


@dataclass(frozen=True)
class Entry(_Sourced):
    """A theorem and the file it came from."""

    theorem: Theorem

    @property
    def statements(self) -> tuple[Statement, ...]:
        """The statement and its negative control; for an ill-typed theorem, only the latter."""
        control = self.theorem.control
        ill_typed = self.theorem.expected == "ill-typed"
        return (control,) if ill_typed else (self.theorem.statement, control)


@dataclass(frozen=True)
class Broken(_Sourced):
    """A theorem, or a whole file, that cannot be used, and why.

    ``traceback`` is that of an error of attnproof itself; ``ids`` are those that the file would
    declare.
    """

    error: str
    traceback: str = ""
    ids: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Catalogue:
    """Every theorem that was found, and every file that is broken."""

    entries: tuple[Entry, ...]
    broken: tuple[Broken, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """Every id, including those of broken files."""
        lost = (name for b in self.broken for name in (b.ids or {b.id}))
        return tuple(sorted({*(e.id for e in self.entries), *lost}))

    @property
    def names(self) -> tuple[str, ...]:
        """Ids and subjects: what a selection may name."""
        subjects = {*(e.subject for e in self.entries), *(b.subject for b in self.broken)}
        return (*sorted(subjects), *self.ids)

    def only(self, name: str) -> Catalogue:
        """Return the part with this id; if two files claim an id, one of them is broken."""
        return self.with_ids([name])

    def with_ids(self, ids: Collection[str]) -> Catalogue:
        """Return the part with these ids, and nothing else."""
        return Catalogue(
            tuple(entry for entry in self.entries if entry.id in ids),
            tuple(broken for broken in self.broken if {broken.id, *broken.ids} & set(ids)),
        )

    def select(self, names: Sequence[str]) -> Catalogue:
        """Return the part whose ids or subjects are named; all of it if none is."""
        if not names:
            return self
        wanted = set(names)

        def chosen(member: Entry | Broken) -> bool:
            ids = member.ids if isinstance(member, Broken) else ()
            return bool(wanted & {member.id, member.subject, *ids})

        return Catalogue(tuple(filter(chosen, self.entries)), tuple(filter(chosen, self.broken)))


def load_catalogue(more: Sequence[Path] = ()) -> Catalogue:
    """Return the catalogue of the package and of further folders or files.

    >>> catalogue = load_catalogue()
    >>> "permutation" in {entry.subject for entry in catalogue.entries}
    True
    """
    entries: dict[str, Entry] = {}
    broken: list[Broken] = []
    for file, top in files(more):
        try:
            found = file.declared()
        except (Exception, SystemExit) as error:  # noqa: BLE001 (one file stops no other)
            ids = frozenset(
                _id(file.path, name) if name == WHOLE else name
                for name in ids_in(file.path, "theorem")
            )
            broken.append(Broken(file, **broken_by(error, file.path), ids=ids))
            continue
        if not found:
            broken.append(Broken(file, DECLARES_NONE))
        for theorem in found:
            source = file.holding(theorem, top=top)
            first = entries.get(source.id)
            if first is None and theorem.expected in EXPECTED:
                entries[source.id] = Entry(source, theorem)
            elif first is None:
                broken.append(Broken(source, EXPECTED_ONE_OF.format(theorem.expected)))
            elif not first.source.same_as(source):
                told = f"the id {source.id} is taken by {first.source.path}; rename {source.path}"
                broken.append(Broken(source, told))
    return Catalogue(tuple(entries.values()), tuple(broken))


def files(more: Sequence[Path] = ()) -> Iterator[tuple[Source, bool]]:
    """Yield each theorem file, the package's own first, and whether it is in no subject folder."""
    for root in map(Path, importlib.import_module(BUILT_IN).__path__):
        for path in theorem_files(root):
            inner = path.relative_to(root).with_suffix("").parts
            yield Source(path, ".".join((BUILT_IN, *inner))), len(inner) == 1
    for place in more:
        for path in theorem_files(place):
            yield Source(path.resolve()), path.parent == place or place.is_file()


def theorem_files(place: Path) -> list[Path]:
    """Return the theorem files of a folder and its subfolders, sorted; or the file itself."""
    if place.is_file():
        return [place]
    found = [path for pattern in ("*.py", "*/*.py") for path in place.glob(pattern)]
    return sorted((path for path in found if _may_declare(path)), key=lambda p: p.with_suffix(""))


def _may_declare(path: Path) -> bool:
    hidden = path.name.startswith(("_", ".")) or path.parent.name in NO_SUBJECTS
    return path.is_file() and not hidden
