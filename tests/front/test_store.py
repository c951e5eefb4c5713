"""The store: nothing finished is lost or mixed, and nothing that is not a store is read."""

from __future__ import annotations

import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from attnproof import cli
from attnproof.theorem_runs import run_store, runner
from attnproof.theorem_runs import store as store_module
from attnproof.theorem_runs.catalogue import load_catalogue
from attnproof.theorem_runs.checking import Options, check
from attnproof.theorem_runs.ledger import Ledger, demonstration_files
from attnproof.theorem_runs.records import BrokenFile, Results, TheoremRecord
from attnproof.theorem_runs.run_store import (
    Code,
    RunStore,
    Writer,
    digest_of,
    sources,
    stamps,
    statement_digest,
    theorem_key,
)
from attnproof.theorem_runs.runner import run
from attnproof.theorem_runs.store import (
    Key,
    NotAStore,
    Store,
    StoreError,
    default_place,
    open_store,
)
from attnproof.theorem_runs.terminal import from_store
from benchmarks.kills import Kills
from tests.front.outputs import WriteDemonstration, WriteTheorem, python

KEY = Key("cell", "one", '{"seed": 0}')


def test_a_row_is_there_for_who_opens_the_store_next(tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        assert store.put(KEY, "first")
        assert not store.put(KEY, "second")
    with Store(tmp_path / "store.sqlite") as store:
        found = store.get(KEY)
        assert found is not None
        assert (found.record, len(store), store.messages) == ("first", 1, [])
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
        (line,) = store.messages
        assert len(store) == 0
        assert store.put(KEY, "anew")
    assert "renamed to store.sqlite.set-aside-1" in line
    assert ("version 7" in line) == (how == "version")
    assert (tmp_path / "store.sqlite.set-aside-1").read_bytes() == changed


def test_a_file_that_is_something_else_is_left_alone_if_it_was_named(tmp_path: Path) -> None:
    other = tmp_path / "notes.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE notes (line TEXT)")
    connection.close()
    before = other.read_bytes()
    with pytest.raises(NotAStore, match="is a database of another program; name another file"):
        Store(other, named=True)
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(NotAStore, match="is broken"):
        Store(tmp_path / "notes.txt", named=True)
    assert other.read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"notes.sqlite", "notes.txt"}


def test_a_place_that_cannot_be_written_is_told_and_the_run_goes_on(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="name another file with --store"):
        Store(tmp_path / "file" / "store.sqlite")
    nothing, (line,) = open_store(tmp_path / "file" / "store.sqlite")
    assert nothing is None
    assert line.endswith("nothing is stored")


