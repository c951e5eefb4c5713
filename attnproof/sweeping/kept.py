"""What a run finds in the store, and leaves in it: records of theorems and demonstrations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationError

from ..records import DemonstrationRecord, TheoremRecord
from .digests import (
    Stamp,
    calibration,
    device_name,
    source_digest,
    sources,
    stamps,
    statement_digest,
    versions,
)
from .limits import spent_memory
from .store import Key, Store, StoreError

if TYPE_CHECKING:
    from ..catalogue import Entry
    from ..checking import Options

R = TypeVar("R", TheoremRecord, DemonstrationRecord)


@dataclass(frozen=True)
class Code:
    """The package's code as it was when a run began: its digest, and the stamps of its files."""

    digest: str
    stamps: tuple[Stamp, ...]

    @property
    def unchanged(self) -> bool:
        """Whether no file was written since."""
        return stamps(Path(path) for path, _, _ in self.stamps) == self.stamps


@cache
def code() -> Code:
    """The code of this process."""
    found = sources()
    return Code(source_digest(found), stamps(found))


@dataclass(frozen=True)
class Writer:
    """Leaves finished records in a store, from any process.

    Nothing is left once a file has changed that the record depends on: what was loaded before
    and what was loaded after would be mixed, and the key would tell of neither.
    """

    place: Path
    code: Code
    fresh: bool

    def keep(
        self, key: Key, files: tuple[Stamp, ...], record: TheoremRecord | DemonstrationRecord
    ) -> str:
        """Leave a record; why it could not be, or nothing.

        What is not ok is not left, nor what was skipped for want of memory: another time there
        may be more.
        """
        if not record.ok or _short_of_memory(record):
            return ""
        if not self.code.unchanged or stamps(Path(path) for path, _, _ in files) != files:
            return "files changed while it ran, so nothing more was kept in the store"
        try:
            attached(self.place).put(key, record.model_dump_json(), replace=self.fresh)
        except StoreError as error:
            return str(error)
        return ""

    def here(self) -> Kept | None:
        """The store as this process reads and writes it; None if its code is another."""
        if code().digest != self.code.digest:
            return None
        return Kept(attached(self.place), self.fresh, code=self.code)


def _short_of_memory(record: TheoremRecord | DemonstrationRecord) -> bool:
    if not isinstance(record, TheoremRecord):
        return False
    found = (*record.evidence, *record.control.evidence)
    return any(e.kind == "measured" and spent_memory(e.reason) for e in found)


@cache
def attached(place: Path) -> Store:
    """The connection of this process."""
    return Store(place, examine=False)


@dataclass
class Kept:
    """The store of one run.

    ``told`` are lines for the user.  With ``fresh`` nothing is taken from the store, and what is
    finished replaces what is there.
    """

    store: Store
    fresh: bool = False
    told: list[str] = field(default_factory=list)
    code: Code = field(default_factory=code)

    @property
    def writer(self) -> Writer:
        """What workers keep records with."""
        return Writer(self.store.place, self.code, self.fresh)

    def tell(self, line: str) -> None:
        """A line for the user, once."""
        if line and line not in self.told:
            self.told.append(line)

    def found(self, key: Key, kind: type[R]) -> R | None:
        """The record that is kept under a key, with the time of its check."""
        if self.fresh:
            return None
        try:
            stored = self.store.get(key)
            if stored is None:
                return None
            record = kind.model_validate_json(stored.record)
        except (StoreError, ValidationError) as error:
            self.tell(f"{key.name} is checked anew: {' '.join(str(error).split())}")
            return None
        finally:
            for line in self.store.told:
                self.tell(line)
        return record.model_copy(update={"stored": stored.made})


def opened(place: Path | None, *, fresh: bool = False) -> tuple[Kept | None, list[str]]:
    """The store of a run, and what the user must hear of it; without one the run goes on.

    Raises :class:`~attnproof.sweeping.store.Foreign` for a named file that is something else.
    """
    from .store import Foreign, default_place

    try:
        store = Store(place or default_place(), named=place is not None)
    except Foreign:
        raise
    except StoreError as error:
        return None, [f"{error}; nothing is kept"]
    return Kept(store, fresh), store.told


def theorem_key(entry: Entry, options: Options) -> tuple[Key, tuple[Stamp, ...]]:
    """The key of a theorem's record, and the stamp of its file.

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
                **_surroundings(options.device if options.numeric else ""),
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
    """The key of each demonstration, which depends on the files beside its own."""
    return {
        name: (_demonstration_key(name, _beside(path)), stamps(_beside(path)))
        for name, path in files.items()
    }


def _demonstration_key(name: str, beside: tuple[Path, ...]) -> Key:
    told = {"id": name, "source": source_digest(beside), **_surroundings("cpu")}
    return Key("demonstration", name, json.dumps(told, sort_keys=True))


def _beside(path: Path) -> tuple[Path, ...]:
    return tuple(sorted(path.parent.glob("*.py")))


def _surroundings(device: str) -> dict[str, object]:
    """Code, libraries, and where numbers are computed, if they are."""
    told: dict[str, object] = {"code": code().digest, "versions": versions()}
    if device:
        told |= {"device": device_name(device), "calibration": calibration(device)}
    return told
