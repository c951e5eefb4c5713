"""The ledger: every claim of the source documents, in our own words, and what decides it.

One TOML file for each document stands in ``theorems/claims/``; ``ledger_file`` reads it.  No
verdict is stored there: ``verdict.derive`` makes it from what the named statements turn out to
be, and ``expected`` is only compared with it.  A claim that is written wrongly becomes a
:class:`BrokenClaim` that names it, and stops no other.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from .catalogue import BUILT_IN, Catalogue

__all__ = [
    "BrokenClaim", "ClaimEntry", "Document", "Ledger", "Reference", "demonstration_files",
    "load_ledger", "nearest",
]  # fmt: skip

ROLES = ("printed", "disproof", "corrected")


@dataclass(frozen=True)
class Reference:
    """A statement, as the ledger names it: a theorem, its control, or one conclusion of either.

    >>> Reference.of("rows-of-softmax-are-distributions#every weight is positive").conclusion
    'every weight is positive'
    >>> Reference.of("rows-of-softmax-are-distributions#control").control
    True
    """

    theorem: str
    conclusion: str = ""
    control: bool = False

    @classmethod
    def of(cls, text: str) -> Reference:
        """Read ``id``, ``id#conclusion``, ``id#control`` or ``id#control#conclusion``.

        ``#twin`` is the older name of ``#control``.
        """
        theorem, _, rest = text.partition("#")
        head, _, tail = rest.partition("#")
        is_control = head in ("control", "twin")
        return cls(theorem, tail if is_control else rest, is_control)


@dataclass(frozen=True)
class Document:
    """A source document."""

    id: str
    title: str
    kind: str


@dataclass(frozen=True)
class ClaimEntry:
    """A claim as the ledger has it.

    ``printed`` are the statements that say what the document says, ``disproof`` those whose proof
    shows that false, ``corrected`` those that say what is right.  ``mends`` says what the
    correction changes, if it leaves the conclusion; ``unstated`` why what is printed is no
    statement by itself; ``undecided`` and ``not_checkable`` are reasons for that verdict.
    """

    document: str
    id: str
    place: str
    origin: str
    kind: str
    says: str
    expected: str
    printed: tuple[str, ...] = ()
    disproof: tuple[str, ...] = ()
    corrected: tuple[str, ...] = ()
    demonstrations: tuple[str, ...] = ()
    correction: str = ""
    mends: str = ""
    unstated: str = ""
    undecided: str = ""
    not_checkable: str = ""

    @property
    def references(self) -> Iterator[tuple[str, str]]:
        """Role and text of every statement that is named."""
        for role in ROLES:
            for text in getattr(self, role):
                yield role, text

    @property
    def theorems(self) -> tuple[str, ...]:
        """The ids of the theorems it rests on."""
        return tuple(dict.fromkeys(Reference.of(text).theorem for _, text in self.references))


@dataclass(frozen=True)
class BrokenClaim:
    """A claim, or a whole file of the ledger, that cannot be used, and why."""

    file: str
    error: str
    document: str
    id: str = ""


@dataclass(frozen=True)
class Ledger:
    """Documents, their claims in order, what is broken, and the files of the demonstrations."""

    documents: tuple[Document, ...] = ()
    claims: tuple[ClaimEntry, ...] = ()
    broken: tuple[BrokenClaim, ...] = ()
    demonstrations: Mapping[str, Path] = field(default_factory=dict)

    @property
    def ids(self) -> tuple[str, ...]:
        """Every id of a claim, those of broken ones among them."""
        claims = (*(c.id for c in self.claims), *(b.id for b in self.broken if b.id))
        return tuple(dict.fromkeys(claims))

    @property
    def names(self) -> tuple[str, ...]:
        """Ids of documents and claims: what a selection may name."""
        documents = (*(d.id for d in self.documents), *(b.document for b in self.broken))
        return tuple(dict.fromkeys((*documents, *self.ids)))

    @property
    def theorems(self) -> tuple[str, ...]:
        """The ids of the theorems that the claims rest on."""
        return tuple(dict.fromkeys(name for claim in self.claims for name in claim.theorems))

    def select(self, names: Sequence[str]) -> Ledger:
        """The claims that are named, or whose document is; all of it when nothing is.

        Of the demonstrations, those that the claims name.
        """
        if not names:
            return self
        claims = tuple(c for c in self.claims if c.id in names or c.document in names)
        broken = tuple(b for b in self.broken if b.id in names or b.document in names)
        homes = {claim.document for claim in claims}
        shown = {name for claim in claims for name in claim.demonstrations}
        return Ledger(
            tuple(document for document in self.documents if document.id in homes),
            claims,
            broken,
            {name: path for name, path in self.demonstrations.items() if name in shown},
        )


def load_ledger(catalogue: Catalogue, more: Sequence[Path] = ()) -> Ledger:
    """The ledger of the package and of ``claims/*.toml`` in further folders.

    ``catalogue`` is asked whether the theorems that are named exist.
    """
    from .ledger_file import read

    demonstrations = demonstration_files(more)
    documents: list[Document] = []
    claims: list[ClaimEntry] = []
    broken: list[BrokenClaim] = []
    taken = dict.fromkeys(catalogue.names, "a theorem or a subject")
    for path in _beside(more, "claims/*.toml"):
        found = read(path)
        broken += found.broken
        for document in found.documents:
            if document.id in taken:
                told = f"the id {document.id} is taken by {taken[document.id]}"
                broken.append(BrokenClaim(_label(path), told, document.id))
                break
            taken[document.id] = f"the document of {path}"
            documents.append(document)
            for claim in found.claims:
                faults = list(_unknown(claim, catalogue.ids, demonstrations))
                if claim.id in taken:
                    faults.append(f"the id is taken by {taken[claim.id]}")
                taken.setdefault(claim.id, f"a claim in {_label(path)}")
                broken += [
                    BrokenClaim(_label(path), f"{claim.id}: {fault}", document.id, claim.id)
                    for fault in faults
                ]
                claims += [] if faults else [claim]
    return Ledger(tuple(documents), tuple(claims), tuple(broken), demonstrations)


def demonstration_files(more: Sequence[Path] = ()) -> dict[str, Path]:
    """The file of every demonstration, by id."""
    found: dict[str, Path] = {}
    for path in _beside(more, "demonstrations/*.py"):
        if not path.name.startswith(("_", ".")):
            found.setdefault(path.stem.replace("_", "-"), path)
    return found


def nearest(name: str, known: Collection[str]) -> str:
    """The names most like this one, as an error tells them."""
    near = get_close_matches(name, known, n=3, cutoff=0.5)
    return f"nearest: {', '.join(near)}" if near else f"there are {len(known)}, none like it"


def _unknown(
    claim: ClaimEntry, theorems: Collection[str], demonstrations: Collection[str]
) -> Iterator[str]:
    for role, text in claim.references:
        name = Reference.of(text).theorem
        if name not in theorems:
            told = nearest(name, theorems)
            yield f"{role}: wanted the id of a theorem, got {name!r}; {told}"
    for name in claim.demonstrations:
        if name not in demonstrations:
            told = nearest(name, demonstrations)
            yield f"demonstrations: wanted the id of a demonstration, got {name!r}; {told}"


def _label(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def _beside(more: Sequence[Path], pattern: str) -> Iterator[Path]:
    roots = importlib.import_module(BUILT_IN).__path__
    for root in (*map(Path, roots), *(place for place in more if place.is_dir())):
        yield from sorted(root.glob(pattern))