def test_a_damaged_row_is_not_used(tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        store.put(KEY, '{"status": "held"}')
    with sqlite3.connect(tmp_path / "store.sqlite") as connection:
        connection.execute("UPDATE finished SET record = replace(record, 'held', 'bent')")
    connection.close()
    with Store(tmp_path / "store.sqlite") as store:
        assert store.get(KEY) is None
        assert "the row of one" in store.messages[0]
        assert len(store) == 0


def test_the_store_stands_in_the_cache_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert default_place() == Path("/somewhere/attnproof/store.sqlite")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # to be ignored, as its standard says
    assert default_place() == Path.home() / ".cache" / "attnproof" / "store.sqlite"


@pytest.fixture
def quick(write_theorem: WriteTheorem, true_theorem: str) -> tuple[str, ...]:
    """Twelve theorems that take no time, for no kill waits for more."""
    head, _, one = true_theorem.partition("@theorem")
    several = [f"@theorem{one}".replace("statement", f"theorem_{k}") for k in range(12)]
    text = head + "\n\n".join(several)
    return "twelve", "--theorems", str(write_theorem("twelve", text).parent)


def test_five_kills_lose_nothing_and_count_nothing_twice(
    tmp_path: Path, quick: tuple[str, ...]
) -> None:
    told: list[tuple[int, str]] = []
    kills = Kills(tmp_path, selection=quick, seed=3, tell=lambda *now: told.append(now))
    kills.run(5)
    assert (kills.killed, kills.wrong) == (5, [])
    assert kills.wholes >= 1
    assert told[0] == (0, "a run that nobody disturbs")
    assert sorted({killed for killed, _ in told}) == list(range(6))
    assert told[-1][1].startswith(f"run {kills.wholes}, in ")
    assert told[-1][1].endswith(", to its end")


@pytest.mark.parametrize(("fault", "told"), [("late", "lost: "), ("twice", "twice: ")])
def test_kills_find_a_fault_of_the_store(
    tmp_path: Path, quick: tuple[str, ...], fault: str, told: str
) -> None:
    kills = Kills(tmp_path, selection=quick, fault=fault, seed=3)
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
        assert (made, store.messages) == (["the table"], [])


# Runs of theorem files with a store.


PLAIN = Options(numeric=False)


def kept_at(place: Path, *, fresh: bool = False) -> RunStore:
    found, told = open_store(place)
    assert found is not None
    assert not told
    return RunStore(found, fresh)


def ran(path: Path, place: Path, options: Options = PLAIN, *, fresh: bool = False) -> Results:
    catalogue = load_catalogue([path]).select(["mine"])
    return run(catalogue, options, run_store=kept_at(place, fresh=fresh))


# Runs with a store: what is finished is taken from it, and nothing that is not.


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_second_run_takes_what_the_first_has_finished(
    write_theorem: WriteTheorem, tmp_path: Path, jobs: int
) -> None:
    folder, place = write_theorem("first").parent, tmp_path / "store.sqlite"
    write_theorem("second")
    options = replace(PLAIN, jobs=jobs)
    one, two = ran(folder, place, options), ran(folder, place, options)
    assert [record.stored for record in one.theorems] == [None, None]
    assert all(record.stored is not None for record in two.theorems)
    assert [r.model_copy(update={"stored": None}) for r in two.theorems] == list(one.theorems)
    assert from_store(one) == ""
    assert from_store(two).startswith("2 of 2 theorems found in the store, checked 20")
    assert from_store(two).endswith("; --fresh checks again")
    three = ran(folder, place, options, fresh=True)
    assert [record.stored for record in three.theorems] == [None, None]
    four = ran(folder, place, options)
    assert four.theorems[0].model_copy(update={"stored": None}) == three.theorems[0]


def test_what_is_not_ok_or_broken_is_checked_again(
    write_theorem: WriteTheorem, true_theorem: str, mismatched: str, tmp_path: Path
) -> None:
    place = tmp_path / "store.sqlite"
    folder = write_theorem("wrong", true_theorem.replace("x - y, y - x", "x + y, y + x")).parent
    write_theorem("broken", mismatched)
    write_theorem("right")
    for _ in range(2):
        results = ran(folder, place)
        assert [len(results.theorems), len(results.broken)] == [2, 1]
    assert {r.id for r in results.theorems if r.stored is not None} == {"right"}


def test_an_interrupt_keeps_what_was_finished_in_the_store(
    write_theorem: WriteTheorem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, place = write_theorem("a_first").parent, tmp_path / "store.sqlite"
    write_theorem("b_second")
    real = check

    def interrupted(theorem: Any, source: Any, *rest: Any) -> TheoremRecord | BrokenFile:
        if source.id == "b-second":
            raise KeyboardInterrupt
        return real(theorem, source, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(runner, "check", interrupted)
        assert ran(folder, place).unfinished == ("b-second",)
    results = ran(folder, place)
    assert [record.stored is None for record in results.theorems] == [False, True]
    assert results.ok


def test_nothing_is_kept_once_a_file_has_changed(
    write_theorem: WriteTheorem, tmp_path: Path
) -> None:
    path = write_theorem("first")
    (entry,) = load_catalogue([path]).select(["mine"]).entries
    key, files = theorem_key(entry, PLAIN)
    record = check(entry.theorem, entry.source, PLAIN)
    assert isinstance(record, TheoremRecord)
    code = tmp_path / "code.py"
    code.touch()
    with Store(tmp_path / "store.sqlite") as store:
        writer = Writer(store.place, Code("", stamps([code])), fresh=False)
        path.write_text("# changed", encoding="utf-8")
        assert "files changed during the run" in writer.store(key, files, record)
        assert writer.store(key, stamps([path]), record) == ""
        code.write_text("# changed", encoding="utf-8")
        assert "files changed during the run" in writer.store(key, stamps([path]), record)
        assert len(store) == 1


def test_demonstrations_are_kept_as_well(
    write_demonstration: WriteDemonstration, tmp_path: Path
) -> None:
    path, place = write_demonstration(), tmp_path / "store.sqlite"
    ledger = Ledger(demonstrations={"two-and-two": path})
    assert "two-and-two" in demonstration_files([tmp_path])

    def shown() -> Any:
        catalogue = load_catalogue().with_ids([])
        return run(catalogue, PLAIN, ledger=ledger, run_store=kept_at(place)).demonstrations[0]

    first, second = shown(), shown()
    assert first.stored is None
    assert second == first.model_copy(update={"stored": second.stored})
    write_demonstration("By hand", "By head")
    assert shown().stored is None
    write_demonstration("2 + 2, printed=4", "2 + 2, printed=5")
    assert [shown().stored, shown().stored] == [None, None]


def test_the_command_resumes_and_says_so(
    write_theorem: WriteTheorem, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, file = write_theorem("first"), tmp_path / "mine.sqlite"
    words = ["run", "mine", "--no-numeric", "--theorems", str(path), "--store", str(file)]
    record = tmp_path / "record.json"
    assert cli.main(words) == 0
    assert "found in the store" not in capsys.readouterr().out
    assert cli.main([*words, "--json", str(record)]) == 0
    assert "1 of 1 theorems found in the store" in capsys.readouterr().out
    assert json.loads(record.read_text(encoding="utf-8"))["theorems"][0]["stored"]
    assert cli.main([*words, "--fresh"]) == 0
    assert "found in the store" not in capsys.readouterr().out
    other = tmp_path / "notes.txt"
    other.write_text("mine", encoding="utf-8")
    assert cli.main([*words[:-1], str(other)]) == 2
    assert "wanted a store" in capsys.readouterr().err


# Keys of the store: whatever can change a result changes its key, and nothing else does.


def test_what_can_change_a_result_counts_and_nothing_else() -> None:
    names = {path.relative_to(run_store.PACKAGE).as_posix() for path in sources()}
    wanted = {
        "theorem_runs/checking.py",
        "theorem_runs/judgement.py",
        "theorem_runs/translation.py",
        "symbolic/kernel.py",
        "numeric/run.py",
        "numeric/implementations/eager.py",
        "theorems/definitions/attention.py",
        "numeric/residues/exact.py",
        "sweeping/cells.py",
        "documents/evidence.py",
        "theorem_runs/demonstrations.py",
    }
    assert wanted <= names
    assert not {"cli.py", "theorem_runs/terminal.py", "theorem_runs/runner.py"} & names
    assert not {"theorems/softmax.py", "theorems/sinusoidal/shifts.py"} & names
    assert not any("__pycache__" in name for name in names)


def test_the_digest_of_a_statement_is_the_same_in_every_process(root: Path) -> None:
    code = (
        "from attnproof.theorem_runs.catalogue import load_catalogue\n"
        "from attnproof.theorem_runs.run_store import statement_digest\n"
        "c = load_catalogue().select({names!r})\n"
        "print(*(statement_digest(s) for e in c.entries[::{step}] for s in e.statements))"
    )
    found = []
    for seed, step in (("1", 1), ("2", -1)):
        text = code.format(names=["softmax", "positions"], step=step)
        done = python("-c", text, cwd=root, env={"PYTHONHASHSEED": seed, "PATH": ""})
        found.append(done.stdout.split())
    assert len(found[0]) == len(set(found[0]))
    assert sorted(found[0]) == sorted(found[1])


def test_what_has_no_digest_is_refused() -> None:
    (entry,) = load_catalogue().only("softmax-commutes-with-permutations").entries
    statement = entry.theorem.statement
    assert statement_digest(statement) != statement_digest(entry.theorem.control)
    said = replace(statement.claims[""], says=lambda: 0)  # type: ignore[arg-type]
    strange = replace(statement, claims={"": said})
    with pytest.raises(TypeError, match="contains a function, which has no digest"):
        statement_digest(strange)


def test_nothing_is_taken_that_was_made_otherwise(
    write_theorem: WriteTheorem, true_theorem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_theorem("first")
    catalogue = load_catalogue([path]).select(["mine"])
    (entry,) = catalogue.entries
    found = [theorem_key(entry, PLAIN)[0].digest]

    def another() -> None:
        digest = theorem_key(entry, options)[0].digest
        assert digest not in found
        found.append(digest)

    options = Options()
    another()
    for change in ({"seed": 1}, {"scale": "small"}, {"dtypes": ("float16",)}):
        options = replace(Options(), **change)
        another()
    options = PLAIN
    path.write_text(f"{true_theorem}# a remark\n", encoding="utf-8")
    another()
    write_theorem("first", true_theorem.replace("x + y, y + x", "x + y, x + y"))
    (entry,) = load_catalogue([path]).select(["mine"]).entries
    another()
    monkeypatch.setattr(run_store, "source_digest", lambda _: "the same")
    another()
    write_theorem("first", true_theorem)
    (entry,) = load_catalogue([path]).select(["mine"]).entries
    another()
    monkeypatch.setattr(run_store, "versions", lambda: {"torch": "another"})
    another()
    monkeypatch.setattr(run_store, "code", lambda: Code("another", ()))
    another()
    monkeypatch.setattr(run_store, "calibration", lambda _: "another")
    monkeypatch.setattr(run_store, "device_name", lambda _: "another")
    options = Options()
    another()


def test_a_demonstration_depends_on_the_processor_and_on_nothing_of_torch(
    write_demonstration: WriteDemonstration, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"two-and-two": write_demonstration()}
    found = run_store.demonstration_keys(files)["two-and-two"][0]
    monkeypatch.setattr(run_store, "calibration", lambda _: "another")
    monkeypatch.setattr(run_store, "device_name", lambda _: "another")
    assert run_store.demonstration_keys(files)["two-and-two"][0] == found
    monkeypatch.setattr(run_store, "processor", lambda: "another")
    assert run_store.demonstration_keys(files)["two-and-two"][0] != found


def test_another_calibration_is_another_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    from attnproof.numeric.calibration import store as in_force

    found = run_store.calibration("cpu")
    known = in_force.calibration_of(torch.device("cpu"))
    worse = known.constants[0].model_copy(update={"function_error": 99.0})
    other = known.model_copy(update={"constants": (worse, *known.constants[1:])})
    monkeypatch.setattr(in_force, "calibration_of", lambda _: other)
    assert run_store.calibration("cpu") != found
    later = known.model_copy(update={"seconds": known.seconds + 1})
    monkeypatch.setattr(in_force, "calibration_of", lambda _: later)
    assert run_store.calibration("cpu") == found


def test_the_number_of_processes_changes_no_key(write_theorem: WriteTheorem) -> None:
    (entry,) = load_catalogue([write_theorem("first")]).select(["mine"]).entries
    assert theorem_key(entry, PLAIN)[0] == theorem_key(entry, replace(PLAIN, jobs=2))[0]
    assert theorem_key(entry, PLAIN)[0] == theorem_key(entry, replace(PLAIN, seed=2))[0]


def test_keys_tell_all_they_were_made_of(write_theorem: WriteTheorem) -> None:
    (entry,) = load_catalogue([write_theorem("first")]).select(["mine"]).entries
    told = json.loads(theorem_key(entry, Options())[0].identity)
    assert told["versions"]["torch"]
    assert told["device"]
    assert digest_of(told) != digest_of({**told, "id": "second"})
