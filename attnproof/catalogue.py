"""Finding theorem files: one file, one theorem, no list to edit.

The catalogue is the folders ``<subject>/`` beside ``theorems/definitions/``, walked.  Each file
is imported on its own; one that fails becomes a :class:`Broken` entry that names it and never
stops the others.  Importing a theorem file declares it and proves nothing.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .faults import broken_by
from .numeric.outside import imported

if TYPE_CHECKING:
    from .symbolic.statement import Statement, Theorem

__all__ = [
    "Broken", "Catalogue", "Entry", "Source", "load_catalogue", "sources", "theorem_files",
]  # fmt: skip

BUILT_IN = "attnproof.theorems"
NO_SUBJECTS = {"definitions", "demonstrations", "laws"}


@dataclass(frozen=True)
class Source:
    """A theorem file: where it stands, and the module name to import it by.

    ``module`` is empty for a file outside the package; such a file gets a name of its own.
    """

    path: Path
    module: str = ""

    @property
    def id(self) -> str:
        """The file's name, with hyphens."""
        return self.path.stem.replace("_", "-")

    @property
    def subject(self) -> str:
        """The folder of the file."""
        return self.path.parent.name

    @property
    def label(self) -> str:
        """Folder and name, as errors and records print it."""
        return f"{self.subject}/{self.path.name}"

    def load(self) -> Theorem:
        """The theorem the file declares.  Raises whatever the file raises."""
        from .symbolic.statement import Theorem

        inside = bool(self.module)
        module = importlib.import_module(self.module) if inside else imported(self.path, "theorem_")
        found = [
            value
            for value in vars(module).values()
            if isinstance(value, Theorem) and value.body.__module__ == module.__name__
        ]
        if len(found) != 1:
            raise TypeError(
                f"a theorem file declares one @theorem; this one declares {len(found)}"
                + (": " + ", ".join(t.body.__name__ for t in found) if found else "")
            )
        if found[0].expected not in ("proved", "refuted", "ill-typed"):
            raise ValueError(
                f"expected is 'proved', 'refuted' or 'ill-typed', not {found[0].expected!r}; "
                "'undecided' cannot be expected"
            )
        return found[0]


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
        """The statement and its twin; of an ill-typed theorem, which has none, the twin alone."""
        twin = self.theorem.twin
        return (twin,) if self.theorem.expected == "ill-typed" else (self.theorem.statement, twin)


@dataclass(frozen=True)
class Broken:
    """A theorem file that cannot be used, and why; the traceback where that is a fault of ours."""

    source: Source
    error: str
    traceback: str = ""

    @property
    def id(self) -> str:
        """The id its theorem would have."""
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
        return tuple(sorted({*(e.id for e in self.entries), *(b.id for b in self.broken)}))

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
            tuple(broken for broken in self.broken if broken.id in ids),
        )

    def select(self, names: Sequence[str]) -> Catalogue:
        """The part whose ids or subjects are named; all of it when nothing is."""
        if not names:
            return self
        wanted = set(names)

        def chosen(member: Entry | Broken) -> bool:
            return bool(wanted & {member.id, member.subject})

        return Catalogue(tuple(filter(chosen, self.entries)), tuple(filter(chosen, self.broken)))


def load_catalogue(more: Sequence[Path] = ()) -> Catalogue:
    """The catalogue of the package and of further folders or files.

    >>> catalogue = load_catalogue()
    >>> "permutation" in {entry.subject for entry in catalogue.entries}
    True
    """
    entries: dict[str, Entry] = {}
    broken: list[Broken] = []
    for source in sources(more):
        if source.id in entries:
            first = entries[source.id].source.path
            if not first.samefile(source.path):
                told = f"the id {source.id} is taken by {first}; rename {source.path}"
                broken.append(Broken(source, told))
            continue
        try:
            entries[source.id] = Entry(source, source.load())
        except (Exception, SystemExit) as error:  # noqa: BLE001 (one file stops no other)
            broken.append(Broken(source, **broken_by(error, source.path)))
    return Catalogue(tuple(entries.values()), tuple(broken))


def sources(more: Sequence[Path] = ()) -> Iterator[Source]:
    """Every theorem file, the package's own first, sorted by subject and name."""
    roots = importlib.import_module(BUILT_IN).__path__
    for root in roots:
        for path in _files(Path(root), "*/*.py"):
            yield Source(path, f"{BUILT_IN}.{path.parent.name}.{path.stem}")
    for place in more:
        yield from (Source(path.resolve()) for path in theorem_files(place))


def theorem_files(place: Path) -> list[Path]:
    """The theorem files of a folder and of the folders in it; a file is its own."""
    return [place] if place.is_file() else _files(place, "*.py") + _files(place, "*/*.py")


def _files(folder: Path, pattern: str) -> list[Path]:
    return sorted(
        path
        for path in folder.glob(pattern)
        if path.is_file()
        and not path.name.startswith(("_", "."))
        and path.parent.name not in NO_SUBJECTS
    )
