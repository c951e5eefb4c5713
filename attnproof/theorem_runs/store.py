"""The store: finished work in one sqlite file, under the digest of all that it depends on.

There may be many writers: every row is written in one transaction, and sqlite's write-ahead log
keeps what was committed when a process is killed.  A file that is damaged, or is not a store, is
never read: it is set aside under another name, and this is reported.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

APPLICATION = int.from_bytes(b"attn", "big")
VERSION = 1
WAIT = 60.0  # seconds for another writer to end its transaction
TRIES = 10  # to open a store that others are creating
SIDES = ("", "-wal", "-shm")
T = TypeVar("T")
TABLE = """
CREATE TABLE IF NOT EXISTS finished (
    key TEXT PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, made TEXT NOT NULL,
    identity TEXT NOT NULL, record TEXT NOT NULL, digest TEXT NOT NULL
) WITHOUT ROWID
"""


class StoreError(Exception):
    """The store cannot be used; says what was wanted, what came, and what to do."""


class NotAStore(StoreError):
    """The file that was named as the store is something else."""


@dataclass(frozen=True)
class Key:
    """Finished work by what it depends on: ``identity`` is all of it, ``digest`` its hash.

    ``identity`` is JSON; ``kind`` is theorem, demonstration or cell; ``name`` is for readers.
    """

    kind: str
    name: str
    identity: str

    @property
    def digest(self) -> str:
        """The hash under which it is kept."""
        return sha256(f"{self.kind}\0{self.identity}".encode()).hexdigest()


@dataclass(frozen=True)
class Stored:
    """A record from the store, as JSON, and when it was made."""

    record: str
    made: datetime


def default_place() -> Path:
    """Return ``$XDG_CACHE_HOME/attnproof/store.sqlite``, by default in ``~/.cache``."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(home) if Path(home).is_absolute() else Path.home() / ".cache"
    return root / "attnproof" / "store.sqlite"


