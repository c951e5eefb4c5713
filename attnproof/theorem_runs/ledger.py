"""The ledger: every claim of the source documents, in our own words, and what decides it.

There is one TOML file per document in ``theorems/claims/``.  No verdict is stored there:
:func:`attnproof.theorem_runs.claims.derive` derives it from the results of the named statements,
and ``expected`` is only compared with it.  A claim with a mistake becomes a :class:`BrokenClaim`
that names it, and does not stop the others.
"""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, get_args

from ..numeric.file_imports import demonstrations_in
from .catalogue import BUILT_IN, Catalogue

ClaimVerdict = Literal[
    "true as written",
    "true under a stated correction",
    "false as written",
    "not checkable",
    "undecided",
]
Origin = Literal["document", "extension", "cross"]
Kind = Literal[
    "definition",
    "theorem",
    "property",
    "step",
    "example",
    "numeric-demo",
    "convention",
    "heuristic",
]
Mends = Literal["hypothesis", "type", "convention", "wording"]
Role = Literal["printed", "disproof", "corrected"]
VERDICTS: tuple[str, ...] = get_args(ClaimVerdict)
ROLES: tuple[str, ...] = get_args(Role)


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
        """Read ``id``, ``id#conclusion``, ``id#control`` or ``id#control#conclusion``."""
        theorem, _, rest = text.partition("#")
        head, _, tail = rest.partition("#")
        is_control = head == "control"
        return cls(theorem, tail if is_control else rest, is_control)


@dataclass(frozen=True)
class Document:
    """A source document."""

    id: str
    title: str
    kind: str


@dataclass(frozen=True)
class ClaimEntry:
    """A claim as the ledger states it.

    ``printed`` are the statements that say what the document says, ``disproof`` those whose proof
    shows that it is false, ``corrected`` those that say what is right.  ``mends`` says what the
    correction changes, if it keeps the conclusion; ``unstated`` why what is printed is not a
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
        """Role and text of every named statement."""
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
        """Every id of a claim, including broken ones."""
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
        """Return the claims that are named, or whose document is; everything if nothing is named.

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
    """Return the ledger of the package and of ``claims/*.toml`` in further folders.

    Theorems that are named must exist in the ``catalogue``.
    """
    demonstrations = demonstration_files(more)
    documents: list[Document] = []
    claims: list[ClaimEntry] = []
    broken: list[BrokenClaim] = []
    theorems = catalogue.ids
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
                faults = list(_unknown(claim, theorems, demonstrations))
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
    """Return the file of every demonstration, by id."""
    found: dict[str, Path] = {}
    for path in _beside(more, "demonstrations/*.py"):
        if not path.name.startswith(("_", ".")):
            for name in demonstrations_in(path):
                found.setdefault(name, path)
    return found


def nearest(name: str, known: Collection[str]) -> str:
    """Return the most similar names, as an error message states them."""
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


WORDS: dict[str, tuple[str, ...]] = {
    "origin": get_args(Origin),
    "kind": get_args(Kind),
    "mends": get_args(Mends),
    "expected": VERDICTS,
}
KEYS = {f.name: f for f in fields(ClaimEntry) if f.name != "document"}
REQUIRED = [name for name, f in KEYS.items() if f.default is MISSING]
LISTS = [name for name, f in KEYS.items() if f.default == ()]


def read(path: Path) -> Ledger:
    """Return the document and the claims of a file; mistakes in it are ``broken``, line by line."""
    label, name = f"{path.parent.name}/{path.name}", path.stem
    try:
        with path.open("rb") as file:
            content = tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else " ".join(str(error).split())
        return Ledger(broken=(BrokenClaim(label, f"cannot be read as TOML: {why}", name),))
    faults = list(_of_the_file(content, name))
    if faults:
        return Ledger(broken=tuple(BrokenClaim(label, fault, name) for fault in faults))
    claims: list[ClaimEntry] = []
    broken: list[BrokenClaim] = []
    for number, table in enumerate(content.get("claim", ()), 1):
        known = table.get("id") if isinstance(table.get("id"), str) else ""
        told = known or f"claim {number}"
        found = [f"{told}: {fault}" for fault in _of_the_claim(table)]
        broken += [BrokenClaim(label, fault, name, known) for fault in found]
        if not found:
            lists = {key: tuple(value) for key, value in table.items() if key in LISTS}
            claims.append(ClaimEntry(document=name, **{**table, **lists}))
    return Ledger((Document(**content["document"]),), tuple(claims), tuple(broken))


