"""Runs with a store: what is finished is taken from it, and nothing that is not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from attnproof import cli, runner
from attnproof.catalogue import load_catalogue
from attnproof.checking import check
from attnproof.ledger import Ledger, demonstration_files
from attnproof.records import BrokenFile, TheoremRecord
from attnproof.runner import run
from attnproof.sweeping.digests import stamps
from attnproof.sweeping.kept import Code, Writer, theorem_key
from attnproof.sweeping.store import Store
from attnproof.terminal import from_store
from tests.front.stored import PLAIN, WriteDemonstration, WriteTheorem, kept_at, ran


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
    assert from_store(two).endswith("; --fresh checks anew")
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
        assert "files changed while it ran" in writer.keep(key, files, record)
        assert writer.keep(key, stamps([path]), record) == ""
        code.write_text("# changed", encoding="utf-8")
        assert "files changed while it ran" in writer.keep(key, stamps([path]), record)
        assert len(store) == 1


def test_demonstrations_are_kept_as_well(
    write_demonstration: WriteDemonstration, tmp_path: Path
) -> None:
    path, place = write_demonstration(), tmp_path / "store.sqlite"
    ledger = Ledger(demonstrations={"two-and-two": path})
    assert "two-and-two" in demonstration_files([tmp_path])

    def shown() -> Any:
        catalogue = load_catalogue().having([])
        return run(catalogue, PLAIN, ledger=ledger, kept=kept_at(place)).demonstrations[0]

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
