"""The store: nothing finished is lost or mixed, and nothing that is not a store is read."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from attnproof.sweeping import store as store_module
from attnproof.sweeping.kept import opened
from attnproof.sweeping.store import Foreign, Key, Store, StoreError, default_place
from benchmarks.kills import Kills

KEY = Key("cell", "one", '{"seed": 0}')


def test_a_row_is_there_for_who_opens_the_store_next(tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        assert store.put(KEY, "first")
        assert not store.put(KEY, "second")
    with Store(tmp_path / "store.sqlite") as store:
        found = store.get(KEY)
        assert found is not None
        assert (found.record, len(store), store.told) == ("first", 1, [])
        assert store.put(KEY, "second", replace=True)
        assert store.get(replace(KEY, kind="theorem")) is None
    assert len(list(tmp_path.glob("*set-aside*"))) == 0


def test_many_writers_at_once_lose_nothing_and_write_nothing_twice(tmp_path: Path) -> None:
    place = tmp_path / "store.sqlite"

    def write(start: int) -> None:
        with Store(place) as store:
            for k in range(start, start + 60):
                store.put(Key("cell", str(k), str(k)), "x" * k)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, (0, 30, 60, 90)))
    with Store(place) as store:
        assert sorted(int(name) for _, name, _, _ in store) == list(range(150))


@pytest.mark.parametrize("how", ["text", "half", "garbled", "version"])
def test_a_broken_store_is_told_and_set_aside(tmp_path: Path, how: str) -> None:
    place = tmp_path / "store.sqlite"
    with Store(place) as store:
        for k in range(200):
            store.put(Key("cell", str(k), str(k)), "x" * 500)
    whole = place.read_bytes()
    if how == "version":
        with sqlite3.connect(place) as connection:
            connection.execute("PRAGMA user_version = 7")
        connection.close()
    else:
        middle = whole[:8192] + b"\x00\xff" * 8192 + whole[24576:]
        place.write_bytes({"text": b"not a store", "half": whole[:9000], "garbled": middle}[how])
    changed = place.read_bytes()
    with Store(place) as store:
        (line,) = store.told
        assert len(store) == 0
        assert store.put(KEY, "anew")
    assert "set aside as store.sqlite.set-aside-1" in line
    assert ("version 7" in line) == (how == "version")
    assert (tmp_path / "store.sqlite.set-aside-1").read_bytes() == changed


def test_a_file_that_is_something_else_is_left_alone_if_it_was_named(tmp_path: Path) -> None:
    other = tmp_path / "notes.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE notes (line TEXT)")
    connection.close()
    before = other.read_bytes()
    with pytest.raises(Foreign, match="is a database of something else; name another file"):
        Store(other, named=True)
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(Foreign, match="is broken"):
        Store(tmp_path / "notes.txt", named=True)
    assert other.read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"notes.sqlite", "notes.txt"}


def test_a_place_that_cannot_be_written_is_told_and_the_run_goes_on(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="name another file with --store"):
        Store(tmp_path / "file" / "store.sqlite")
    nothing, (line,) = opened(tmp_path / "file" / "store.sqlite")
    assert nothing is None
    assert line.endswith("nothing is kept")


def test_a_damaged_row_is_not_used(tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        store.put(KEY, '{"status": "held"}')
    with sqlite3.connect(tmp_path / "store.sqlite") as connection:
        connection.execute("UPDATE finished SET record = replace(record, 'held', 'bent')")
    connection.close()
    with Store(tmp_path / "store.sqlite") as store:
        assert store.get(KEY) is None
        assert "the row of one" in store.told[0]
        assert len(store) == 0


def test_the_store_stands_in_the_cache_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert default_place() == Path("/somewhere/attnproof/store.sqlite")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # to be ignored, as its standard says
    assert default_place() == Path.home() / ".cache" / "attnproof" / "store.sqlite"


def test_five_kills_lose_nothing_and_count_nothing_twice(tmp_path: Path) -> None:
    told: list[tuple[int, str]] = []
    kills = Kills(tmp_path, selection=("softmax",), seed=3, tell=lambda *now: told.append(now))
    kills.run(5)
    assert (kills.killed, kills.wrong) == (5, [])
    assert kills.wholes >= 1
    assert told[0] == (0, "a run that nobody disturbs")
    assert sorted({killed for killed, _ in told}) == list(range(6))
    assert told[-1][1].startswith(f"run {kills.wholes}, in ")
    assert told[-1][1].endswith(", to its end")


@pytest.mark.parametrize(("fault", "told"), [("late", "lost: "), ("twice", "twice: ")])
def test_kills_find_a_fault_of_the_store(tmp_path: Path, fault: str, told: str) -> None:
    kills = Kills(tmp_path, selection=("softmax",), fault=fault, seed=3)
    kills.run(5)
    assert kills.wrong
    assert kills.wrong[0].startswith(told)


def test_a_journal_that_another_is_changing_is_waited_for_and_a_bad_disk_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, left = store_module._made, [3]

    def in_the_way(place: Path) -> sqlite3.Connection:
        left[0] -= 1
        if left[0] >= 0:
            raise sqlite3.OperationalError("disk I/O error")
        return made(place)

    monkeypatch.setattr(store_module, "_made", in_the_way)
    with Store(tmp_path / "store.sqlite") as store:
        assert store.put(KEY, "kept")
    left[0] = 10**6
    with pytest.raises(StoreError, match="disk I/O error"):
        Store(tmp_path / "other.sqlite")


def test_a_store_that_another_makes_while_it_is_looked_at_is_not_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, number, made = tmp_path / "store.sqlite", store_module._number, list[str]()
    with sqlite3.connect(place) as begun:
        begun.execute("PRAGMA journal_mode = WAL")
    begun.close()

    def meanwhile(connection: sqlite3.Connection, pragma: str) -> int:
        found = number(connection, pragma)
        if not made and pragma == "user_version":
            made.append("the table")
            store_module._made(place).close()
        return found

    monkeypatch.setattr(store_module, "_number", meanwhile)
    with Store(place) as store:
        assert (made, store.told) == (["the table"], [])
