"""Finding theorem files, and what becomes of those that are broken."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from attnproof.errors import failure
from attnproof.theorem_runs.catalogue import load_catalogue, theorem_files
from tests.front.outputs import WriteTheorem


def test_the_package_has_a_catalogue_without_a_broken_file() -> None:
    catalogue = load_catalogue()
    assert not catalogue.broken
    assert "attention-ignores-the-order-of-pairs" in catalogue.ids
    assert "definitions" not in catalogue.names


def test_every_theorem_of_the_package_is_found(root: Path) -> None:
    """Its function is decorated, and nothing is listed; the subject is a folder or a file."""
    written, subjects = set(), set()
    for path in theorem_files(root / "theorems"):
        text = path.read_text(encoding="utf-8")
        names = re.findall(r"^@theorem\($.*?^def (\w+)", text, re.MULTILINE | re.DOTALL)
        assert names, path
        written |= {name.replace("_", "-") for name in names}
        subjects.add(path.relative_to(root / "theorems").with_suffix("").parts[0])
    catalogue = load_catalogue()
    assert set(catalogue.ids) == written
    assert {entry.subject for entry in catalogue.entries} == subjects


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
    "declares_nothing": ("x = 1", "declares a @theorem; this one declares none"),
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
    assert broken.error == "TypeError: a theorem file declares a @theorem; this one declares none"
    elsewhere = write_theorem("declares_nothing", "1 / 0", subject="yours")
    with pytest.raises(ZeroDivisionError) as raised:
        exec(compile("1 / 0", elsewhere, "exec"))
    assert failure(raised.value, path) == "ZeroDivisionError: division by zero"
    assert failure(raised.value, elsewhere).endswith("(line 1)")


def test_a_file_may_declare_many_theorems(
    write_theorem: WriteTheorem, true_theorem: str, tmp_path: Path
) -> None:
    """Each has the name of its function, and all the subject of their file or of its folder."""
    both = true_theorem + named(true_theorem, "another_one")
    path = write_theorem("addition_commutes", both)
    for place, subject in ((path, "addition_commutes"), (tmp_path, "mine")):
        catalogue = load_catalogue([place])
        assert not catalogue.broken
        entries = {entry.id: entry for entry in catalogue.entries}
        assert entries["addition-commutes"].subject == "mine"
        assert entries["another-one"].subject == subject
        assert entries["another-one"].source.load().body.__name__ == "another_one"
    with pytest.raises(TypeError, match="declares no @theorem that is called a_third"):
        replace(entries["another-one"].source, name="a_third").load()


def test_an_error_names_its_theorem_where_a_file_has_several(
    write_theorem: WriteTheorem, true_theorem: str
) -> None:
    second = named(true_theorem, "another_one")
    path = write_theorem("sums", true_theorem + second[: second.index("@another_one")])
    entries = {entry.id: entry.theorem for entry in load_catalogue([path]).entries}
    with pytest.raises(TypeError, match=r"sums\.py, another_one has no negative control"):
        entries["another-one"].control  # noqa: B018 (asking for it is the test)


def test_a_broken_file_is_found_by_the_ids_of_its_theorems(
    write_theorem: WriteTheorem, true_theorem: str
) -> None:
    text = named(true_theorem, "one_sum") + named(true_theorem, "another_sum") + "1 / 0\n"
    catalogue = load_catalogue([write_theorem("sums", text)])
    for name in ("sums", "one-sum", "another-sum"):
        assert len(catalogue.select([name]).broken) == 1
        assert not catalogue.select([name]).entries
    assert {"one-sum", "another-sum"} <= set(catalogue.ids)


def named(text: str, name: str) -> str:
    """A theorem and its negative control under another name."""
    start = text.index("@theorem")
    renamed = text[start:].replace("def statement", f"def {name}")
    head = text[:start] if name == "one_sum" else ""
    return head + renamed.replace("@statement", f"@{name}")


def test_a_theorem_imported_from_another_file_is_not_declared_twice(
    write_theorem: WriteTheorem, true_theorem: str
) -> None:
    lemma = "from attnproof.theorems.softmax import rows_of_softmax_are_distributions"
    path = write_theorem("uses_a_lemma", f"{true_theorem}\n{lemma}\n")
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


def test_two_theorems_of_one_id_in_a_file_are_not_taken_for_one(
    write_theorem: WriteTheorem, true_theorem: str
) -> None:
    """``statement`` has the id of its file, which another function may have as its name."""
    path = write_theorem("a_sum", true_theorem + named(true_theorem, "a_sum"))
    (broken,) = load_catalogue([path]).broken
    assert "the id a-sum is taken" in broken.error


def test_the_same_file_named_twice_is_one_theorem(write_theorem: WriteTheorem) -> None:
    path = write_theorem("addition_commutes")
    assert not load_catalogue([path, path.parent]).broken


def test_a_selection_takes_ids_and_subjects() -> None:
    catalogue = load_catalogue()
    chosen = catalogue.select(["softmax", "attention-ignores-the-order-of-pairs"])
    assert {entry.subject for entry in chosen.entries} == {"softmax", "permutation"}
    assert sum(entry.subject == "permutation" for entry in chosen.entries) == 1
    assert catalogue.select([]) is catalogue
