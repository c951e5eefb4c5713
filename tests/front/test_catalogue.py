"""Finding theorem files, and what becomes of those that are broken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from attnproof.catalogue import NO_SUBJECTS, load_catalogue
from attnproof.faults import failure

WriteTheorem = Callable[..., Path]


def test_the_package_has_a_catalogue_without_a_broken_file() -> None:
    catalogue = load_catalogue()
    assert not catalogue.broken
    assert "attention-ignores-the-order-of-pairs" in catalogue.ids
    assert all(entry.id == entry.theorem.id for entry in catalogue.entries)
    assert all(entry.subject == entry.theorem.subject for entry in catalogue.entries)
    assert "definitions" not in catalogue.names


def test_every_theorem_file_of_the_package_is_found(root: Path) -> None:
    files = {
        path.stem.replace("_", "-")
        for path in (root / "theorems").glob("*/*.py")
        if path.name != "__init__.py" and path.parent.name not in NO_SUBJECTS
    }
    assert set(load_catalogue().ids) == files


def test_a_folder_of_subjects_a_folder_and_a_file_can_be_added(
    write_theorem: WriteTheorem, tmp_path: Path
) -> None:
    path = write_theorem("addition_commutes")
    for place in (tmp_path, path.parent, path):
        entries = {entry.id: entry for entry in load_catalogue([place]).entries}
        assert entries["addition-commutes"].subject == "mine"
        assert entries["addition-commutes"].theorem.title == "Addition commutes"


BROKEN = {
    "raises": ("1 / 0", "ZeroDivisionError: division by zero (line 1)"),
    "imports_nothing_there": ("import nothing_there", "No module named 'nothing_there' (line 1)"),
    "is_no_python": ("\n\ndef (:", "SyntaxError: invalid syntax (line 3)"),
    "ends_the_program": ("raise SystemExit(0)", "SystemExit: 0 (line 1)"),
    "declares_nothing": ("x = 1", "declares one @theorem; this one declares 0"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_named_and_stops_no_other(write_theorem: WriteTheorem, name: str) -> None:
    text, error = BROKEN[name]
    path = write_theorem(name, text)
    write_theorem("addition_commutes")
    catalogue = load_catalogue([path.parent])
    (broken,) = catalogue.broken
    assert broken.source.path == path
    assert error in broken.error
    assert "addition-commutes" in catalogue.ids


def test_an_error_outside_the_file_has_no_place(write_theorem: WriteTheorem) -> None:
    path = write_theorem("declares_nothing", "x = 1")
    (broken,) = load_catalogue([path]).broken
    assert broken.error == "TypeError: a theorem file declares one @theorem; this one declares 0"
    elsewhere = write_theorem("declares_nothing", "1 / 0", subject="yours")
    with pytest.raises(ZeroDivisionError) as raised:
        exec(compile("1 / 0", elsewhere, "exec"))
    assert failure(raised.value, path) == "ZeroDivisionError: division by zero"
    assert failure(raised.value, elsewhere).endswith("(line 1)")


def test_two_theorems_in_a_file_are_refused(write_theorem: WriteTheorem, true_theorem: str) -> None:
    second = true_theorem[true_theorem.index("@theorem") : true_theorem.index("@statement")]
    path = write_theorem("two", true_theorem + second.replace("def statement", "def another"))
    (broken,) = load_catalogue([path]).broken
    assert "declares 2: statement, another" in broken.error


def test_a_theorem_imported_from_another_file_is_not_declared_twice(
    write_theorem: WriteTheorem, true_theorem: str
) -> None:
    lemma = "from attnproof.theorems.softmax.rows_of_softmax_are_distributions import "
    path = write_theorem("uses_a_lemma", true_theorem + f"\n{lemma}statement as lemma\n")
    assert not load_catalogue([path]).broken


def test_undecided_cannot_be_expected(write_theorem: WriteTheorem, true_theorem: str) -> None:
    text = true_theorem.replace("sources=", 'expected="undecided", sources=')
    (broken,) = load_catalogue([write_theorem("hopes", text)]).broken
    assert "'undecided'" in broken.error


def test_an_id_that_is_taken_names_both_files(write_theorem: WriteTheorem) -> None:
    first = write_theorem("addition_commutes")
    second = write_theorem("addition_commutes", subject="yours")
    catalogue = load_catalogue([first.parent, second.parent])
    (broken,) = catalogue.broken
    assert str(first) in broken.error
    assert str(second) in broken.error
    assert catalogue.ids.count("addition-commutes") == 1


def test_the_same_file_named_twice_is_one_theorem(write_theorem: WriteTheorem) -> None:
    path = write_theorem("addition_commutes")
    assert not load_catalogue([path, path.parent]).broken


def test_a_selection_takes_ids_and_subjects() -> None:
    catalogue = load_catalogue()
    chosen = catalogue.select(["softmax", "attention-ignores-the-order-of-pairs"])
    assert {entry.subject for entry in chosen.entries} == {"softmax", "permutation"}
    assert sum(entry.subject == "permutation" for entry in chosen.entries) == 1
    assert catalogue.select([]) is catalogue
