"""The document on public bugs is what its generator writes, to two digits of every number."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases import each

from .compared import NUMBER, differences
from .corpus import all_bugs, all_controls
from .table import markdown, stored_rows


def test_the_document_is_what_is_written_around_its_rows(root: Path) -> None:
    """What is found of each bug is held to its row where the bug is caught."""
    stored = (root / "docs" / "bugs.md").read_text(encoding="utf-8")
    assert markdown(stored_rows(root).__getitem__) == stored
    ids = [one.id for one in all_bugs()] + [one.id for one in all_controls()]
    assert all(f"| {number} |" in stored for number in ids)


ROW = "| P07 | ids are ignored | `follows-its-ids` | differs by 1.43 at [0, 1, 6] (a#107: -0.504) |"


@each(
    [
        ("ignored", "taken"),
        ("follows-its-ids", "relative"),
        ("P07", "P08"),
        ("6]", "7]"),
        ("#107", "#108"),
        ("1.43", "2.43"),
        ("1.43", "1.63"),
        ("1.43", "-1.43"),
        ("1.43", "14.3"),
        ("-0.504", "0.504"),
        ("-0.504", "-0.604"),
        ("-0.504", "-0.0504"),
        ("-0.504", "nan"),
        ("-0.504", "0"),
        (", 6", ""),
        ("| P07", "P07"),
    ]
)
def test_another_word_law_place_or_digit_is_seen(old: str, new: str) -> None:
    changed = ROW.replace(old, new)
    assert changed != ROW
    (told,) = differences(changed, ROW)
    assert told == f"found:  {changed}\nwanted: {ROW}"
    assert differences(ROW, changed)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("1.43", "1.42"),
        ("1.43", "1.4"),
        ("1.43", "1.4300001"),
        ("-0.504", "-0.5"),
        ("-0.504", "-0.496"),
    ],
)
def test_the_rounding_of_another_processor_is_not(old: str, new: str) -> None:
    assert differences(ROW.replace(old, new), ROW) == []


def test_a_sum_that_vanishes_is_none_that_does_not() -> None:
    assert differences("at 0: 1e-17", "at 0: 0") == []
    assert differences("at 0: 0.001", "at 0: 0")
    assert differences("at 1: 1e-17", "at 0: 0")


@pytest.mark.parametrize(
    ("here", "there", "alike"),
    [
        ("5.2e-13", "7.2e-13", True),
        ("7.2e-13", "5.2e-13", True),
        ("5.2e-13", "1.1e-12", False),
        ("-5.2e-13", "-5.2e-13", False),
        ("0", "5.2e-13", False),
    ],
)
def test_what_rounding_explains_may_be_twice_as_much(here: str, there: str, alike: bool) -> None:
    told = "differ by 1.43, and rounding explains {}"
    assert (differences(told.format(here), told.format(there)) == []) == alike
    assert differences(told.format(here), f"differ by 1.43, and it explains {there}") != []


def test_a_row_more_or_less_is_seen() -> None:
    assert differences(f"{ROW}\n{ROW}", ROW)
    assert differences(ROW, f"{ROW}\n{ROW}")


def test_every_row_of_the_document_is_held_to_its_first_number(root: Path) -> None:
    rows = stored_rows(root)
    assert tuple(rows) == all_bugs()
    for told in rows.values():
        number = NUMBER.search(told)
        assert number is not None, told
        other = f"{told[: number.start()]}{float(number[0]) * 3 + 5}{told[number.end() :]}"
        assert differences(other, told)
