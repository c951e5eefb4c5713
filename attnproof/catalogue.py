"""Finding theorems: each is a function of some file, and there is no list to edit.

The catalogue is the files of ``theorems/`` and of the folders in it, those of ``definitions/`` and
the like apart, walked.  Each file is imported on its own; one that fails becomes a
:class:`Broken` entry that names it and never stops the others.  Importing a file declares its
theorems and proves nothing.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import broken_by
from .numeric.file_imports import ids_in, imported

if TYPE_CHECKING:
    from .symbolic.statement import Statement, Theorem

BUILT_IN = "attnproof.theorems"
WHOLE = "statement"  # the function of a file with one theorem, which has the file's name
EXPECTED = ("proved", "refuted", "ill-typed")
EXPECTED_ONE_OF = (
    "ValueError: expected is 'proved', 'refuted' or 'ill-typed', not {!r}; 'undecided' cannot be "
    "expected"
)
DECLARES_NONE = "TypeError: a theorem file declares a @theorem; this one declares none"
NO_SUBJECTS = {"definitions", "demonstrations", "laws"}


@dataclass(frozen=True)
class Source:
    """Where a theorem stands: its file, the module name to import that by, and its function.

    ``module`` is empty for a file outside the package; such a file gets a name of its own.
    ``group`` is the subject, where that is not the name of the folder.
    """

    path: Path
    module: str = ""
    name: str = WHOLE
    group: str = ""

    @property
    def id(self) -> str:
        """The function's name, with hyphens; of ``statement`` the file's name."""
        return _id(self.path, self.name)

    def is_(self, other: Source) -> bool:
        """Whether both are the same theorem, whose file may have been named twice."""
        return self.name == other.name and self.path.samefile(other.path)

    @property
    def subject(self) -> str:
        """The folder of the file, or the file itself where several theorems stand in it."""
        return self.group or self.path.parent.name

    @property
    def label(self) -> str:
        """The file, with its folder, as errors and records print it."""
        if self.module:
            return "/".join(self.module.split(".")[1:]) + ".py"
        return f"{self.path.parent.name}/{self.path.name}"

    def load(self) -> Theorem:
        """The theorem.  Raises what the file raises, and ``TypeError`` where it is not there."""
        for theorem in self.declared():
            if theorem.body.__name__ == self.name:
                return theorem
        raise TypeError(f"{self.path.name} declares no @theorem that is called {self.name}")

    def declared(self) -> list[Theorem]:
        """Every theorem of the file, in its order.  Raises whatever the file raises."""
        from .symbolic.statement import Theorem

        inside = bool(self.module)
        module = importlib.import_module(self.module) if inside else imported(self.path, "theorem_")
        return [
            value
            for value in vars(module).values()
            if isinstance(value, Theorem) and value.body.__module__ == module.__name__
        ]

    def holding(self, theorem: Theorem, *, top: bool) -> Source:
        """Where one theorem of this file stands; ``top``: the file is in no folder of a subject."""
        name = theorem.body.__name__
        group = self.path.stem if top and name != WHOLE else ""
        return replace(self, name=name, group=group)


def _id(path: Path, name: str) -> str:
    return (path.stem if name == WHOLE else name).replace("_", "-")


@dataclass(frozen=True)
class Entry:
    """A theorem and the file it came from."""

    source: Source
    theorem: Theorem

    @property
    def id(self) -> str:
        """The theorem's id."""
        return self.source.id

    @property
    def subject(self) -> str:
        """The theorem's subject."""
        return self.source.subject

    @property
    def statements(self) -> tuple[Statement, ...]:
        """The statement and its negative control; of an ill-typed theorem the latter alone."""
        control = self.theorem.control
        ill_typed = self.theorem.expected == "ill-typed"
        return (control,) if ill_typed else (self.theorem.statement, control)


@dataclass(frozen=True)
class Broken:
    """A theorem, or a whole file, that cannot be used, and why.

    ``traceback`` is that of an error of ours; ``ids`` are those that the file would declare.
    """

    source: Source
    error: str
    traceback: str = ""
    ids: frozenset[str] = frozenset()

    @property
    def id(self) -> str:
        """The theorem's id, or the file's name."""
        return self.source.id

    @property
    def subject(self) -> str:
        """The subject its theorem would have."""
        return self.source.subject


@dataclass(frozen=True)
class Catalogue:
    """Every theorem that was found, by subject and id, and every file that is broken."""

    entries: tuple[Entry, ...]
    broken: tuple[Broken, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """Every id, those of broken files among them."""
        lost = (name for b in self.broken for name in (b.ids or {b.id}))
        return tuple(sorted({*(e.id for e in self.entries), *lost}))

    @property
    def names(self) -> tuple[str, ...]:
        """Ids and subjects: what a selection may name."""
        subjects = {*(e.subject for e in self.entries), *(b.subject for b in self.broken)}
        return (*sorted(subjects), *self.ids)

    def only(self, name: str) -> Catalogue:
        """The part with this id; two files may claim one id, and then one of them is broken."""
        return self.having([name])

    def having(self, ids: Collection[str]) -> Catalogue:
        """The part with these ids, and nothing else."""
        return Catalogue(
            tuple(entry for entry in self.entries if entry.id in ids),
            tuple(broken for broken in self.broken if {broken.id, *broken.ids} & set(ids)),
        )

    def select(self, names: Sequence[str]) -> Catalogue:
        """The part whose ids or subjects are named; all of it when nothing is."""
        if not names:
            return self
        wanted = set(names)

        def chosen(member: Entry | Broken) -> bool:
            ids = member.ids if isinstance(member, Broken) else ()
            return bool(wanted & {member.id, member.subject, *ids})

        return Catalogue(tuple(filter(chosen, self.entries)), tuple(filter(chosen, self.broken)))


def load_catalogue(more: Sequence[Path] = ()) -> Catalogue:
    """The catalogue of the package and of further folders or files.

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
            elif not first.source.is_(source):
                told = f"the id {source.id} is taken by {first.source.path}; rename {source.path}"
                broken.append(Broken(source, told))
    return Catalogue(tuple(entries.values()), tuple(broken))


def files(more: Sequence[Path] = ()) -> Iterator[tuple[Source, bool]]:
    """Every theorem file, the package's own first, and whether it stands in no folder."""
    for root in map(Path, importlib.import_module(BUILT_IN).__path__):
        for path in theorem_files(root):
            inner = path.relative_to(root).with_suffix("").parts
            yield Source(path, ".".join((BUILT_IN, *inner))), len(inner) == 1
    for place in more:
        for path in theorem_files(place):
            yield Source(path.resolve()), path.parent == place or place.is_file()


def theorem_files(place: Path) -> list[Path]:
    """The theorem files of a folder and of the folders in it, by name; a file is its own."""
    if place.is_file():
        return [place]
    found = [path for pattern in ("*.py", "*/*.py") for path in place.glob(pattern)]
    return sorted((path for path in found if _may_declare(path)), key=lambda p: p.with_suffix(""))


def _may_declare(path: Path) -> bool:
    hidden = path.name.startswith(("_", ".")) or path.parent.name in NO_SUBJECTS
    return path.is_file() and not hidden
