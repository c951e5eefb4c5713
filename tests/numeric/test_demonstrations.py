"""Demonstrations: the sources' code computed again, what must be refused, imported files."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from attnproof.numeric.demonstration import (
    Demonstration,
    Row,
    demonstration,
    load_demonstrations,
    reproduced,
)
from attnproof.numeric.file_imports import demonstrations_in, imported

LOADED = load_demonstrations()


@cache
def rows_of(one: Demonstration) -> Sequence[Row]:
    """What it shows, run once for all tests."""
    return one.run()


def test_what_a_file_declares_is_known_by_its_text(root: Path) -> None:
    files = (root / "theorems/demonstrations").glob("[!_]*.py")
    assert not LOADED.broken
    assert set(LOADED.found) == {name for path in files for name in demonstrations_in(path)}
    assert len(LOADED.found) >= 10
    for name, one in LOADED.found.items():
        assert one.run.__name__.replace("_", "-") == name
        assert one.claims


@pytest.mark.parametrize("name", LOADED.found)
def test_each_comes_out_as_its_file_says(name: str) -> None:
    rows = rows_of(LOADED.found[name])
    assert all(row.as_expected for row in rows), [row.says for row in rows if not row.as_expected]
    assert any(row.agrees is not None for row in rows)
    assert reproduced(rows) == (name != "the-image-pattern-cannot-run")
    assert all(row.ours_text for row in rows)


@pytest.mark.parametrize("one", LOADED.found.values(), ids=list(LOADED.found))
def test_a_wrong_printed_value_is_refused(one: Demonstration) -> None:
    for row in rows_of(one):
        if row.agrees is not True:
            continue
        if row.digits is not None:
            wrong = np.array(row.printed, dtype=float)
            wrong.flat[-1] += 10.0**-row.digits
            planted = replace(row, printed=wrong)
        elif isinstance(row.printed, bool):
            planted = replace(row, printed=not row.printed)
        else:
            planted = replace(row, printed=f"{row.printed}!")
        assert planted.agrees is False, row.says
        assert not reproduced([row, planted])


def test_the_same_numbers_every_time() -> None:
    for one in LOADED.found.values():
        first, second = ([row.ours_text for row in rows] for rows in (rows_of(one), one.run()))
        assert first == second


@pytest.mark.parametrize(
    "row",
    [
        Row("another shape", np.zeros(2), np.zeros(3), digits=3),
        Row("no number", float("nan"), 0.5, digits=3),
        Row("an infinity", float("inf"), 0.5, digits=3),
        Row("half a unit and more", 0.12351, 0.123, digits=3),
        Row("a number for a word", 1, "1"),
        Row("a longer list", (1, 2, 3), (1, 2)),
    ],
    ids=lambda row: row.says,
)
def test_values_that_do_not_agree(row: Row) -> None:
    assert row.agrees is False
    assert not row.as_expected


def test_nothing_printed_is_no_agreement() -> None:
    row = Row("ours alone", 0.5)
    assert row.agrees is None
    assert row.as_expected
    assert not reproduced([row])


def test_a_difference_that_is_expected() -> None:
    wrong = Row("what the source prints is wrong", 1, printed=2, expected_to_differ=True)
    assert wrong.as_expected
    assert not reproduced([wrong])
    assert not replace(wrong, printed=1).as_expected


def test_texts_show_the_digits_that_are_compared() -> None:
    row = Row("a matrix", np.array([[0.12345, -0.00001], [1, 2]]), np.ones((2, 2)), digits=3)
    assert row.ours_text == "0.123, 0.000\n1.000, 2.000"
    assert row.printed_text == "1.000, 1.000\n1.000, 1.000"
    assert Row("ours alone", True).printed_text == ""


def test_decimals_want_digits() -> None:
    with pytest.raises(TypeError, match="say to how many digits"):
        Row("a weight", 0.5, printed=0.5)
    with pytest.raises(TypeError, match="from what"):
        Row("a weight", 0.5, expected_to_differ=True)
    run = lambda: [Row("ours alone", 1)]  # noqa: E731 (a function without a docstring)
    with pytest.raises(TypeError, match="no docstring"):
        demonstration("without words")(run)


def test_a_broken_file_is_reported_by_name(tmp_path: Path) -> None:
    good = (
        "from attnproof.numeric.demonstration import Row, demonstration\n"
        "@demonstration('A sum')\n"
        "def run():\n    'One and one.'\n    return [Row('1 + 1', 1 + 1, 2)]\n"
    )
    (tmp_path / "a_sum.py").write_text(good, encoding="utf-8")
    (tmp_path / "not_python.py").write_text("def", encoding="utf-8")
    (tmp_path / "says_nothing.py").write_text("x = 1\n", encoding="utf-8")
    (tmp_path / "_aside.py").write_text("1 / 0\n", encoding="utf-8")
    loaded = load_demonstrations(tmp_path)
    assert set(loaded.found) == {"a-sum"}
    assert reproduced(loaded.found["a-sum"].run())
    assert loaded.broken["not-python"].startswith("SyntaxError")
    assert "this one has none" in loaded.broken["says-nothing"]
    assert set(loaded.broken) == {"not-python", "says-nothing"}


def test_several_of_one_file_have_their_own_names_also_where_it_is_broken(tmp_path: Path) -> None:
    one = "@demonstration('A sum')\ndef {}():\n    'A sum.'\n    return [Row('1', 1, 1)]\n"
    head = "from attnproof.numeric.demonstration import Row, demonstration\n"
    path = tmp_path / "sums.py"
    path.write_text(head + one.format("one_sum") + one.format("another"), encoding="utf-8")
    assert set(load_demonstrations(tmp_path).found) == {"one-sum", "another"}
    path.write_text("1 / 0\n" + one.format("one_sum") + one.format("another"), encoding="utf-8")
    assert set(load_demonstrations(tmp_path).broken) == {"one-sum", "another"}


def test_a_file_that_was_changed_within_a_second_is_read_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    path = tmp_path / "mine.py"
    for text in ("x + y", "x - y"):  # of one length, at one time: what is stored would be taken
        path.write_text(f"told = {text!r}\n", encoding="utf-8")
        os.utime(path, (10**9, 10**9))
        assert imported(path, "p_").told == text


def test_what_is_no_python_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("told = 1\n", encoding="utf-8")
    with pytest.raises(ImportError, match=r"mine\.txt is not a Python file"):
        imported(path, "p_")
