"""Demonstrations: what they come to in the record of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnproof.theorem_runs.demonstrations import demonstrate
from attnproof.theorem_runs.ledger import demonstration_files
from attnproof.theorem_runs.records import DemonstrationRecord
from tests.front.outputs import WriteDemonstration


def shown(path: Path) -> DemonstrationRecord:
    (record,) = demonstrate({"two-and-two": path})
    return record


def test_ours_stands_beside_what_is_printed(write_demonstration: WriteDemonstration) -> None:
    record = shown(write_demonstration())
    assert (record.outcome, record.ok, record.why) == ("reproduced", True, ())
    assert (record.title, record.says) == ("Two and two", "The sum, computed again.")
    assert (record.claims, record.remark) == (("Z1",), "By hand.")
    assert [(r.says, r.ours, r.printed, r.agrees) for r in record.rows] == [
        ("the sum", "4", "4", True),
        ("the product", "4", None, None),
    ]


@pytest.mark.parametrize(
    ("row", "outcome", "why"),
    [
        ("printed=5", "differs", ("the sum: ours 4, printed 5",)),
        ("printed=5, expected_to_differ=True", "differs", ()),
        (
            "printed=4, expected_to_differ=True",
            "reproduced",
            ("the sum: printed 4, as ours, and expected to differ",),
        ),
        ("printed=None", "failed", ("nothing printed is compared with ours",)),
    ],
)
def test_a_row_that_is_not_as_expected_is_told(
    write_demonstration: WriteDemonstration, row: str, outcome: str, why: tuple[str, ...]
) -> None:
    record = shown(write_demonstration("printed=4", row))
    assert (record.outcome, record.why, record.ok) == (outcome, why, not why)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("2 + 2", "1 / 0", "ZeroDivisionError: division by zero (line 9)"),
        ("from attnproof", "import nothing_of_the_kind\nfrom attnproof", "ModuleNotFoundError"),
        ("@demonstration", "# @demonstration", "declares a @demonstration; this one has none"),
    ],
)
def test_one_that_cannot_be_run_has_failed_and_stops_no_other(
    write_demonstration: WriteDemonstration, old: str, new: str, told: str
) -> None:
    good, bad = write_demonstration(name="good"), write_demonstration(old, new, name="bad")
    first, second = demonstrate({"bad": bad, "good": good})
    assert (first.id, first.outcome, first.ok) == ("bad", "failed", False)
    assert told in first.why[0]
    assert (second.id, second.outcome) == ("good", "reproduced")


def test_those_of_the_package_are_found_by_their_files(root: Path) -> None:
    files = demonstration_files()
    assert {path.resolve() for path in files.values()} == {
        path
        for path in (root / "theorems" / "demonstrations").glob("*.py")
        if path.name != "__init__.py"
    }
    assert len(files) >= 10