def _of_the_file(content: dict[str, Any], name: str) -> Iterator[str]:
    """Yield what is wrong with a file as a whole."""
    for key in content:
        if key not in ("document", "claim"):
            yield f"wanted the table [document] and tables [[claim]], got the key {key!r}"
    document = content.get("document")
    if not isinstance(document, dict):
        yield "wanted the table [document] with id, title and kind; there is none"
    else:
        wanted = [f.name for f in fields(Document)]
        yield from _unknown_keys(document, wanted, "[document]: ")
        for key in wanted:
            if fault := _text(document, key, {}, required=True):
                yield f"[document]: {fault}"
        if document.get("id") != name:
            yield f"[document]: id: wanted {name!r}, the file's name, got {document.get('id')!r}"
    claims = content.get("claim", [])
    if not isinstance(claims, list) or not all(isinstance(table, dict) for table in claims):
        yield "wanted tables [[claim]], with two brackets, got [claim] or a value"


def _of_the_claim(table: dict[str, Any]) -> list[str]:
    """Return what is wrong with one claim; its meaning is checked only if its keys are right."""
    faults = [*_unknown_keys(table, KEYS), *_keys(table)]
    return faults or list(_sense(table))


def _keys(table: dict[str, Any]) -> Iterator[str]:
    for key in KEYS:
        if key in LISTS:
            value = table.get(key, [])
            if not isinstance(value, list) or not all(isinstance(v, str) and v for v in value):
                yield f"{key}: wanted a list of ids, got {value!r}"
            elif len(set(value)) < len(value):
                yield f"{key}: wanted each id once, got {value!r}"
        elif fault := _text(table, key, WORDS, required=key in REQUIRED):
            yield fault


def _text(
    table: dict[str, Any], key: str, words: Mapping[str, Sequence[str]], *, required: bool
) -> str:
    """Return what is wrong with a value that should be text, or one of a few words."""
    if key not in table:
        return f"{key}: wanted, and missing" if required else ""
    value = table[key]
    if not isinstance(value, str) or (required and not value.strip()):
        return f"{key}: wanted words, got {value!r}"
    known = words.get(key, ())
    if value and known and value not in known:
        return f"{key}: wanted {', '.join(known[:-1])} or {known[-1]}, got {value!r}"
    return ""


def _unknown_keys(table: dict[str, Any], known: Any, place: str = "") -> Iterator[str]:
    for key in table:
        if key not in known:
            yield f"{place}{key}: there is no such key; {nearest(key, list(known))}"


def _sense(table: dict[str, Any]) -> Iterator[str]:
    """Yield what cannot be meant, or could never be decided."""
    has = {key for key, value in table.items() if value}
    if {"undecided", "not_checkable"} <= has:
        yield "undecided and not_checkable: wanted one reason, got two"
    if not has & {*LISTS, "undecided", "not_checkable"}:
        yield (
            "wanted something that decides it: printed, disproof, corrected, demonstrations, "
            "undecided or not_checkable; got none"
        )
    if {"unstated", "printed"} <= has:
        yield "unstated: what is not a statement cannot be printed as one; name one of them"
    if "corrected" in has and not has & {"printed", "disproof", "demonstrations", "unstated"}:
        yield (
            "corrected: wanted what shows the printed form wrong as well: printed, disproof, "
            "demonstrations or unstated"
        )
    if "mends" in has and not has & {"corrected", "unstated"}:
        yield "mends: wanted the statement that is right in corrected, got none"
    if has & {"mends", "unstated"} and "correction" not in has:
        yield "correction: wanted, in words, what is right; got none"