class Store:
    """The store in a file.

    ``messages`` are lines that the user must see: what was set aside, and damaged rows.  Raises
    :class:`StoreError` if no store can be kept, and :class:`NotAStore`, with ``named``, if the file
    that the user named is something else.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "store.sqlite"
    >>> with Store(place) as store:
    ...     store.put(Key("cell", "one", "{}"), '{"status": "held"}')
    ...     store.get(Key("cell", "one", "{}")).record
    True
    '{"status": "held"}'
    """

    def __init__(self, place: Path, *, named: bool = False, examine: bool = True) -> None:
        self.place, self.messages = place, list[str]()
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            if examine:
                self._examine(named)
            self._connection = _again(lambda: _made(place))
        except (OSError, sqlite3.Error) as error:
            raise StoreError(
                f"wanted a store in {place}, got {type(error).__name__}: {error}; name another "
                "file with --store"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _examine(self, named: bool) -> None:
        """Set aside a file that cannot be trusted."""
        seen = _inode(self.place)
        why, ours = _again(lambda: _fault(self.place))
        if not why:
            return
        if named and not ours:
            raise NotAStore(f"wanted a store, got {self.place}, which {why}; name another file")
        aside = next(
            path
            for k in range(1, 1_000_000)
            if not (path := self.place.with_name(f"{self.place.name}.set-aside-{k}")).exists()
        )
        if _inode(self.place) != seen:
            return  # another process was faster
        for side in SIDES:
            old = self.place.with_name(self.place.name + side)
            if old.exists():
                old.rename(aside.with_name(aside.name + side))
        self.messages.append(
            f"the store {self.place} {why}; it was renamed to {aside.name}, and a new store begun"
        )

    def get(self, key: Key) -> Stored | None:
        """Return what is stored under a key, unless its row is damaged."""
        row = self._one("SELECT made, record, digest FROM finished WHERE key = ?", key.digest)
        if row is None:
            return None
        made, record, digest = row
        if digest != _row_digest(key.digest, made, record):
            self.messages.append(f"the row of {key.name} in {self.place} is damaged and not used")
            self._write("DELETE FROM finished WHERE key = ?", key.digest)
            return None
        return Stored(record, datetime.fromisoformat(made))

    def put(self, key: Key, record: str, *, replace: bool = False) -> bool:
        """Store a record, in one transaction; an existing one stays unless it is replaced.

        Returns whether it was written.
        """
        made = datetime.now(UTC).isoformat()
        values = (
            key.digest,
            key.kind,
            key.name,
            made,
            key.identity,
            record,
            _row_digest(key.digest, made, record),
        )
        verb = "REPLACE" if replace else "IGNORE"
        told = f"INSERT OR {verb} INTO finished VALUES (?, ?, ?, ?, ?, ?, ?)"
        return self._write(told, *values) == 1

    def known(self, keys: Iterable[Key]) -> set[str]:
        """Return the digests of those keys that have a row."""
        wanted = {key.digest for key in keys}
        return {row[0] for row in self._rows("SELECT key FROM finished") if row[0] in wanted}

    def __len__(self) -> int:
        row = self._one("SELECT count(*) FROM finished")
        assert row is not None
        return int(row[0])

    def __iter__(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield kind, name, key and time of every row, in the order of creation."""
        told = "SELECT kind, name, key, made FROM finished ORDER BY made, key"
        for row in self._rows(told):
            kind, name, key, made = row
            yield kind, name, key, made

    def _one(self, sql: str, *values: str) -> tuple[str, ...] | None:
        return next(iter(self._rows(sql, *values)), None)

    def _rows(self, sql: str, *values: str) -> list[tuple[str, ...]]:
        try:
            return list(self._connection.execute(sql, values))
        except sqlite3.Error as error:
            raise StoreError(f"the store {self.place} cannot be read: {error}") from error

    def _write(self, sql: str, *values: str) -> int:
        try:
            return self._connection.execute(sql, values).rowcount
        except sqlite3.Error as error:
            raise StoreError(f"the store {self.place} cannot be written: {error}") from error


def open_store(place: Path | None) -> tuple[Store | None, list[str]]:
    """Return the store of a command, or None to go on without, and what the user must see.

    Raises :class:`NotAStore` if the named file is something else.
    """
    try:
        store = Store(place or default_place(), named=place is not None)
    except NotAStore:
        raise
    except StoreError as error:
        return None, [f"{error}; nothing is stored"]
    return store, store.messages


def _row_digest(key: str, made: str, record: str) -> str:
    return sha256(f"{key}\0{made}\0{record}".encode()).hexdigest()


def _inode(place: Path) -> int | None:
    return place.stat().st_ino if place.exists() else None


def _again(how: Callable[[], T]) -> T:
    """Call sqlite; call it again if another connection is changing the journal.

    Sqlite then says "disk I/O error", as it does for a bad disk.
    """
    for _ in range(TRIES - 1):
        try:
            return how()
        except sqlite3.OperationalError as error:
            if "disk I/O error" not in str(error):
                raise
            time.sleep(0.02)
    return how()


def _made(place: Path) -> sqlite3.Connection:
    """Return a connection to a store, created if missing; each statement commits by itself."""
    connection = sqlite3.connect(place, timeout=WAIT, isolation_level=None, check_same_thread=False)
    try:
        _patiently(connection, "PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")  # a kill loses nothing that is committed
        if _number(connection, "user_version") != VERSION:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(TABLE)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection


def _patiently(connection: sqlite3.Connection, sql: str) -> None:
    """Execute a statement, waiting for others, as sqlite does not while the journal changes."""
    until = time.monotonic() + WAIT
    while True:
        try:
            connection.execute(sql)
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.02)


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])


def _fault(place: Path) -> tuple[str, bool]:
    """Return why a file cannot be used, or nothing, and whether it is a store of ours."""
    if not place.exists() or (place.is_file() and place.stat().st_size == 0):
        return "", True
    if not place.is_file():
        return "is not a regular file", False
    ours = False
    try:
        connection = sqlite3.connect(place, timeout=WAIT, isolation_level=None)
        try:
            connection.execute("BEGIN")  # one snapshot: another process may be creating the table
            mark, version = (_number(connection, p) for p in ("application_id", "user_version"))
            empty = not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if empty and mark in (0, APPLICATION):
                return "", True  # a process was killed before it created the table
            ours = mark == APPLICATION
            if not ours:
                return "is a database of another program", False
            if version != VERSION:
                return f"has version {version}, but this attnproof reads version {VERSION}", True
            found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            return ("" if found == "ok" else f"is broken ({found})"), True
        finally:
            connection.close()
    except sqlite3.OperationalError:
        raise  # locked or unreadable: no reason to set it aside
    except sqlite3.DatabaseError as error:
        return f"is broken ({error})", ours
